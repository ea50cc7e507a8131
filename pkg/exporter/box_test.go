package exporter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

const domain = 70

// box is a directory of MMV files with an Exporter over it and one session.
type box struct {
	testing.TB
	dir, state string
	opts       exporter.Options
	e          *exporter.Exporter
	s          pmda.Session
	result     pcpwire.ResultBuilder

	mu     sync.Mutex
	events []exporter.Event
}

// newBox makes an empty directory; start is called by the test. The agent keeps
// no identities unless keep says so.
func newBox(t testing.TB, change ...func(*exporter.Options)) *box {
	t.Helper()
	top := t.TempDir()
	b := &box{TB: t, dir: filepath.Join(top, "mmv"), state: filepath.Join(top, "identities")}
	if err := os.Mkdir(b.dir, 0o755); err != nil { //nolint:gosec // other users may look
		t.Fatal(err)
	}
	b.opts = exporter.Options{Dir: b.dir, Domain: domain, PCPVersion: "7.2.1", Event: func(ev exporter.Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, ev)
	}}
	for _, c := range change {
		c(&b.opts)
	}
	t.Cleanup(b.stop)
	return b
}

// keep has the identities kept.
func (b *box) keep() *box {
	b.opts.Identities = b.state
	return b
}

func (b *box) start() *box {
	b.Helper()
	b.make()
	b.open()
	return b
}

// make makes an Exporter that has not looked at anything.
func (b *box) make() {
	b.Helper()
	var err error
	if b.e, err = exporter.New(b.opts); err != nil {
		b.Fatal(err)
	}
}

func (b *box) open() {
	b.s = b.e.Open()
	b.s.After()
}

func (b *box) stop() {
	if b.e == nil {
		return
	}
	if b.s != nil {
		b.s.Close()
	}
	b.e.Close()
	b.e, b.s = nil, nil
}

func (b *box) restart() {
	b.Helper()
	b.stop()
	b.start()
}

// put puts a file into the directory, whole at once.
func (b *box) put(name string, img *mmvimage.Image) {
	b.Helper()
	b.write(name, img.Build())
}

func (b *box) write(name string, image []byte) {
	b.Helper()
	if err := mmvimage.Write(filepath.Join(b.dir, name), image); err != nil {
		b.Fatal(err)
	}
}

// putG2 writes the second generation of the file f, which is there.
func (b *box) putG2(g2 []byte) {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(b.dir, "f"), os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(g2, mmvimage.HdrG2)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *box) remove(names ...string) {
	b.Helper()
	for _, n := range names {
		if err := os.Remove(filepath.Join(b.dir, n)); err != nil {
			b.Fatal(err)
		}
	}
}

// ask does something between Begin and End, and returns the Changes after it.
func (b *box) ask(f func(s pmda.Session)) pmda.Changes {
	defer b.s.After()
	b.s.Begin()
	defer b.s.End()
	f(b.s)
	return b.s.Changes()
}

func (b *box) look() pmda.Changes { return b.ask(func(pmda.Session) {}) }

// reply decodes a PDU.
func reply[P pcpwire.PDU](t testing.TB, pdu []byte, err error, p P) P {
	t.Helper()
	if err == nil {
		err = p.Decode(pdu[pcpwire.HeaderSize:])
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// traverse returns the names below a name, in order.
func (b *box) traverse(name string) (out []string, err error) {
	b.Helper()
	b.ask(func(s pmda.Session) {
		var nb pcpwire.NamesBuilder
		nb.Begin(false)
		if err = s.Traverse(&nb, []byte(name)); err != nil {
			return
		}
		pdu, e := nb.Finish()
		for _, n := range reply(b, pdu, e, &pcpwire.Names{}).Names {
			out = append(out, string(n))
		}
	})
	return out, err
}

// names returns all names but those of the control metrics.
func (b *box) names() []string {
	b.Helper()
	all, err := b.traverse("mmv")
	if err != nil {
		b.Fatal(err)
	}
	return slices.DeleteFunc(all, func(n string) bool { return strings.HasPrefix(n, "mmv.control.") })
}

// children returns the children of a name, in order; "/" ends non-leaves.
func (b *box) children(name string) (out []string, err error) {
	b.Helper()
	b.ask(func(s pmda.Session) {
		var nb pcpwire.NamesBuilder
		nb.Begin(true)
		if err = s.Children(&nb, []byte(name), true); err != nil {
			return
		}
		pdu, e := nb.Finish()
		p := reply(b, pdu, e, &pcpwire.Names{})
		for i, n := range p.Names {
			out = append(out, string(n)+map[pcpwire.NodeStatus]string{pcpwire.Leaf: "", pcpwire.NonLeaf: "/"}[p.Status[i]])
		}
	})
	return out, err
}

// namesOf returns the names of a PMID.
func (b *box) namesOf(pmid pcpwire.PMID) (out []string) {
	b.Helper()
	b.ask(func(s pmda.Session) {
		var nb pcpwire.NamesBuilder
		nb.Begin(false)
		if err := s.Names(&nb, pmid); err != nil {
			if !errors.Is(err, pcpwire.ErrPMID) {
				b.Error(err)
			}
			return
		}
		pdu, err := nb.Finish()
		for _, n := range reply(b, pdu, err, &pcpwire.Names{}).Names {
			out = append(out, string(n))
		}
	})
	return out
}

func (b *box) lookup(name string) (p pcpwire.PMID, err error) {
	b.ask(func(s pmda.Session) { p, err = s.PMID([]byte(name)) })
	return p, err
}

func (b *box) pmid(name string) pcpwire.PMID {
	b.Helper()
	p, err := b.lookup(name)
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	return p
}

// pmids returns the numbers of names, "cluster.item", "-" for an unknown one.
func (b *box) pmids(names ...string) string {
	b.Helper()
	var out []string
	for _, n := range names {
		p, err := b.lookup(n)
		if err != nil {
			out = append(out, "-")
			continue
		}
		out = append(out, fmt.Sprintf("%d.%d", p.Cluster(), p.Item()))
	}
	return strings.Join(out, " ")
}

func (b *box) desc(name string) (d pcpwire.Desc) {
	b.Helper()
	p := b.pmid(name)
	b.ask(func(s pmda.Session) {
		var err error
		if d, err = s.Desc(p); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
	})
	return d
}

// fetch returns the reply to a fetch.
func (b *box) fetch(profile *pcpwire.Profile, pmids ...pcpwire.PMID) *pcpwire.Result {
	b.Helper()
	p := &pcpwire.Result{}
	b.ask(func(s pmda.Session) {
		if err := s.Fetch(pmids, profile, &b.result); err != nil {
			b.Fatal(err)
		}
		pdu, err := b.result.Finish()
		reply(b, pdu, err, p)
	})
	if len(p.Sets) != len(pmids) {
		b.Fatalf("%d value sets for %d metrics", len(p.Sets), len(pmids))
	}
	return p
}

// show is a value set as text: "inst=value …", the value alone where there are
// no instances, or the status.
func (b *box) show(set *pcpwire.ValueSet) string {
	if set.NumVal < 0 {
		return pcpwire.Status(set.NumVal).Error()
	}
	var d pcpwire.Desc
	b.ask(func(s pmda.Session) { d, _ = s.Desc(set.PMID) })
	var out []string
	for i := range set.Values {
		v := &set.Values[i]
		a, err := v.Extract(set.Format, d.Type)
		if err != nil {
			b.Fatal(err)
		}
		var text string
		switch d.Type {
		case pcpwire.TypeI32:
			text = strconv.Itoa(int(a.I32()))
		case pcpwire.TypeU32:
			text = strconv.FormatUint(uint64(a.U32()), 10)
		case pcpwire.TypeI64:
			text = strconv.FormatInt(a.I64(), 10)
		case pcpwire.TypeU64:
			text = strconv.FormatUint(a.U64(), 10)
		case pcpwire.TypeFloat:
			text = fmt.Sprint(a.Float())
		case pcpwire.TypeDouble:
			text = fmt.Sprint(a.Double())
		default:
			text = strings.TrimSuffix(string(a.Str), "\x00")
		}
		if v.Inst != pcpwire.InstNull {
			text = fmt.Sprintf("%d=%s", v.Inst, text)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// values returns what show makes of the values of a metric.
func (b *box) values(name string) string {
	b.Helper()
	return b.show(&b.fetch(nil, b.pmid(name)).Sets[0])
}

// instances returns an indom as text: "inst:name …".
func (b *box) instances(d pcpwire.InDom) string {
	b.Helper()
	var out []string
	b.ask(func(s pmda.Session) {
		t, err := s.Instances(d)
		if err != nil {
			out = append(out, err.Error())
			return
		}
		for i := range t.Len() {
			inst, name := t.At(i)
			out = append(out, fmt.Sprintf("%d:%s", inst, name))
		}
	})
	return strings.Join(out, " ")
}

func (b *box) text(ident uint32, kind pcpwire.TextKind) (text string, err error) {
	b.ask(func(s pmda.Session) {
		var raw []byte
		raw, err = s.Text(ident, kind)
		text = string(raw)
	})
	return text, err
}

// labels returns the labels of something as text.
func (b *box) labels(level pcpwire.LabelLevel, ident uint32, inst int32) string {
	var out []string
	b.ask(func(s pmda.Session) {
		for _, r := range s.Labels(nil, level, ident, inst) {
			out = append(out, string(r.JSON)+map[bool]string{true: "?"}[r.Optional])
		}
	})
	return strings.Join(out, " ")
}

// statuses returns mmv.control.file.status by the names of files.
func (b *box) statuses() map[string]string {
	b.Helper()
	out := map[string]string{}
	p := b.pmid("mmv.control.file.status")
	set := &b.fetch(nil, p).Sets[0]
	names := map[int32]string{}
	b.ask(func(s pmda.Session) {
		t, err := s.Instances(pcpwire.NewInDom(domain, 0))
		if err != nil {
			b.Fatal(err)
		}
		for i := range t.Len() {
			inst, name := t.At(i)
			if _, ok := names[inst]; ok {
				b.Errorf("instance %d twice", inst)
			}
			names[inst] = string(name)
		}
	})
	for i := range set.Values {
		a, err := set.Values[i].Extract(set.Format, pcpwire.TypeString)
		if err != nil {
			b.Fatal(err)
		}
		out[names[set.Values[i].Inst]] = strings.TrimSuffix(string(a.Str), "\x00")
	}
	return out
}

// told returns the events since the last call, a line each.
func (b *box) told() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range b.events {
		lines = append(lines, fmt.Sprintf("%s%s: %s", [...]string{"i ", "w ", "e "}[ev.Level], ev.File, ev.Text))
	}
	b.events = nil
	return lines
}

// one is a file with one metric m, item 1, of that value.
func one(v int64) *mmvimage.Image { return mmvimage.New(1).Metric(metric("m", 1, v)) }

// metric is a singular one of 64 bits.
func metric(name string, item uint32, v int64) mmvimage.Metric {
	return mmvimage.Metric{Name: name, Item: item, Type: mmvimage.I64, Sem: mmvimage.Instant, Values: []mmvimage.Value{mmvimage.Int(v)}}
}

// many is a metric of 64 bits over an indom.
func many(name string, item uint32, serial int32, vs ...int64) mmvimage.Metric {
	m := mmvimage.Metric{Name: name, Item: item, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: serial, Values: mmvimage.NoValues()}
	for _, v := range vs {
		m.Values = append(m.Values, mmvimage.Int(v))
	}
	return m
}

// insts are instances: "0:a", ….
func insts(list ...string) (out []mmvimage.Inst) {
	for _, s := range list {
		var in mmvimage.Inst
		id, name, _ := strings.Cut(s, ":")
		if _, err := fmt.Sscan(id, &in.ID); err != nil {
			panic(err)
		}
		in.Name = name
		out = append(out, in)
	}
	return out
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
