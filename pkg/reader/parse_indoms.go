package reader

import "slices"

// indoms reads the indoms and their instances.
func (p *parser) indoms() error {
	sec := p.section[SectionInDoms]
	p.serials = make(map[uint32]int32, sec.Count)
	p.c.InDoms = make([]InDom, 0, sec.Count)
	p.domain = make([]domain, 0, sec.Count)
	left := p.filled / p.elem(SectionInstances) // instances that the file has room for
	for i := range uint64(sec.Count) {
		off := sec.Offset + i*InDomSize
		d := InDom{Serial: p.u32(off), first: uint32(len(p.c.instances))}
		n, at := uint64(p.u32(off+4)), p.u64(off+8)
		if _, dup := p.serials[d.Serial]; dup {
			p.remark(SectionInDoms, int(i), "serial", off, ErrDuplicate, "%d", uint64(d.Serial))
			continue
		}
		if n > 0 && !p.inside(at, n, p.elem(SectionInstances)) {
			p.remark(SectionInDoms, int(i), "offset", off+8, ErrBounds, "%d instances from %d in a file of %d", n, at, p.size)
			n = 0
		}
		if n > left {
			return p.errorf(SectionInDoms, int(i), "count", off+4, ErrCount, "%d instances, more than there are bytes for in the file", n)
		}
		left -= n
		d.Short = p.help(SectionInDoms, int(i), "shorttext", off+16)
		d.Help = p.help(SectionInDoms, int(i), "helptext", off+24)
		dom := domain{off: at, n: n}
		p.instances(&dom)
		if p.overlap != nil {
			return p.overlap
		}
		d.n = uint32(len(p.c.instances)) - d.first
		p.serials[d.Serial] = int32(len(p.c.InDoms))
		p.c.InDoms = append(p.c.InDoms, d)
		p.domain = append(p.domain, dom)
	}
	return nil
}

// instances appends the instances of one indom: those with a name, no
// internal id twice.
func (p *parser) instances(d *domain) {
	elem, first := p.elem(SectionInstances), len(p.c.instances)
	p.c.instances = slices.Grow(p.c.instances, int(d.n))
	var seen map[int32]int32 // ids to what is kept, once they are known not to rise
	for i := range d.n {
		off := d.off + i*elem
		in := Instance{Internal: int32(p.u32(off + 12)), External: p.external(off)}
		switch {
		case p.overlap != nil:
			return
		case in.External == 0:
			p.remark(SectionInstances, int(i), "name", off+16, ErrNoName, "indom at %d", d.off)
			d.set(i, -1)
			continue
		case in.Internal == -1: // means "none" everywhere in PCP
			p.remark(SectionInstances, int(i), "internal", off+12, ErrRange, "-1")
			d.set(i, -1)
			continue
		}
		kept := p.c.instances[first:]
		if k := len(kept); k > 0 && seen == nil && kept[k-1].Internal >= in.Internal {
			seen = make(map[int32]int32, k)
			for j, o := range kept {
				seen[o.Internal] = int32(j)
			}
		}
		place := int32(len(kept))
		if seen != nil {
			if j, dup := seen[in.Internal]; dup {
				p.remark(SectionInstances, int(i), "internal", off+12, ErrDuplicate, "%d", uint64(uint32(in.Internal)))
				d.set(i, j)
				continue
			}
			seen[in.Internal] = place
		}
		d.set(i, place)
		p.c.instances = append(p.c.instances, in)
	}
}

// external copies the name of the instance at off, zero where it has none.
func (p *parser) external(off uint64) Text {
	var t Text
	if p.c.Header.Version == 1 {
		if p.data[off+16] != 0 {
			t = p.name(off+16, NameSize)
		}
	} else if o := p.u64(off + 16); o != 0 {
		t, _ = p.text(o)
	}
	if t == 0 || p.arena[t-1] == 0 {
		return 0
	}
	return t
}
