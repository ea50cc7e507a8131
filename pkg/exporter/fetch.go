package exporter

import (
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// chunk bounds how many values are loaded before they are encoded, so that
// they stay in the cache; one metric may have more.
const chunk = 4096

// tries is how often a reply is made anew because a file was written to
// meanwhile, before such files are left out of it.
const tries = 3

// Fetch is for pmda. Values are loaded into memory of the session's own, file
// by file, and encoded from there. A file that was rewritten since Begin would
// be read with its old layout: so at the end the directory must be as quiet as
// it was, or what was rewritten is looked at and the reply made again.
func (s *session) Fetch(pmids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) error {
	if profile != nil && profile.State == pcpwire.ProfileInclude && len(profile.InDoms) == 0 {
		profile = nil
	}
	s.fetch(pmids, profile, b, nil)
	if s.e.dir.Quiet() && s.e.dir.Touches() == s.touches {
		return nil
	}
	s.fetchAgain(pmids, profile, b)
	return nil
}

// fetchAgain is for the case that something has happened since Begin.
func (s *session) fetchAgain(pmids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) {
	skip := map[*reader.File]bool{}
	for n := 1; ; n++ {
		before, old := s.touches, s.t
		s.End()
		s.Begin()
		if s.touches == before {
			return // nothing that was read
		}
		if n >= tries { // files that are written to all the time
			for _, f := range old.snap.Files {
				if !s.has(f) {
					skip[f] = true
				}
			}
			for _, f := range s.t.snap.Files {
				if !contains(old.snap.Files, f) {
					skip[f] = true
				}
			}
		}
		s.fetch(pmids, profile, b, skip)
		if s.e.dir.Quiet() && s.e.dir.Touches() == s.touches {
			return
		}
	}
}

func (s *session) has(f *reader.File) bool { return contains(s.t.snap.Files, f) }

func contains(files []*reader.File, f *reader.File) bool {
	for _, o := range files {
		if o == f {
			return true
		}
	}
	return false
}

// fetch makes one reply.
func (s *session) fetch(pmids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder, skip map[*reader.File]bool) {
	t, n := s.t, 0
	for _, p := range pmids {
		if c, it := t.find(p); c != nil {
			n += c.values(it)
		} else if p.Cluster() == 0 {
			n++
		}
	}
	b.Begin(0, len(pmids), n)
	for i := 0; i < len(pmids); {
		p := pmids[i]
		c, it := t.find(p)
		switch {
		case c == nil && p.Cluster() == 0 && p.Domain() == t.domain:
			s.fetchControl(p, profile, b)
			i++
		case c == nil:
			b.Status(p, pcpwire.ErrPMID)
			i++
		case it.shared():
			s.fetchShared(p, c, &c.shared[it.metric], profile, b, skip)
			i++
		default:
			i = s.fetchRun(pmids, i, c, c.files[it.file-1], profile, b, skip)
		}
	}
}

// values is how many values a metric has at the most.
func (c *cluster) values(it item) int {
	if it.shared() {
		return len(c.shared[it.metric].refs)
	}
	cat := c.files[it.file-1].cat
	return len(cat.Values(&cat.Metrics[it.metric]))
}

// fetchRun adds the metrics from i on that are one file's, and returns where
// they end.
func (s *session) fetchRun(pmids []pcpwire.PMID, i int, c *cluster, f *file, profile *pcpwire.Profile, b *pcpwire.ResultBuilder, skip map[*reader.File]bool) int {
	from, total := i, 0
	s.wants, s.refs = s.wants[:0], s.refs[:0]
	cat := f.cat
	for ; i < len(pmids) && total < chunk; i++ {
		p := pmids[i]
		if p>>10 != pmids[from]>>10 {
			break
		}
		n := p.Item()
		if n >= uint32(len(c.items)) || c.items[n].file == noFile || c.items[n].shared() || c.files[c.items[n].file-1] != f {
			break
		}
		m := &cat.Metrics[c.items[n].metric]
		refs := cat.Values(m)
		if profile != nil && !m.Singular() {
			refs = s.filter(refs, profile.Filter(pcpwire.NewInDom(s.t.domain, c.indomNumber(int(c.items[n].file-1), uint32(m.Serial)))))
		}
		s.wants = append(s.wants, reader.Want{Type: m.Type, Refs: refs})
		total += len(refs)
	}
	s.vals.Reset()
	loaded := !skip[f.f] && f.f.Load(s.wants, &s.vals)
	at := 0
	for k, p := range pmids[from:i] {
		end := at
		if loaded {
			end = s.vals.End[k]
		}
		if end == at {
			it := c.items[p.Item()]
			b.Status(p, s.noValue(c, int(it.file-1), it.metric, profile, loaded))
			continue
		}
		s.encode(p, s.wants[k].Type, at, end, b)
		at = end
	}
	return i
}

// filter keeps the values of instances in the profile.
func (s *session) filter(refs []reader.ValueRef, f pcpwire.ProfileFilter) []reader.ValueRef {
	if f.All() {
		return refs
	}
	from := len(s.refs)
	for _, r := range refs {
		if f.Includes(r.Inst) {
			s.refs = append(s.refs, r)
		}
	}
	return s.refs[from:len(s.refs):len(s.refs)]
}

// encode adds the value set of one metric from the values loaded.
func (s *session) encode(pmid pcpwire.PMID, t reader.Type, from, to int, b *pcpwire.ResultBuilder) {
	insts, bits := s.vals.Insts[from:to], s.vals.Bits[from:to]
	switch t {
	case reader.TypeI32, reader.TypeU32:
		b.Set32(pmid, insts, bits)
	case reader.TypeI64, reader.TypeElapsed:
		b.Set64(pmid, pcpwire.TypeI64, insts, bits)
	case reader.TypeU64:
		b.Set64(pmid, pcpwire.TypeU64, insts, bits)
	case reader.TypeDouble:
		b.Set64(pmid, pcpwire.TypeDouble, insts, bits)
	case reader.TypeFloat:
		b.SetFloat(pmid, insts, bits)
	case reader.TypeString:
		b.BeginStrings(pmid, len(insts))
		for i, inst := range insts {
			b.AddString(inst, s.vals.String(bits[i]))
		}
	case reader.TypeNoSupport:
		b.Status(pmid, pcpwire.ErrAppVersion) // never has values
	}
}

// noValue is the status of a metric of which no value was found. As with
// PCP's agent it is that of the last instance asked for: a missing value slot
// is an unknown instance, a slot without a value is none.
func (s *session) noValue(c *cluster, k int, metric uint32, profile *pcpwire.Profile, loaded bool) pcpwire.Status {
	cat := c.files[k].cat
	m := &cat.Metrics[metric]
	refs := cat.Values(m)
	if !loaded {
		return 0
	}
	last := int32(pcpwire.InstNull)
	if !m.Singular() {
		found := false
		if _, d := s.t.indom(pcpwire.NewInDom(s.t.domain, c.indomNumber(k, uint32(m.Serial)))); d != nil {
			filter := profile.Filter(pcpwire.NewInDom(s.t.domain, d.number))
			insts, _ := s.Instances(pcpwire.NewInDom(s.t.domain, d.number))
			for i := insts.Len() - 1; i >= 0 && !found; i-- {
				last, _ = insts.At(i)
				found = filter.Includes(last)
			}
		}
		if !found {
			return 0
		}
	}
	switch {
	case m.Type == reader.TypeNoSupport:
		return pcpwire.ErrAppVersion
	case len(refs) == 0 || refs[len(refs)-1].Inst != last:
		return pcpwire.ErrInst
	default:
		return 0
	}
}

// fetchShared adds a metric whose values come from several files.
func (s *session) fetchShared(pmid pcpwire.PMID, c *cluster, m *sharedMetric, profile *pcpwire.Profile, b *pcpwire.ResultBuilder, skip map[*reader.File]bool) {
	first := c.first(m)
	filter := profile.Filter(pcpwire.NewInDom(s.t.domain, m.number))
	s.vals.Reset()
	s.refs = s.refs[:0]
	for _, r := range m.runs {
		f := c.files[r.file].f
		if skip[f] {
			continue
		}
		refs := m.refs[r.from:r.to]
		if !first.Singular() {
			refs = s.filter(refs, filter)
		}
		s.wants = append(s.wants[:0], reader.Want{Type: first.Type, Refs: refs})
		f.Load(s.wants, &s.vals)
	}
	if n := len(s.vals.Insts); n > 0 {
		s.encode(pmid, first.Type, 0, n, b)
		return
	}
	status := pcpwire.Status(0)
	if first.Type == reader.TypeNoSupport {
		status = pcpwire.ErrAppVersion
	}
	b.Status(pmid, status)
}
