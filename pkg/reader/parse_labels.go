package reader

import "sort"

// labels reads the labels, whatever they belong to.
func (p *parser) labels() error {
	sec := p.section[SectionLabels]
	p.c.Labels = make([]Label, sec.Count)
	for i := range uint64(sec.Count) {
		off := sec.Offset + i*LabelSize
		b := p.at(atEntries, off, LabelSize, (uint64(sec.Count)-i)*LabelSize)
		p.c.Labels[i] = Label{
			Flags:    LabelFlags(native.Uint32(b)),
			Identity: native.Uint32(b[4:]),
			Internal: int32(native.Uint32(b[8:])),
			Payload:  p.name(b[12 : 12+payloadSize]),
		}
		if p.c.Labels[i].Flags&LabelInstances != 0 {
			p.c.instLabels = append(p.c.instLabels, uint32(i))
		}
	}
	list := p.c.instLabels
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &p.c.Labels[list[i]], &p.c.Labels[list[j]]
		return a.Identity < b.Identity || a.Identity == b.Identity && a.Internal < b.Internal
	})
	p.c.instLabels = exact(p.c.instLabels)
	return p.overlap
}
