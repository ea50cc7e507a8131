package pmda_test

import (
	"errors"
	"math"
	"sync/atomic"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

const domain = 253

func pmid(cluster, item uint32) pcpwire.PMID { return pcpwire.NewPMID(domain, cluster, item) }
func indom(serial uint32) pcpwire.InDom      { return pcpwire.NewInDom(domain, serial) }

// The sample agent's metrics and instance domains.
var (
	level    = pmid(0, 0) // can be set
	load     = pmid(1, 0)
	requests = pmid(1, 1)
	faults   = pmid(1, 2)
	heat     = pmid(1, 3)
	version  = pmid(1, 4) // has two names
	broken   = pmid(9, 0) // a whole fetch of it fails, with failWith
	short    = pmid(9, 1) // makes the session forget a value set

	minutes = indom(1)
	fruit   = indom(2)
	nothing = indom(3) // has no instances
)

type metric struct {
	names []string
	desc  pcpwire.Desc
	insts []int32
	bits  []uint64
	str   string
}

type table struct {
	insts []int32
	names []string
}

func (t *table) Len() int                 { return len(t.insts) }
func (t *table) At(i int) (int32, []byte) { return t.insts[i], []byte(t.names[i]) }

// sample is a Source whose sessions share its state; it is the state that the
// tests change between two requests.
type sample struct {
	metrics []metric
	indoms  map[pcpwire.InDom]*table
	texts   map[pcpwire.TextKind]map[uint32]string
	labels  map[labelKey][]pmda.LabelRecord
	tree    *pmda.Tree
	finder  pmda.InstanceFinder // indom 44, if not nil

	namesToken, labelsToken atomic.Uint64
	opened, closed, begun   atomic.Int32
	failWith                error
	block                   chan chan struct{} // if not nil, Text hands a channel over and waits on it
	fetching                func()             // if not nil, Fetch calls it
}

type labelKey struct {
	level pcpwire.LabelLevel
	ident uint32
	inst  int32
}

func newSample() *sample {
	s := &sample{
		indoms: map[pcpwire.InDom]*table{
			minutes: {[]int32{1, 5, 15}, []string{"1 minute", "5 minute", "15 minute"}},
			fruit:   {[]int32{7, 3, 9}, []string{"red apple", "red", "green pear tree"}},
			nothing: {},
		},
		texts: map[pcpwire.TextKind]map[uint32]string{
			pcpwire.TextOneLine | pcpwire.TextPMID:  {uint32(load): "load average", uint32(requests): "requests served"},
			pcpwire.TextHelp | pcpwire.TextPMID:     {uint32(load): "Number of waiting tasks,\naveraged.", uint32(heat): ""},
			pcpwire.TextOneLine | pcpwire.TextInDom: {uint32(minutes): "periods"},
			pcpwire.TextHelp | pcpwire.TextInDom:    {uint32(minutes): "Periods of time."},
		},
		labels: map[labelKey][]pmda.LabelRecord{
			{pcpwire.LabelCluster, uint32(pmid(1, 0)), -1}:       records(`{"zz":1}`, `{"aa": [1, 2]}`),
			{pcpwire.LabelItem, uint32(load), -1}:                records(`{ "what" : "a b", "alpha":{"beta":true} }`),
			{pcpwire.LabelItem, uint32(requests), -1}:            records(`{"url":"/"}`, `nonsense`, `{"n":null}`),
			{pcpwire.LabelInDom, uint32(minutes), -1}:            records(`{"unit":"minute"}`),
			{pcpwire.LabelInstances, uint32(minutes), 5}:         records(`{"b":1,"a":2}`),
			{pcpwire.LabelInstances, uint32(minutes), 15}:        records(`{"m":{"x":1,"y":{"z":[]}}}`),
			{pcpwire.LabelInstances, uint32(fruit), 7}:           records(`{"sour":false}`),
			{pcpwire.LabelContext, uint32(pcpwire.PMIDNull), -1}: records(`{"host":"here"}`),
		},
	}
	u := pcpwire.NewUnits
	d := func(id pcpwire.PMID, t pcpwire.Type, in pcpwire.InDom, sem pcpwire.Semantics, units pcpwire.Units) pcpwire.Desc {
		return pcpwire.Desc{PMID: id, Type: t, InDom: in, Semantics: sem, Units: units}
	}
	null, f64, f32 := pcpwire.InDomNull, math.Float64bits, math.Float32bits
	s.metrics = []metric{
		{[]string{"sample.control.level"}, d(level, pcpwire.TypeI32, null, pcpwire.SemInstant, 0), []int32{-1}, []uint64{3}, ""},
		{[]string{"sample.load"}, d(load, pcpwire.TypeDouble, minutes, pcpwire.SemInstant, 0), []int32{1, 5, 15}, []uint64{f64(0.5), f64(1.25), f64(-2)}, ""},
		{[]string{"sample.count.requests"}, d(requests, pcpwire.TypeU64, null, pcpwire.SemCounter, u(0, 0, 1, 0, 0, 0)), []int32{-1}, []uint64{1 << 40}, ""},
		{[]string{"sample.count.faults"}, d(faults, pcpwire.TypeU32, fruit, pcpwire.SemCounter, u(1, -1, 0, 1, 3, 0)), []int32{7, 3, 9}, []uint64{70, 30, 90}, ""},
		{[]string{"sample.heat"}, d(heat, pcpwire.TypeFloat, null, pcpwire.SemInstant, 0), []int32{-1}, []uint64{uint64(f32(36.5))}, ""},
		{[]string{"sample.version", "sample.alias.version"}, d(version, pcpwire.TypeString, null, pcpwire.SemDiscrete, 0), []int32{-1}, nil, "1.0"},
	}
	var b pmda.TreeBuilder
	for _, m := range s.metrics {
		for _, name := range m.names {
			if err := b.Add([]byte(name), m.desc.PMID); err != nil {
				panic(err)
			}
		}
	}
	s.tree = b.Build()
	return s
}

func records(texts ...string) []pmda.LabelRecord {
	r := make([]pmda.LabelRecord, len(texts))
	for i, t := range texts {
		r[i].JSON = []byte(t)
	}
	return r
}

func (s *sample) Open() pmda.Session {
	s.opened.Add(1)
	return &session{sample: s}
}

func (s *sample) find(id pcpwire.PMID) *metric {
	for i := range s.metrics {
		if s.metrics[i].desc.PMID == id {
			return &s.metrics[i]
		}
	}
	return nil
}

type session struct {
	*sample
	inside bool // between Begin and End
	owed   bool // an After, since End
}

func (s *session) Begin() {
	s.begun.Add(1)
	s.must(!s.inside && !s.owed)
	s.inside = true
}

func (s *session) Changes() pmda.Changes {
	return pmda.Changes{Names: s.namesToken.Load(), Labels: s.labelsToken.Load()}
}

func (s *session) End() {
	s.must(s.inside)
	s.inside, s.owed = false, true
}

func (s *session) After() {
	s.must(!s.inside && s.owed)
	s.owed = false
}

func (s *session) Close() {
	s.must(!s.inside)
	s.closed.Add(1)
}

func (s *session) must(ok bool) {
	if !ok {
		panic("session called out of turn")
	}
}

func (s *session) PMID(name []byte) (pcpwire.PMID, error) {
	s.must(s.inside)
	return s.tree.PMID(name)
}

func (s *session) Children(b *pcpwire.NamesBuilder, name []byte, status bool) error {
	return s.tree.Children(b, name, status)
}

func (s *session) Traverse(b *pcpwire.NamesBuilder, name []byte) error {
	return s.tree.Traverse(b, nil, name)
}

func (s *session) Names(b *pcpwire.NamesBuilder, id pcpwire.PMID) error {
	return s.tree.Names(b, nil, id)
}

func (s *session) Desc(id pcpwire.PMID) (pcpwire.Desc, error) {
	s.must(s.inside)
	if id == broken {
		return pcpwire.Desc{}, s.failWith
	}
	if m := s.find(id); m != nil {
		return m.desc, nil
	}
	return pcpwire.Desc{}, pcpwire.ErrPMID
}

func (s *session) Instances(in pcpwire.InDom) (pmda.Instances, error) {
	if in == indom(44) && s.finder != nil {
		return s.finder, nil
	}
	if t, ok := s.indoms[in]; ok {
		return t, nil
	}
	return nil, pcpwire.ErrInDom
}

func (s *session) Text(ident uint32, kind pcpwire.TextKind) ([]byte, error) {
	s.must(s.inside)
	if s.block != nil {
		release := make(chan struct{})
		s.block <- release
		<-release
	}
	if ident == uint32(broken) {
		return nil, s.failWith
	}
	if text, ok := s.texts[kind][ident]; ok {
		return []byte(text), nil
	}
	return nil, pcpwire.ErrText
}

func (s *session) Labels(dst []pmda.LabelRecord, lev pcpwire.LabelLevel, ident uint32, inst int32) []pmda.LabelRecord {
	s.must(s.inside)
	return append(dst, s.labels[labelKey{lev, ident, inst}]...)
}

func (s *session) Fetch(ids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) error {
	s.must(s.inside)
	if s.fetching != nil {
		s.fetching()
	}
	b.Begin(0, len(ids), len(ids))
	for _, id := range ids {
		m := s.find(id)
		switch {
		case id == broken:
			return s.failWith
		case id == short:
			continue
		case m == nil:
			b.Status(id, pcpwire.ErrPMID)
			continue
		}
		insts, bits := m.insts, m.bits
		if !profile.IncludesAll(m.desc.InDom) && m.desc.InDom != pcpwire.InDomNull {
			insts, bits = nil, nil
			for i, inst := range m.insts {
				if profile.Includes(m.desc.InDom, inst) {
					insts, bits = append(insts, inst), append(bits, m.bits[i])
				}
			}
		}
		addSet(b, m, insts, bits)
	}
	return nil
}

func addSet(b *pcpwire.ResultBuilder, m *metric, insts []int32, bits []uint64) {
	switch id := m.desc.PMID; m.desc.Type {
	case pcpwire.TypeI32, pcpwire.TypeU32:
		b.Set32(id, insts, bits)
	case pcpwire.TypeFloat:
		b.SetFloat(id, insts, bits)
	case pcpwire.TypeString:
		b.BeginStrings(id, len(insts))
		for _, inst := range insts {
			b.AddString(inst, []byte(m.str))
		}
	default:
		b.Set64(id, m.desc.Type, insts, bits)
	}
}

func (s *session) Store(set *pcpwire.ValueSet) error {
	s.must(s.inside)
	switch {
	case set.PMID == broken:
		return s.failWith
	case s.find(set.PMID) == nil:
		return pcpwire.ErrPMID
	case set.PMID != level:
		return pcpwire.ErrPermission
	case set.NumVal != 1:
		return pcpwire.ErrBadStore
	}
	s.find(level).bits[0] = uint64(set.Values[0].Word)
	return nil
}

var errPlain = errors.New("something went wrong")

// finder is a table that is never looked through.
type finder struct{ table }

func (f *finder) At(int) (int32, []byte) { panic("not to be called") }

func (f *finder) Find(inst int32) ([]byte, bool) {
	if inst == 4 {
		return []byte("four"), true
	}
	return nil, false
}
