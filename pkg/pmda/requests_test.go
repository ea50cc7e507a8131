package pmda_test

import (
	"testing"

	"pmdammv/pkg/pcpwire"
)

func names(names ...string) *pcpwire.Names {
	n := &pcpwire.Names{}
	for _, name := range names {
		n.Names = append(n.Names, []byte(name))
	}
	return n
}

func TestNameSpaceRequests(t *testing.T) {
	const leaf, nonLeaf = pcpwire.Leaf, pcpwire.NonLeaf
	noName, noPMID := status(pcpwire.ErrName), status(pcpwire.ErrPMID)
	withStatus := func(n *pcpwire.Names, s ...pcpwire.NodeStatus) *pcpwire.Names {
		n.Status = s
		return n
	}
	ids := func(id pcpwire.PMID) *pcpwire.IDs { return &pcpwire.IDs{IDs: []pcpwire.PMID{id}} }
	child := func(name string, status bool) *pcpwire.Child {
		return &pcpwire.Child{Name: []byte(name), WantStatus: status}
	}
	traverse := func(name string) *pcpwire.Traverse { return &pcpwire.Traverse{Name: []byte(name)} }
	tests := []struct {
		name      string
		req, want pcpwire.PDU
	}{
		{"pmid of a leaf", names("sample.count.faults"), ids(faults)},
		{"pmid of a non-leaf", names("sample.count"), noName},
		{"pmid of an unknown name", names("sample.county"), noName},
		{"pmid below a leaf", names("sample.load.x"), noName},
		{"pmid of a name with a dot at the end", names("sample.load."), noName},
		{"pmid of the empty name", names(""), noName},
		{"name of a pmid", ids(heat), names("sample.heat")},
		{"names of a pmid with two, last in the tree first", ids(version), names("sample.version", "sample.alias.version")},
		{"name of an unknown pmid", ids(pmid(3, 3)), noPMID},
		{
			"children, the last inserted first", child("sample", true),
			withStatus(names("alias", "version", "heat", "count", "load", "control"), nonLeaf, leaf, leaf, nonLeaf, leaf, nonLeaf),
		},
		{"children without status", child("sample.count", false), names("faults", "requests")},
		{"children of a leaf", child("sample.load", true), names()},
		{"children of an unknown name", child("sample.x", true), noName},
		{"children of the empty name", child("", true), noName},
		{"traverse", traverse("sample"), names(
			"sample.alias.version", "sample.version", "sample.heat", "sample.count.faults", "sample.count.requests",
			"sample.load", "sample.control.level")},
		{"traverse a leaf", traverse("sample.heat"), names("sample.heat")},
		{"traverse an unknown name", traverse("sampl"), noName},
		{"traverse the empty name", traverse(""), noName},
	}
	p := start(t, newSample())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { p.want(t, tt.req, tt.want) })
	}
	p.quit(t)
}

func TestDesc(t *testing.T) {
	s := newSample()
	p := start(t, s)
	for i := range s.metrics {
		d := s.metrics[i].desc
		p.want(t, &pcpwire.DescReq{PMID: d.PMID}, &d)
	}
	p.want(t, &pcpwire.DescReq{PMID: pmid(1, 5)}, status(pcpwire.ErrPMID))
	p.quit(t)
}

func TestInstances(t *testing.T) {
	all := func(in pcpwire.InDom, entries ...pcpwire.InstanceEntry) *pcpwire.Instance {
		return &pcpwire.Instance{InDom: in, Entries: entries}
	}
	entry := func(inst int32, name string) pcpwire.InstanceEntry {
		if name == "" {
			return pcpwire.InstanceEntry{Inst: inst}
		}
		return pcpwire.InstanceEntry{Inst: inst, Name: []byte(name)}
	}
	ask := func(in pcpwire.InDom, inst int32, name string) *pcpwire.InstanceReq {
		return &pcpwire.InstanceReq{InDom: in, Inst: inst, Name: []byte(name)}
	}
	const none = pcpwire.InstNull
	noInst, noInDom := status(pcpwire.ErrInst), status(pcpwire.ErrInDom)
	tests := []struct {
		name      string
		req, want pcpwire.PDU
	}{
		{"all, in table order", ask(fruit, none, ""), all(fruit, entry(7, "red apple"), entry(3, "red"), entry(9, "green pear tree"))},
		{"all of none", ask(nothing, none, ""), all(nothing)},
		{"name of a number", ask(fruit, 3, ""), all(fruit, entry(none, "red"))},
		{"name of an unknown number", ask(fruit, 4, ""), noInst},
		{"number of a name", ask(minutes, none, "5 minute"), all(minutes, entry(5, ""))},
		{"number of a first word", ask(minutes, none, "5"), all(minutes, entry(5, ""))},
		{"an earlier first word wins over a later name", ask(fruit, none, "red"), all(fruit, entry(7, ""))},
		{"two words are not a first word", ask(fruit, none, "green pear"), noInst},
		{"part of a word", ask(fruit, none, "gree"), noInst},
		{"a word with a space", ask(minutes, none, "5 "), noInst},
		{"number and name", ask(fruit, 3, "red"), noInst},
		{"all of an unknown indom", ask(indom(9), none, ""), noInDom},
		{"number in an unknown indom", ask(indom(9), 3, ""), noInDom},
		{"number and name in an unknown indom", ask(indom(9), 3, "red"), noInDom},
		{"no indom", ask(pcpwire.InDomNull, none, ""), noInDom},
	}
	s := newSample()
	p := start(t, s)
	p.send(t, &pcpwire.Profile{State: pcpwire.ProfileExclude}) // has no say
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { p.want(t, tt.req, tt.want) })
	}
	p.quit(t)
}

func TestInstanceFinder(t *testing.T) {
	s := newSample()
	s.finder = &finder{}
	p := start(t, s)
	in := indom(44)
	p.want(t, &pcpwire.InstanceReq{InDom: in, Inst: 4},
		&pcpwire.Instance{InDom: in, Entries: []pcpwire.InstanceEntry{{Inst: -1, Name: []byte("four")}}})
	p.want(t, &pcpwire.InstanceReq{InDom: in, Inst: 5}, status(pcpwire.ErrInst))
	p.quit(t)
}

func TestText(t *testing.T) {
	const (
		line, help   = pcpwire.TextOneLine, pcpwire.TextHelp
		metric, iset = pcpwire.TextPMID, pcpwire.TextInDom
	)
	noText := status(pcpwire.ErrText)
	text := func(ident uint32, s string) *pcpwire.Text { return &pcpwire.Text{Ident: ident, Text: []byte(s)} }
	tests := []struct {
		name  string
		ident uint32
		kind  pcpwire.TextKind
		want  pcpwire.PDU
	}{
		{"one line of a metric", uint32(load), line | metric, text(uint32(load), "load average")},
		{"help of a metric", uint32(load), help | metric, text(uint32(load), "Number of waiting tasks,\naveraged.")},
		{"one line of an indom", uint32(minutes), line | iset, text(uint32(minutes), "periods")},
		{"help of an indom", uint32(minutes), help | iset, text(uint32(minutes), "Periods of time.")},
		{"no help", uint32(requests), help | metric, noText},
		{"empty", uint32(heat), help | metric, text(uint32(heat), "")},
		{"a metric is no indom", uint32(load), line | iset, noText},
		{"of neither", uint32(load), line, noText},
		{"of both", uint32(load), line | metric | iset, noText},
		{"neither length", uint32(load), metric, noText},
		{"both lengths", uint32(load), line | help | metric, noText},
		{"direct", uint32(load), line | metric | 16, text(uint32(load), "load average")},
	}
	p := start(t, newSample())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { p.want(t, &pcpwire.TextReq{Ident: tt.ident, Kind: tt.kind}, tt.want) })
	}
	p.quit(t)
}

func TestStore(t *testing.T) {
	set := func(id pcpwire.PMID, words ...uint32) pcpwire.ValueSet {
		s := pcpwire.ValueSet{PMID: id, NumVal: int32(len(words))}
		for _, w := range words {
			s.Values = append(s.Values, pcpwire.Value{Inst: -1, Word: w})
		}
		return s
	}
	tests := []struct {
		name string
		sets []pcpwire.ValueSet
		want pcpwire.Status
		left uint64 // the metric's value afterwards
	}{
		{"ok", []pcpwire.ValueSet{set(level, 7)}, 0, 7},
		{"nothing", nil, 0, 3},
		{"not to be set", []pcpwire.ValueSet{set(faults, 7)}, pcpwire.ErrPermission, 3},
		{"unknown", []pcpwire.ValueSet{set(pmid(8, 8), 7)}, pcpwire.ErrPMID, 3},
		{"two values", []pcpwire.ValueSet{set(level, 7, 8)}, pcpwire.ErrBadStore, 3},
		{"no value", []pcpwire.ValueSet{set(level)}, pcpwire.ErrBadStore, 3},
		{"the first error ends it", []pcpwire.ValueSet{set(level, 8), set(faults, 1), set(level, 9)}, pcpwire.ErrPermission, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSample()
			p := start(t, s)
			p.want(t, &pcpwire.Result{Flags: 0xdeadbeef, Usec: 0xffffffff, Sets: tt.sets}, status(tt.want))
			r := p.ask(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{level}}).(*pcpwire.Result)
			if got := r.Sets[0].Values[0].Word; uint64(got) != tt.left {
				t.Errorf("value is %d, want %d", got, tt.left)
			}
			p.quit(t)
		})
	}
}
