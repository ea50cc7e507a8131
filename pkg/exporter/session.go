package exporter

import (
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

// session answers the requests of one connection.
type session struct {
	e *Exporter
	t *Table // between Begin and End

	wants []reader.Want
	vals  reader.Values
	refs  []reader.ValueRef // those in the profile
	table catalogTable
	sized struct {
		table         uint64 // Table.number
		pmids, values int
	}
	inst1 [1]int32
	bits1 [1]uint64

	began    uint64            // looks until that of Begin
	again    uint64            // replies that were made anew
	restless map[string]uint64 // files that were replaced in one of them, and in which last

	// Simple metrics of one file: slots, types and what was found there.
	offs  [chunk]uint32
	types [chunk]pcpwire.Type
	bits  [chunk]uint64
}

// Open is for pmda.
func (e *Exporter) Open() pmda.Session {
	e.look()
	return &session{e: e, restless: map[string]uint64{}}
}

func (s *session) Close() { s.e.afterwards() }

func (s *session) Begin() {
	s.began = s.e.look() // later ones may already have begun for others
	s.e.dir.Acquire()
	s.t = s.e.table.Load() // after Acquire: what an older one has may be unmapped
}

func (s *session) Changes() pmda.Changes {
	return pmda.Changes{Names: s.t.names + s.t.forcing, Labels: s.t.labels}
}

func (s *session) End() {
	s.t, s.table = nil, catalogTable{} // what was replaced must not be kept by who asks nothing
	clear(s.wants)
	s.e.dir.Release()
}

func (s *session) After() { s.e.afterwards() }

func (s *session) PMID(name []byte) (pcpwire.PMID, error) { return s.t.space.pmid(name) }

func (s *session) Children(b *pcpwire.NamesBuilder, name []byte, status bool) error {
	return s.t.space.children(b, name, status)
}

func (s *session) Traverse(b *pcpwire.NamesBuilder, name []byte) error {
	return s.t.space.traverse(b, name)
}

func (s *session) Names(b *pcpwire.NamesBuilder, pmid pcpwire.PMID) error {
	prefix := append([]byte(s.e.opts.Prefix), '.')
	if pmid.Cluster() == 0 && s.t.ours(pmid) {
		m := s.t.controlMetric(pmid.Item())
		if m == nil {
			return pcpwire.ErrPMID
		}
		b.Add(prefix, []byte("control."+m.name))
		return nil
	}
	c, it := s.t.find(pmid)
	if c == nil {
		return pcpwire.ErrPMID
	}
	p := c.part(it)
	b.Add(prefix, c.files[p.file].name(nil, p.metric))
	return nil
}

func (s *session) Desc(pmid pcpwire.PMID) (pcpwire.Desc, error) {
	if pmid.Cluster() == 0 && s.t.ours(pmid) {
		if m := s.t.controlMetric(pmid.Item()); m != nil {
			return s.t.controlDesc(m), nil
		}
		return pcpwire.Desc{}, pcpwire.ErrPMID
	}
	c, it := s.t.find(pmid)
	if c == nil {
		return pcpwire.Desc{}, pcpwire.ErrPMID
	}
	return c.desc(it, pmid), nil
}

// complete is for questions for which an outline is not enough.
func (s *session) complete() {
	if s.t.outline {
		s.End()
		s.e.complete()
		s.Begin()
	}
}

func (s *session) Instances(id pcpwire.InDom) (pmda.Instances, error) {
	s.complete()
	return s.instances(id)
}

func (s *session) instances(id pcpwire.InDom) (pmda.Instances, error) {
	if id == pcpwire.NewInDom(s.t.domain, fileIndom) && s.e.opts.FileMetrics != FileMetricsOff {
		return s.t.files, nil
	}
	c, d := s.t.indom(id)
	if d == nil {
		return nil, pcpwire.ErrInDom
	}
	return c.table(d, &s.table), nil
}

func (s *session) Text(ident uint32, kind pcpwire.TextKind) ([]byte, error) {
	if kind&pcpwire.TextInDom != 0 {
		return s.indomText(pcpwire.InDom(ident), kind)
	}
	pmid := pcpwire.PMID(ident)
	if pmid.Cluster() == 0 && s.t.ours(pmid) {
		m := s.t.controlMetric(pmid.Item())
		switch {
		case m == nil:
			return nil, pcpwire.ErrPMID
		case kind&pcpwire.TextOneLine != 0:
			return []byte(m.line), nil
		default:
			return []byte(m.help), nil
		}
	}
	c, it := s.t.find(pmid)
	if c == nil {
		return nil, pcpwire.ErrPMID
	}
	p := c.part(it)
	cat := c.files[p.file].cat
	m := &cat.Metrics[p.metric]
	return text(cat, m.Short, m.Help, kind)
}

// text returns the one or the other help text.
func text(cat *reader.Catalog, short, help reader.Text, kind pcpwire.TextKind) ([]byte, error) {
	if kind&pcpwire.TextOneLine != 0 {
		help = short
	}
	if help == 0 {
		return nil, pcpwire.ErrText
	}
	return cat.Text(help), nil
}

func (s *session) indomText(id pcpwire.InDom, kind pcpwire.TextKind) ([]byte, error) {
	if id == pcpwire.NewInDom(s.t.domain, fileIndom) && s.e.opts.FileMetrics != FileMetricsOff {
		if kind&pcpwire.TextOneLine != 0 {
			return []byte("files in the directory"), nil
		}
		return []byte("The files in " + visible(s.e.opts.Dir) + " by name."), nil
	}
	c, d := s.t.indom(id)
	if d == nil {
		return nil, pcpwire.ErrInDom
	}
	err := error(pcpwire.ErrText)
	for _, p := range d.parts() {
		cat := c.files[p.file].cat
		in := &cat.InDoms[p.metric]
		var b []byte
		if b, err = text(cat, in.Short, in.Help, kind); err == nil {
			return b, nil
		}
	}
	return nil, err
}

func (s *session) Store(set *pcpwire.ValueSet) error {
	if !s.t.ours(set.PMID) || set.PMID.Cluster() != 0 {
		return pcpwire.ErrPermission
	}
	return s.storeControl(set)
}

// setDebug changes what is logged.
func (e *Exporter) setDebug(text string, number int32) error {
	if e.opts.Debug == nil {
		return pcpwire.ErrPermission
	}
	options := text
	if options == "" && number != 0 {
		options = "all"
	}
	if err := e.opts.Debug(options); err != nil {
		return pcpwire.ErrConv
	}
	e.debug.Store(&debugState{text, number})
	return nil
}
