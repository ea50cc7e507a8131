package reader

import "slices"

// metrics reads the metrics, whatever their names and items.
func (p *parser) metrics() error {
	sec, size := p.section[SectionMetrics], p.elem(SectionMetrics)
	p.c.Metrics = make([]Metric, sec.Count)
	for i := range uint64(sec.Count) {
		off := sec.Offset + i*size
		m := &p.c.Metrics[i]
		rest := off + 8
		if p.c.Header.Version == 1 {
			rest = off + NameSize
			m.Name = p.name(off, NameSize)
		} else if t, ok := p.text(p.u64(off)); ok {
			m.Name = t
		} else {
			p.remark(SectionMetrics, int(i), "name", off, ErrBounds, "string at %d in a file of %d", p.u64(off), p.size)
		}
		m.Item = p.u32(rest)
		m.Type = Type(p.u32(rest + 4))
		m.Semantics = int32(p.u32(rest + 8))
		m.Dimension = p.u32(rest + 12)
		m.Serial = int32(p.u32(rest + 16))
		m.Short = p.help(SectionMetrics, int(i), "shorttext", rest+24)
		m.Help = p.help(SectionMetrics, int(i), "helptext", rest+32)
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

// values finds the value slots of each metric: first come, first kept, as
// PCP's look-up does.
func (p *parser) values() error {
	sec := p.section[SectionValues]
	owner := make([]int32, sec.Count) // metric of each value, -1: left out
	total := uint32(0)
	for i := range uint64(sec.Count) {
		k := p.owner(int(i), sec.Offset+i*ValueSize)
		owner[i] = k
		if k >= 0 {
			p.c.Metrics[k].n++
			total++
		}
	}
	next := make([]uint32, len(p.c.Metrics))
	sum := uint32(0)
	for i := range p.c.Metrics {
		m := &p.c.Metrics[i]
		m.first, next[i] = sum, sum
		sum += m.n
	}
	p.c.values = make([]ValueRef, total)
	pos := make([]uint32, total) // position of each value's instance in its indom
	for i, k := range owner {
		if k < 0 {
			continue
		}
		off := sec.Offset + uint64(i)*ValueSize
		ref := ValueRef{Inst: -1, Off: uint32(off)}
		if m := &p.c.Metrics[k]; !m.Singular() {
			inst := p.u64(off + 24)
			ref.Inst = int32(p.u32(inst + 12))
			d := &p.domain[m.InDom]
			n, _ := index(inst, d.off, d.n, p.elem(SectionInstances))
			pos[next[k]] = uint32(n)
		}
		p.c.values[next[k]] = ref
		next[k]++
	}
	for i := range p.c.Metrics {
		p.order(i, pos)
	}
	return nil
}

// owner checks value i at off and returns the index of its metric, or -1.
func (p *parser) owner(i int, off uint64) int32 {
	sec, size := p.section[SectionMetrics], p.elem(SectionMetrics)
	at := p.u64(off + 16)
	k, ok := index(at, sec.Offset, uint64(sec.Count), size)
	if !ok {
		p.remark(SectionValues, i, "metric", off+16, ErrReference, "metric at %d", at)
		return -1
	}
	m := &p.c.Metrics[k]
	if m.Singular() {
		return int32(k)
	}
	if m.InDom < 0 {
		return -1 // remarked with the metric
	}
	d, inst, elem := &p.domain[m.InDom], p.u64(off+24), p.elem(SectionInstances)
	if _, ok := index(inst, d.off, d.n, elem); !ok {
		p.remark(SectionValues, i, "instance", off+24, ErrReference, "instance at %d of indom %d", inst, uint64(uint32(m.Serial)))
		return -1
	}
	if !p.named(inst) || int32(p.u32(inst+12)) == -1 {
		return -1 // remarked with the instance
	}
	return int32(k)
}

// order brings the values of metric i into the order of its indom and drops
// later ones for an instance that already has one.
func (p *parser) order(i int, pos []uint32) {
	m := &p.c.Metrics[i]
	refs := p.c.values[m.first : m.first+m.n]
	if m.Singular() {
		p.drop(i, 1)
		return
	}
	pos = pos[m.first : m.first+m.n]
	sorted := true
	for k := 1; k < len(pos) && sorted; k++ {
		sorted = pos[k-1] < pos[k]
	}
	if !sorted {
		perm := make([]int, len(refs))
		for k := range perm {
			perm[k] = k
		}
		slices.SortStableFunc(perm, func(a, b int) int { return int(pos[a]) - int(pos[b]) })
		in := slices.Clone(refs)
		for k, from := range perm {
			refs[k] = in[from]
		}
	}
	if len(refs) == 0 || sorted && p.domain[m.InDom].rising {
		return
	}
	seen := make(map[int32]struct{}, len(refs))
	n := 0
	for _, r := range refs {
		if _, dup := seen[r.Inst]; !dup {
			seen[r.Inst] = struct{}{}
			refs[n] = r
			n++
		}
	}
	p.drop(i, n)
}

// drop keeps the first n values of metric i.
func (p *parser) drop(i, n int) {
	m := &p.c.Metrics[i]
	if int(m.n) > n {
		p.remark(SectionMetrics, i, "", p.section[SectionMetrics].Offset+uint64(i)*p.elem(SectionMetrics), ErrDuplicate, "%d values for instances that have one", uint64(m.n)-uint64(n))
		m.n = uint32(n)
	}
}
