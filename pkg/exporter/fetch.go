package exporter

import (
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// chunk bounds how many simple metrics are loaded before they are encoded, so
// that what is between the two stays in the nearest cache.
const chunk = 512

// tries is how often a reply is made anew because a file was written to
// meanwhile, before such files are left out of it.
const tries = 3

// restlessFor is for how many such replies a file that was replaced is one of
// those.
const restlessFor = 100

// Fetch is for pmda. Values are loaded into memory of the session's own, file
// by file, and encoded from there. A file that was rewritten since Begin would
// be read with its old layout: so at the end the directory must be as quiet as
// it was, or what was rewritten is looked at and the reply made again.
func (s *session) Fetch(pmids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) error {
	if profile != nil && profile.State == pcpwire.ProfileInclude && len(profile.InDoms) == 0 {
		profile = nil
	}
	s.complete()
	s.fetch(pmids, profile, b, nil)
	if !s.e.dir.Still(s.began) {
		s.fetchAgain(pmids, profile, b)
	}
	return nil
}

// fetchAgain is for the case that something has happened since Begin. What was
// written to may be as it was, and have been another file in between: so the
// reply is made anew in any case. After some tries the files that are replaced
// all the time, and were written to just now, are left out of it, and what else
// is written to is taken for values.
func (s *session) fetchAgain(pmids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) {
	s.again++
	for name, last := range s.restless {
		if s.again-last > restlessFor {
			delete(s.restless, name)
		}
	}
	skip := map[string]bool{}
	for n := 1; ; n++ {
		old, began := s.t.snap, s.began
		s.End()
		s.Begin()
		if s.t.snap.Touches != old.Touches {
			for _, name := range replaced(old.Files, s.t.snap.Files) {
				s.restless[name] = s.again
			}
		}
		again := n < tries
		if !again {
			for _, name := range s.e.dir.LookedAt(began) {
				if _, ok := s.restless[name]; ok && !skip[name] {
					skip[name], again = true, true
				}
			}
		}
		if !again {
			return
		}
		s.fetch(pmids, profile, b, skip)
		if s.e.dir.Still(s.began) {
			return
		}
	}
}

// replaced are the names of files that are not the same in both lists, each of
// which is by name.
func replaced(a, b []*reader.File) (names []string) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			names, a = append(names, a[0].Name), a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			names, b = append(names, b[0].Name), b[1:]
		default:
			if a[0] != b[0] {
				names = append(names, a[0].Name)
			}
			a, b = a[1:], b[1:]
		}
	}
	return names
}

// fetch makes one reply.
func (s *session) fetch(pmids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder, skip map[string]bool) {
	t := s.t
	b.Begin(0, len(pmids), s.size(pmids))
	for i := 0; i < len(pmids); {
		p := pmids[i]
		c, it := t.find(p)
		if c == nil {
			if p.Cluster() == 0 && t.ours(p) {
				s.fetchControl(p, profile, b)
			} else {
				b.Status(p, pcpwire.ErrPMID)
			}
			i++
			continue
		}
		pl := s.plan(c)
		if n := s.simple(pmids[i:], pl); n > 0 {
			s.fetchSimple(pmids[i:i+n], c.files[pl.slots[p.Item()].file&fileMask], b, skip)
			i += n
			continue
		}
		if it.shared() {
			s.fetchShared(p, c, pl, it.metric, profile, b, skip)
		} else {
			s.fetchOne(p, c, pl, it, profile, b, skip)
		}
		i++
	}
}

// size is how many values there may be. A large request is taken for the same
// as the one before if it is as long: clients ask for the same again and
// again, and a wrong number costs time only.
func (s *session) size(pmids []pcpwire.PMID) int {
	if len(pmids) < 64 {
		return s.count(pmids)
	}
	if s.sized.table != s.t.number || s.sized.pmids != len(pmids) {
		s.sized.table, s.sized.pmids, s.sized.values = s.t.number, len(pmids), s.count(pmids)
	}
	return s.sized.values
}

func (s *session) count(pmids []pcpwire.PMID) int {
	var cluster pcpwire.PMID
	var slots []slot
	n := 0
	for i, p := range pmids {
		if p>>10 != cluster>>10 || i == 0 {
			cluster, slots = p, nil
			if c := s.t.clusters.at(p.Cluster()); c != nil && s.t.ours(p) {
				slots = s.plan(c).slots
			}
		}
		k := p.Item()
		if k >= uint32(len(slots)) || slots[k].file>>kindShift != kindGeneral {
			n++
		} else {
			n += int(slots[k].off)
		}
	}
	return n
}

// simple is how many of the first pmids are simple metrics of one file; it
// notes where they are.
func (s *session) simple(pmids []pcpwire.PMID, pl *plan) int {
	slots, n := pl.slots, 0
	offs, types := s.offs[:], s.types[:]
	cluster := pmids[0] >> 10
	var file uint32
	for _, p := range pmids {
		k := p & (1<<10 - 1)
		if n == len(offs) || n == len(types) || p>>10 != cluster || int(k) >= len(slots) {
			break
		}
		sl := slots[k]
		kind := sl.file >> kindShift
		if kind <= kindGeneral || int(kind) >= len(wireTypes) {
			break
		}
		if n == 0 {
			file = sl.file & fileMask
		} else if sl.file&fileMask != file {
			break
		}
		offs[n], types[n] = sl.off, wireTypes[kind]
		n++
	}
	return n
}

// fetchSimple adds simple metrics of f, as simple has noted them.
func (s *session) fetchSimple(pmids []pcpwire.PMID, f *file, b *pcpwire.ResultBuilder, skip map[string]bool) {
	n := len(pmids)
	types, bits := s.types[:n], s.bits[:n]
	if skip[f.f.Name] || !f.f.LoadSlots(s.offs[:n], bits) {
		for _, p := range pmids {
			b.Status(p, 0)
		}
		return
	}
	if f.cat.Header.Flags&reader.FlagSentinel != 0 || bigEndian {
		settle(types, bits, f.cat.Header.Flags&reader.FlagSentinel != 0)
	}
	b.Singular(pmids, types, bits)
}

// settle finds those that have no value, and brings those of 32 bits into the
// low half.
func settle(types []pcpwire.Type, bits []uint64, sentinel bool) {
	for i, t := range types {
		var rt reader.Type
		switch t {
		case pcpwire.TypeDouble:
			rt = reader.TypeDouble
		case pcpwire.TypeFloat:
			rt = reader.TypeFloat
		default:
			rt = reader.TypeU64
		}
		if sentinel && reader.SentinelOf(rt, bits[i]) {
			types[i] = pcpwire.TypeNoSupport
		}
		if t == pcpwire.TypeU32 || t == pcpwire.TypeFloat {
			bits[i] = uint64(reader.Narrow(bits[i]))
		}
	}
}

// bigEndian tells whether the low half of a slot is at its higher address.
var bigEndian = reader.Narrow(1) != 1

// fetchOne adds a metric of one file.
func (s *session) fetchOne(p pcpwire.PMID, c *cluster, pl *plan, it item, profile *pcpwire.Profile, b *pcpwire.ResultBuilder, skip map[string]bool) {
	k := int(it.file - 1)
	f := c.files[k]
	m := &f.cat.Metrics[it.metric]
	refs := pl.refs(k, it.metric)
	if profile != nil && !m.Singular() {
		s.refs = s.refs[:0]
		refs = s.filter(&refs, profile.Filter(pcpwire.NewInDom(s.t.domain, c.indomNumber(k, uint32(m.Serial)))))
	}
	s.vals.Reset()
	s.wants = append(s.wants[:0], reader.Want{Type: m.Type, Refs: refs})
	loaded := pl.layouts[k] != nil && !skip[f.f.Name] && f.f.Load(s.wants, &s.vals)
	switch n := len(s.vals.Insts); {
	case n > 0:
		s.encode(p, m.Type, 0, n, b)
	case loaded:
		b.Status(p, s.noValue(c, k, m, pl.refs(k, it.metric), profile))
	default:
		b.Status(p, 0)
	}
}

// filter keeps the values of instances in the profile.
func (s *session) filter(refs *reader.Refs, f pcpwire.ProfileFilter) reader.Refs {
	if f.All() {
		return *refs
	}
	from := len(s.refs)
	for r := range refs.All() {
		if f.Includes(r.Inst) {
			s.refs = append(s.refs, r)
		}
	}
	return reader.RefList(s.refs[from:len(s.refs):len(s.refs)])
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
func (s *session) noValue(c *cluster, k int, m *reader.Metric, refs reader.Refs, profile *pcpwire.Profile) pcpwire.Status {
	last := pcpwire.InstNull
	if !m.Singular() {
		found := false
		if _, d := s.t.indom(pcpwire.NewInDom(s.t.domain, c.indomNumber(k, uint32(m.Serial)))); d != nil {
			filter := profile.Filter(pcpwire.NewInDom(s.t.domain, d.number))
			insts, _ := s.instances(pcpwire.NewInDom(s.t.domain, d.number))
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
	case refs.Len() == 0 || refs.At(refs.Len()-1).Inst != last:
		return pcpwire.ErrInst
	default:
		return 0
	}
}

// fetchShared adds a metric whose values come from several files.
func (s *session) fetchShared(pmid pcpwire.PMID, c *cluster, pl *plan, shared uint32, profile *pcpwire.Profile, b *pcpwire.ResultBuilder, skip map[string]bool) {
	m, sp := &c.shared[shared], &pl.shared[shared]
	first := c.first(m)
	filter := profile.Filter(pcpwire.NewInDom(s.t.domain, m.number))
	s.vals.Reset()
	s.refs = s.refs[:0]
	for _, r := range sp.runs {
		f := c.files[r.file].f
		if skip[f.Name] {
			continue
		}
		refs := reader.RefList(sp.refs[r.from:r.to])
		if !first.Singular() {
			refs = s.filter(&refs, filter)
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
