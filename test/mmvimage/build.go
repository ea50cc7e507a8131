package mmvimage

// builder fills in an image whose layout is known.
type builder struct {
	*Image
	at      Layout
	buf     []byte
	strings int // used so far
}

func (b *builder) u32(off uint64, v uint32) { b.order.PutUint32(b.buf[off:], v) }

func (b *builder) u64(off, v uint64) { b.order.PutUint64(b.buf[off:], v) }

func (b *builder) text(off, size uint64, s string) { copy(b.buf[off:off+size], s) }

// str takes the next string slot and returns its offset.
func (b *builder) str(s string) uint64 {
	off := b.at.String(b.strings)
	b.strings++
	b.text(off, StringSize, s)
	return off
}

// help is the offset of a help text, 0 for none.
func (b *builder) help(s string) uint64 {
	if s == "" {
		return 0
	}
	return b.str(s)
}

// name puts a name into its field at off: itself in version 1, else the offset of a string.
func (b *builder) name(off uint64, s string) {
	if b.version == 1 {
		b.text(off, nameSize, s)
		return
	}
	b.u64(off, b.str(s))
}

func (b *builder) header() {
	copy(b.buf, "MMV\x00")
	b.u32(HdrVersion, uint32(b.version))
	b.u64(HdrG1, b.g1)
	b.u64(HdrG2, b.g2)
	b.u32(HdrTOCs, uint32(b.at.NumTOC))
	b.u32(HdrFlags, uint32(b.flags))
	b.u32(HdrPID, uint32(b.pid))
	b.u32(HdrCluster, uint32(b.cluster))
	for i, s := range b.at.sections() {
		at := b.at.TOC(i)
		b.u32(at+TOCType, s.typ)
		b.u32(at+TOCCount, uint32(s.count))
		b.u64(at+TOCOffset, s.off)
	}
}

func (b *builder) indomSection() {
	n := 0
	for i, d := range b.indoms {
		at := b.at.InDom(i)
		b.u32(at+InDomSerial, d.serial)
		b.u32(at+InDomCount, uint32(len(d.insts)))
		b.u64(at+InDomOffset, b.at.Instance(n))
		b.u64(at+InDomShort, b.help(d.short))
		b.u64(at+InDomHelp, b.help(d.help))
		for _, inst := range d.insts {
			off := b.at.Instance(n)
			n++
			b.u64(off+InstInDom, at)
			b.u32(off+InstInternal, uint32(inst.ID))
			b.name(off+InstName, inst.Name)
		}
	}
}

func (b *builder) metric(i int, m Metric) {
	b.name(b.at.Metric(i), m.Name)
	at := b.at.MetricFields(i)
	b.u32(at+MetricItem, m.Item)
	b.u32(at+MetricType, uint32(m.Type))
	b.u32(at+MetricSem, uint32(m.Sem))
	b.u32(at+MetricUnits, m.Units)
	b.u32(at+MetricInDom, uint32(m.InDom))
	b.u64(at+MetricShort, b.help(m.Short))
	b.u64(at+MetricHelp, b.help(m.Help))
}

func (b *builder) value(i int, r record) {
	at := b.at.Value(i)
	if r.narrow {
		b.u32(at+ValueBits, uint32(r.Bits))
	} else {
		b.u64(at+ValueBits, r.Bits)
	}
	extra := uint64(r.Extra)
	if r.isText {
		extra = b.str(r.text)
	}
	b.u64(at+ValueExtra, extra)
	b.u64(at+ValueMetric, b.at.Metric(r.metric))
	if r.inst >= 0 {
		b.u64(at+ValueInst, b.at.Instance(r.inst))
	}
}
