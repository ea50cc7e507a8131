package reader

import (
	"cmp"
	"slices"
)

// metrics reads the metrics, whatever their names and items.
func (p *parser) metrics() error {
	sec, size := p.section[SectionMetrics], p.elem(SectionMetrics)
	p.c.Metrics = make([]Metric, sec.Count)
	for i := range uint64(sec.Count) {
		off := sec.Offset + i*size
		m := &p.c.Metrics[i]
		b, rest := p.at(atEntries, off, size, (uint64(sec.Count)-i)*size), off+8
		if p.c.Header.Version == 1 {
			rest = off + NameSize
			m.Name = p.name(b[:NameSize])
		} else {
			at, ok := native.Uint64(b), false
			if m.Name, ok = p.str(at); !ok {
				p.remark(SectionMetrics, int(i), "name", off, ErrBounds, "string at %d in a file of %d", at, p.size)
			}
		}
		b = b[rest-off:]
		m.Item = native.Uint32(b)
		m.Type = Type(native.Uint32(b[4:]))
		m.Semantics = int32(native.Uint32(b[8:]))
		m.Dimension = native.Uint32(b[12:])
		m.Serial = int32(native.Uint32(b[16:]))
		m.Short = p.help(SectionMetrics, int(i), "shorttext", rest+24, native.Uint64(b[24:]))
		m.Help = p.help(SectionMetrics, int(i), "helptext", rest+32, native.Uint64(b[32:]))
		m.InDom = -1
		if !m.Singular() {
			if k, ok := p.serials[uint32(m.Serial)]; ok {
				m.InDom = k
			} else {
				p.remark(SectionMetrics, int(i), "indom", rest+16, ErrReference, "no indom has the serial %d", uint64(uint32(m.Serial)))
			}
		}
		if p.overlap != nil {
			return p.overlap
		}
	}
	return nil
}

// valuesNow is values, unless that can wait until one of them is asked for.
func (p *parser) valuesNow() error {
	sec := p.section[SectionValues]
	if p.c.Outline || p.data == nil && sec.Count >= manyValues {
		p.c.lazy = p
		return nil
	}
	end := sec.Offset + uint64(sec.Count)*ValueSize
	return p.values(func(off uint64) uint64 { return native.Uint64(p.at(atEntries, off, 8, end-off)) })
}

// values finds the value slots of each metric: first come, first kept, as
// PCP's look-up does. word returns the 8 bytes at an offset in the section; it
// is called once for each.
func (p *parser) values(word func(off uint64) uint64) error {
	sec := p.section[SectionValues]
	p.owner, p.place = cleared(p.owner, int(sec.Count)), cleared(p.place, int(sec.Count))
	for i := range uint64(sec.Count) {
		off := sec.Offset + i*ValueSize
		p.owner[i], p.place[i] = p.value(int(i), off, word)
		if k := p.owner[i]; k >= 0 {
			m := &p.c.Metrics[k]
			switch {
			case m.n == 0 && p.place[i] == 0:
				m.first = uint32(off)
			case uint32(p.place[i]) != m.n || uint32(off) != m.first+m.n*ValueSize:
				m.n |= listed
			}
			m.n++
		}
	}
	next := cleared(p.next, len(p.c.Metrics))
	sum := uint32(0)
	for i := range p.c.Metrics {
		if m := &p.c.Metrics[i]; m.n&listed != 0 {
			m.first, next[i] = sum, sum
			sum += m.n &^ listed
		}
	}
	p.next = next
	if sum == 0 {
		return nil
	}
	p.c.values = make([]ValueRef, sum) // Inst is the place at first
	for i, k := range p.owner {
		if k >= 0 && p.c.Metrics[k].n&listed != 0 {
			p.c.values[next[k]] = ValueRef{Inst: p.place[i], Off: uint32(sec.Offset) + uint32(i)*ValueSize}
			next[k]++
		}
	}
	for i := range p.c.Metrics {
		if p.c.Metrics[i].n&listed != 0 {
			p.order(i)
		}
	}
	return nil
}

// value checks value i at off and returns the index of its metric, or -1, and
// which of the indom's instances it is for.
func (p *parser) value(i int, off uint64, word func(off uint64) uint64) (metric, place int32) {
	sec, at := p.section[SectionMetrics], word(off+16)
	k, ok := index(at, sec.Offset, uint64(sec.Count), p.elem(SectionMetrics))
	if !ok {
		p.remark(SectionValues, i, "metric", off+16, ErrReference, "metric at %d", at)
		return -1, 0
	}
	m := &p.c.Metrics[k]
	if m.Singular() {
		return int32(k), 0
	}
	if m.InDom < 0 {
		return -1, 0 // remarked with the metric
	}
	d, inst := &p.domain[m.InDom], word(off+24)
	n, ok := index(inst, d.off, d.n, p.elem(SectionInstances))
	if !ok {
		p.remark(SectionValues, i, "instance", off+24, ErrReference, "instance at %d of indom %d", inst, uint64(uint32(m.Serial)))
		return -1, 0
	}
	if d.at(n) < 0 {
		return -1, 0 // remarked with the instance
	}
	return int32(k), d.at(n)
}

// order brings the listed values of metric i into the order of its indom, drops later
// ones for an instance that already has one, and sets the instances.
func (p *parser) order(i int) {
	m := &p.c.Metrics[i]
	had := m.n &^ listed
	refs := p.c.values[m.first : m.first+had]
	byPlace := func(a, b ValueRef) int { return cmp.Compare(a.Inst, b.Inst) }
	if !slices.IsSortedFunc(refs, byPlace) {
		slices.SortStableFunc(refs, byPlace)
	}
	refs = slices.CompactFunc(refs, func(a, b ValueRef) bool { return a.Inst == b.Inst })
	if n := uint32(len(refs)); n < had {
		off := p.section[SectionMetrics].Offset + uint64(i)*p.elem(SectionMetrics)
		p.remark(SectionMetrics, i, "", off, ErrDuplicate, "%d values for instances that have one", uint64(had-n))
		m.n = n | listed
	}
	var insts []Instance
	if m.InDom >= 0 {
		insts = p.c.Instances(&p.c.InDoms[m.InDom])
	}
	for k := range refs {
		if m.Singular() {
			refs[k].Inst = -1
		} else {
			refs[k].Inst = insts[refs[k].Inst].Internal
		}
	}
}
