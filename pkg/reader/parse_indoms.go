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
		b := p.at(atEntries, off, InDomSize, (uint64(sec.Count)-i)*InDomSize)
		d := InDom{Serial: native.Uint32(b), first: uint32(len(p.c.instances))}
		n, at, short, help := uint64(native.Uint32(b[4:])), native.Uint64(b[8:]), native.Uint64(b[16:]), native.Uint64(b[24:])
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
		d.Short = p.help(SectionInDoms, int(i), "shorttext", off+16, short)
		d.Help = p.help(SectionInDoms, int(i), "helptext", off+24, help)
		dom := domain{off: at, n: n}
		if !p.c.Outline {
			p.instances(&dom)
		}
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
	named := p.c.Header.Version == 1 // else they point to their names
	p.c.instances = slices.Grow(p.c.instances, int(d.n))
	kept := p.c.instances[first:]
	var seen map[int32]int32 // ids to what is kept, once they are known not to rise
	var b []byte
	for i := range d.n {
		if uint64(len(b)) < elem {
			b = p.at(atInstances, d.off+i*elem, elem, (d.n-i)*elem)
		}
		in := Instance{Internal: int32(native.Uint32(b[12:]))}
		switch {
		case !named:
			in.External = p.external(native.Uint64(b[16:]))
		case b[16] != 0:
			in.External = p.name(b[16:Instance1Size])
		}
		b = b[elem:]
		switch {
		case p.overlap != nil:
			return
		case in.External == 0:
			p.remark(SectionInstances, int(i), "name", d.off+i*elem+16, ErrNoName, "indom at %d", d.off)
			d.set(i, -1)
			continue
		case in.Internal == -1: // means "none" everywhere in PCP
			p.remark(SectionInstances, int(i), "internal", d.off+i*elem+12, ErrRange, "-1")
			d.set(i, -1)
			continue
		}
		if k := len(kept); k > 0 && seen == nil && kept[k-1].Internal >= in.Internal {
			seen = make(map[int32]int32, k)
			for j, o := range kept {
				seen[o.Internal] = int32(j)
			}
		}
		place := int32(len(kept))
		if seen != nil {
			if j, dup := seen[in.Internal]; dup {
				p.remark(SectionInstances, int(i), "internal", d.off+i*elem+12, ErrDuplicate, "%d", uint64(uint32(in.Internal)))
				d.set(i, j)
				continue
			}
			seen[in.Internal] = place
		}
		d.set(i, place)
		kept = append(kept, in) // there is room
	}
	p.c.instances = p.c.instances[:first+len(kept)]
}

// external copies the name at off, zero where there is none.
func (p *parser) external(off uint64) Text {
	if off == 0 {
		return 0
	}
	t, _ := p.str(off)
	if t == 0 || p.empty(t) {
		return 0
	}
	return t
}
