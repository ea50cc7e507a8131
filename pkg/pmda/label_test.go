package pmda_test

import (
	"bufio"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"

	"github.com/google/go-cmp/cmp"
)

// capturedLabels is a sample with the labels of the agents in testdata/labels.txt.
func capturedLabels() *sample {
	const null = pcpwire.InstNull
	optional := func(text string) pmda.LabelRecord { return pmda.LabelRecord{JSON: []byte(text), Optional: true} }
	item := func(cluster, i uint32) labelKey {
		return labelKey{pcpwire.LabelItem, uint32(pcpwire.NewPMID(70, cluster, i)), null}
	}
	in := pcpwire.NewInDom(70, 159753)
	return &sample{
		indoms: map[pcpwire.InDom]*table{in: {[]int32{1}, []string{"one"}}},
		labels: map[labelKey][]pmda.LabelRecord{
			item(78, 4): records(`{"good":1}`, `{"bad-name":1}`),
			item(78, 5): records(`{"empty":{}}`),
			item(77, 2): {optional(`{"zeta":null}`), {JSON: []byte(`{"alpha":42.5}`)}},
			{pcpwire.LabelCluster, uint32(pcpwire.NewPMID(70, 78, 0)), null}: records(`{"zz":1}`, `{"aa":2}`),
			{pcpwire.LabelInstances, uint32(in), 1}:                          {{JSON: []byte(`{"x":1}`)}, optional(`{"w":2}`)},
			{pcpwire.LabelDomain, domain, null}:                              records(`{"role":"testing"}`),
		},
	}
}

func TestCapturedLabelReplies(t *testing.T) {
	f, err := os.Open("testdata/labels.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	p := start(t, capturedLabels())
	about, replies := "", 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			about = rest
			continue
		}
		dir, text, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		pdu, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if dir == ">" {
			if err := p.WriteBytes(pdu); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := pcpwire.AppendPDU(nil, 0, p.reply(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(hex.Dump(pdu), hex.Dump(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", about, diff)
		}
		replies++
	}
	if replies != 12 {
		t.Errorf("%d replies in testdata, want 12", replies)
	}
	p.quit(t)
}

// showLabels writes a label set as "instance {json} name/flags=value ...",
// where name and value are what the index says.
func showLabels(s pcpwire.LabelSet) string {
	var b strings.Builder
	b.WriteString(itoa(s.Inst))
	if s.JSON != nil {
		b.WriteString(" " + string(s.JSON))
	}
	for _, l := range s.Labels {
		name := s.JSON[l.NameOff:][:l.NameLen]
		value := s.JSON[l.ValueOff:][:l.ValueLen]
		b.WriteString(" " + string(name) + "/" + hex.EncodeToString([]byte{l.Flags}) + "=" + string(value))
	}
	return b.String()
}

func TestLabels(t *testing.T) {
	const null = uint32(0xffffffff)
	tests := []struct {
		name  string
		level pcpwire.LabelLevel
		ident uint32
		want  []string
	}{
		{"context", pcpwire.LabelContext, null, []string{`-1 {"host":"here"} host/01="here"`}},
		{"domain", pcpwire.LabelDomain, domain, []string{`-1 {"agent":"sample"} agent/02="sample"`}},
		{"domain, as dbpmda asks", pcpwire.LabelDomain, null, []string{`-1 {"agent":"sample"} agent/02="sample"`}},
		{"indom", pcpwire.LabelInDom, uint32(minutes), []string{`-1 {"unit":"minute"} unit/04="minute"`}},
		{"indom without labels", pcpwire.LabelInDom, uint32(fruit), nil},
		{"cluster", pcpwire.LabelCluster, uint32(pmid(1, 0)), []string{`-1 {"aa":[1,2],"zz":1} aa/08=[1,2] zz/08=1`}},
		{"cluster, by a metric", pcpwire.LabelCluster, uint32(pmid(1, 1023)), []string{`-1 {"aa":[1,2],"zz":1} aa/08=[1,2] zz/08=1`}},
		{"cluster without labels", pcpwire.LabelCluster, uint32(pmid(2, 0)), nil},
		{"item with a map", pcpwire.LabelItem, uint32(load), []string{`-1 {"alpha.beta":true,"what":"a b"} alpha.beta/50=true what/10="a b"`}},
		{"item with a bad record", pcpwire.LabelItem, uint32(requests), []string{`-1 {"n":null,"url":"/"} n/10=null url/10="/"`}},
		{"item without labels", pcpwire.LabelItem, uint32(heat), nil},
		{"instances", pcpwire.LabelInstances, uint32(minutes), []string{
			`1`, `5 {"a":2,"b":1} a/20=2 b/20=1`, `15 {"m.x":1,"m.y.z":[]} m.x/60=1 m.y.z/60=[]`,
		}},
		{"instances, of no indom", pcpwire.LabelInstances, null, []string{`-1`}},
		{"instances of an unknown indom", pcpwire.LabelInstances, uint32(indom(99)), nil},
		{"instances of an empty indom", pcpwire.LabelInstances, uint32(nothing), nil},
		{"instances, compound and optional do not count", pcpwire.LabelInstances | 0xc0, uint32(fruit), []string{
			`7 {"sour":false} sour/20=false`, `3`, `9`,
		}},
	}
	p := start(t, newSample())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply, ok := p.ask(t, &pcpwire.LabelReq{Ident: tt.ident, Level: tt.level}).(*pcpwire.LabelPDU)
			if !ok {
				t.Fatal("not a label reply")
			}
			if reply.Ident != tt.ident || reply.Level != tt.level {
				t.Errorf("reply to %#x, level %#x: %#x, %#x", tt.ident, tt.level, reply.Ident, reply.Level)
			}
			var got []string
			for _, s := range reply.Sets {
				got = append(got, showLabels(s))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("label sets (-want +got):\n%s", diff)
			}
		})
	}
	for _, level := range []pcpwire.LabelLevel{0, 3, 0x40, 0x80, 0x100, 0x120} {
		p.want(t, &pcpwire.LabelReq{Ident: null, Level: level}, status(pcpwire.ErrType))
	}
	p.quit(t)
}

func TestInstanceLabelsInProfile(t *testing.T) {
	tests := []struct {
		name  string
		state pcpwire.ProfileState
		insts []int32
		want  []int32
	}{
		{"some", pcpwire.ProfileExclude, []int32{15, 1}, []int32{1, 15}},
		{"none", pcpwire.ProfileExclude, nil, []int32{-1}},
		{"all but one", pcpwire.ProfileInclude, []int32{1}, []int32{5, 15}},
	}
	p := start(t, newSample())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.send(t, &pcpwire.Profile{InDoms: []pcpwire.ProfileInDom{{InDom: minutes, State: tt.state, Insts: tt.insts}}})
			reply, ok := p.ask(t, &pcpwire.LabelReq{Ident: uint32(minutes), Level: pcpwire.LabelInstances}).(*pcpwire.LabelPDU)
			if !ok {
				t.Fatal("not a label reply")
			}
			got := make([]int32, 0, len(reply.Sets))
			for _, s := range reply.Sets {
				got = append(got, s.Inst)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("instances (-want +got):\n%s", diff)
			}
		})
	}
	p.quit(t)
}
