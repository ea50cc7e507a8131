package dump

import (
	"fmt"
	"math"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// toc decodes all sections in the order of the TOC.
func (d *decoder) toc() {
	for i, e := range d.TOC() {
		if d.left--; d.left < 0 {
			return // what follows is no TOC
		}
		t := TOC{Place: Place{Index: i, Offset: image.TOCOffset(i)}, Type: uint32(e.Section), Section: e.Section.String(), Count: e.Count, At: e.Offset}
		d.section(&t, e)
		d.doc.TOC = append(d.doc.TOC, t)
	}
}

// section decodes the entries of a section that lie in the file.
func (d *decoder) section(t *TOC, e reader.TOCEntry) {
	if e.Section < reader.SectionInDoms || e.Section > reader.SectionLabels {
		t.fault("Unrecognised TOC[%d] type: 0x%x", t.Index, t.Type)
		return
	}
	if e.Count < 0 {
		t.fault("%s", t.badCount())
	}
	elem := d.Elem(e.Section)
	n := d.Fit(e.Offset, int64(e.Count), elem)
	if n < int(e.Count) {
		t.fault("Bad file size: too small for toc[%d] %s[%d]", t.Index, e.Section, n)
	}
	if n > d.left { // more than the file has room for: sections share their bytes
		t.fault("Bad TOC[%d]: sections overlap", t.Index)
		n = d.left
	}
	d.left -= n
	t.first, t.n = d.count(e.Section), n
	for i := range n {
		d.entry(e.Section, Place{Index: i, Offset: e.Offset + uint64(i)*elem})
	}
}

// badCount is what mmvdump says of a number of entries.
func (t *TOC) badCount() string {
	return fmt.Sprintf("Bad TOC[%d]: invalid entry count %d", t.Index, t.Count)
}

// count is how many entries of a section there are so far.
func (d *decoder) count(s reader.Section) int {
	switch s {
	case reader.SectionInDoms:
		return len(d.doc.InDoms)
	case reader.SectionInstances:
		return len(d.doc.Instances)
	case reader.SectionMetrics:
		return len(d.doc.Metrics)
	case reader.SectionValues:
		return len(d.doc.Values)
	case reader.SectionStrings:
		return len(d.doc.Strings)
	default:
		return len(d.doc.Labels)
	}
}

// entry decodes an entry, which lies in the file.
func (d *decoder) entry(s reader.Section, p Place) {
	switch s {
	case reader.SectionInDoms:
		d.indom(p)
	case reader.SectionInstances:
		d.instance(p)
	case reader.SectionMetrics:
		d.metric(p)
	case reader.SectionValues:
		d.value(p)
	case reader.SectionStrings:
		text := p.name("string", d.String(p.Offset), d.Size())
		d.doc.Strings = append(d.doc.Strings, String{p, text})
	default:
		d.label(p)
	}
}

func (d *decoder) indom(p Place) {
	in, _ := d.InDom(p.Offset)
	e := InDom{Place: p, Serial: in.Serial, Count: in.Count, At: in.Offset}
	e.Short = d.text(&e.Place, "shorttext", in.Short)
	e.Help = d.text(&e.Place, "helptext", in.Help)
	d.doc.InDoms = append(d.doc.InDoms, e)
}

func (d *decoder) instance(p Place) {
	in, _ := d.Instance(p.Offset)
	e := Instance{Place: p, Internal: in.Internal}
	if dom, ok := d.InDom(in.InDom); ok {
		e.InDom = &dom.Serial
	} else {
		e.fault("indom at offset %d is not in a file of %d bytes", in.InDom, d.Size())
	}
	e.Name = e.name("name", in.Name, d.Size())
	d.doc.Instances = append(d.doc.Instances, e)
}

func (d *decoder) metric(p Place) {
	m, _ := d.Metric(p.Offset)
	e := Metric{
		Place: p, Item: m.Item, Type: typeName(m.Type), TypeCode: int32(m.Type),
		Semantics: semanticsName(m.Semantics), SemanticsCode: m.Semantics,
		Units: pcpwire.Units(m.Dimension).String(), UnitsBits: m.Dimension, padding: m.Padding,
	}
	if !m.Singular() {
		serial := uint32(m.Serial)
		e.InDom = &serial
	}
	e.Name = e.name("name", m.Name, d.Size())
	e.Short = d.text(&e.Place, "shorttext", m.Short)
	e.Help = d.text(&e.Place, "helptext", m.Help)
	d.doc.Metrics = append(d.doc.Metrics, e)
}

func (d *decoder) value(p Place) {
	v, _ := d.Value(p.Offset)
	e := Value{Place: p, Extra: v.Extra, bits: v.Bits}
	if m, ok := d.Metric(v.Metric); ok {
		e.Metric = e.name("name of the metric", m.Name, d.Size())
		e.Item, e.kind, e.typeOK = &m.Item, m.Type, true
		if !m.Singular() {
			e.inst = true
			d.valueInstance(&e, v.Instance)
		}
		d.number(&e, &v)
	} else {
		e.fault("metric at offset %d is not in a file of %d bytes", v.Metric, d.Size())
	}
	d.doc.Values = append(d.doc.Values, e)
}

func (d *decoder) valueInstance(e *Value, off uint64) {
	in, ok := d.Instance(off)
	if !ok {
		e.fault("instance at offset %d is not in a file of %d bytes", off, d.Size())
		return
	}
	e.Internal = &in.Internal
	e.Instance = e.name("name of the instance", in.Name, d.Size())
}

// number takes the value out of its bits.
func (d *decoder) number(e *Value, v *image.Value) {
	switch e.kind {
	case reader.TypeI32:
		e.Value = int32(v.Bits32)
	case reader.TypeU32:
		e.Value = v.Bits32
	case reader.TypeI64:
		e.Value = int64(v.Bits)
	case reader.TypeU64:
		e.Value = v.Bits
	case reader.TypeFloat:
		e.Value = float(math.Float32frombits(v.Bits32))
	case reader.TypeDouble:
		e.Value = float(math.Float64frombits(v.Bits))
	case reader.TypeString:
		if s := e.name("string", d.String(uint64(v.Extra)), d.Size()); s != nil {
			e.Value = *s
		}
	case reader.TypeElapsed:
		t := int64(v.Bits)
		if v.Extra < 0 {
			t += d.now.UnixMicro() + v.Extra
		}
		e.Value = t
	default:
	}
	e.bits = v.Bits
	if e.kind == reader.TypeFloat {
		e.bits = uint64(v.Bits32)
	}
}

func (d *decoder) label(p Place) {
	l, _ := d.Label(p.Offset)
	e := Label{Place: p, Flags: labelFlags(l.Flags), FlagBits: uint32(l.Flags), Identity: l.Identity, Internal: l.Internal}
	if s := e.name("label", l.Payload, d.Size()); s != nil {
		e.Text = *s
	}
	d.doc.Labels = append(d.doc.Labels, e)
}

func labelFlags(f reader.LabelFlags) []string {
	names := []string{}
	for _, n := range []struct {
		flag reader.LabelFlags
		name string
	}{
		{reader.LabelInDom, "indom"},
		{reader.LabelCluster, "cluster"},
		{reader.LabelItem, "item"},
		{reader.LabelInstances, "instances"},
		{reader.LabelOptional, "optional"},
	} {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}
