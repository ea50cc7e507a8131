package reader_test

import (
	"bytes"
	"fmt"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// rules knows an image and what every field of it means.
type rules struct {
	version int32
	l       mmvimage.Layout
	image   []byte
	base    view
}

func (g *rules) fields() []field {
	fs := g.header()
	for i := range g.l.NumTOC {
		fs = append(fs, g.toc(i)...)
	}
	for i := range g.l.NumInDoms {
		fs = append(fs, g.indom(i)...)
	}
	for i := range g.l.NumInstances {
		fs = append(fs, g.instance(i)...)
	}
	for i := range g.l.NumMetrics {
		fs = append(fs, g.metric(i)...)
	}
	for i := range g.l.NumValues {
		fs = append(fs, g.value(i)...)
	}
	for i := range g.l.NumLabels {
		fs = append(fs, g.label(i)...)
	}
	return fs
}

func (g *rules) header() []field {
	h := func(name string, off uint64, err error) outcome {
		return fatal(reader.SectionHeader, -1, name, off, err)
	}
	flux := func(uint64) outcome { return h("generation", mmvimage.HdrG1, reader.ErrInFlux) }
	return []field{
		{"tag", mmvimage.HdrMagic, 4, func(v uint64) outcome {
			if v == 0 {
				return h("tag", 0, reader.ErrInFlux)
			}
			return h("tag", 0, reader.ErrTag)
		}},
		{"version", mmvimage.HdrVersion, 4, func(v uint64) outcome {
			if v >= 1 && v <= 3 {
				return loose // everything is somewhere else
			}
			return h("version", mmvimage.HdrVersion, reader.ErrVersion)
		}},
		{"generation 1", mmvimage.HdrG1, 8, flux},
		{"generation 2", mmvimage.HdrG2, 8, flux},
		{"toc count", mmvimage.HdrTOCs, 4, func(v uint64) outcome {
			switch n := int64(int32(v)); {
			case n < 2:
				return h("toc count", mmvimage.HdrTOCs, reader.ErrCount)
			case 40+16*n > int64(g.l.Size):
				return h("toc count", mmvimage.HdrTOCs, reader.ErrBounds)
			case n <= 3: // the values' entry, the fourth, is cut off
				return fatal(reader.SectionTOC, -1, "", 40, reader.ErrMissing)
			default:
				return loose
			}
		}},
		{"flags", mmvimage.HdrFlags, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Header.Flags = reader.Flags(v) })
		}},
		{"pid", mmvimage.HdrPID, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Header.Process = int32(v) }) // no PROCESS flag
		}},
		{"cluster", mmvimage.HdrCluster, 4, func(v uint64) outcome {
			if int32(v) < 0 || v > 4095 {
				return h("cluster", mmvimage.HdrCluster, reader.ErrRange)
			}
			return edit(func(w *view) { w.Header.Cluster = int32(v) })
		}},
	}
}

// elem is the size of a record of section i of the TOC.
func (g *rules) elem(s reader.Section) uint64 {
	v1 := g.version == 1
	return map[reader.Section]uint64{
		reader.SectionInDoms: 32, reader.SectionInstances: map[bool]uint64{true: 80, false: 24}[v1],
		reader.SectionMetrics: map[bool]uint64{true: 104, false: 48}[v1], reader.SectionValues: 32,
		reader.SectionStrings: 256, reader.SectionLabels: 256,
	}[s]
}

func (g *rules) toc(i int) []field {
	e, off := g.base.TOC[i], g.l.TOC(i)
	s := e.Section
	optional := s == reader.SectionStrings || s == reader.SectionLabels
	// bad is for a count or offset that cannot be: fatal, or the section is as
	// if it were not there.
	bad := func(name string, at uint64, err error, v view) outcome {
		if !optional {
			return fatal(reader.SectionTOC, i, name, at, err)
		}
		return edit(func(w *view) {
			w.TOC[i] = v.TOC[0]
			w.Remarks = append(w.Remarks, remark{reader.SectionTOC, i, name, at, err})
			if s == reader.SectionLabels {
				w.Labels = nil
			}
		})
	}
	with := func(count int32, offset uint64) view {
		return view{TOC: []reader.TOCEntry{{Section: s, Count: count, Offset: offset}}}
	}
	fits := func(count, offset uint64) bool { return offset <= g.l.Size && count <= (g.l.Size-offset)/g.elem(s) }
	return []field{
		{s.String() + " toc type", off, 4, func(v uint64) outcome {
			switch {
			case s == reader.SectionMetrics || s == reader.SectionValues:
				return fatal(reader.SectionTOC, -1, "", 40, reader.ErrMissing)
			case s != reader.SectionLabels && s != reader.SectionStrings:
				return loose // references to what it had are remarked
			case v == 6 && g.version == 3:
				return loose // strings as labels
			}
			return edit(func(w *view) {
				w.TOC[i].Section = reader.Section(v)
				err := reader.ErrRange
				if v >= 1 && v <= 5 {
					err = reader.ErrDuplicate
				}
				w.Remarks = append(w.Remarks, remark{reader.SectionTOC, i, "type", off, err})
				if s == reader.SectionLabels {
					w.Labels = nil
				}
			})
		}},
		{s.String() + " toc count", off + 4, 4, func(v uint64) outcome {
			switch {
			case int32(v) < 0:
				return bad("count", off+4, reader.ErrCount, with(int32(v), e.Offset))
			case !fits(v, e.Offset):
				return bad("offset", off+8, reader.ErrBounds, with(int32(v), e.Offset))
			case s == reader.SectionStrings || s == reader.SectionInstances: // only looked at through references
				return edit(func(w *view) { w.TOC[i].Count = int32(v) })
			default:
				return loose
			}
		}},
		{s.String() + " toc offset", off + 8, 8, func(v uint64) outcome {
			switch {
			case !fits(uint64(e.Count), v):
				return bad("offset", off+8, reader.ErrBounds, with(e.Count, v))
			case s == reader.SectionStrings || s == reader.SectionInstances:
				return edit(func(w *view) { w.TOC[i].Offset = v })
			default:
				return loose
			}
		}},
	}
}

// text is the string at off as mmv(5) has it; ok is false outside the file,
// and where it is not terminated in it.
func (g *rules) text(off uint64) (s string, ok bool) {
	if off < 40 || off >= g.l.Size {
		return "", false
	}
	b := g.image[off:]
	if len(b) > 256 {
		b = b[:256]
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return string(b[:i]), true
	}
	if len(b) == 256 {
		return string(b[:255]), true
	}
	return "", false
}

// help is the rule of an offset of a help text.
func (g *rules) help(s reader.Section, i int, name string, off uint64, at func(*view) *string) field {
	return field{fmt.Sprintf("%s[%d] %s", s, i, name), off, 8, func(v uint64) outcome {
		return edit(func(w *view) {
			text, ok := g.text(v)
			*at(w) = text
			if !ok && v != 0 {
				w.Remarks = append(w.Remarks, remark{s, i, name, off, reader.ErrBounds})
			}
		})
	}}
}

func (g *rules) indom(i int) []field {
	off := g.l.InDom(i)
	name := fmt.Sprintf("indom[%d] ", i)
	metric := []int{0, 2}[i] // that uses it
	// lost is the outcome when the metric's indom has none of its instances.
	lost := func(w *view, from int) {
		for k := range w.Metrics[metric].Values {
			if k >= from {
				v := []int{0, 4}[i] + k
				w.Remarks = append(w.Remarks, remark{reader.SectionValues, v, "instance", g.l.Value(v) + 24, reader.ErrReference})
			}
		}
		w.Metrics[metric].Values = w.Metrics[metric].Values[:from:from]
		if from == 0 {
			w.Metrics[metric].Values = nil
		}
	}
	insts := uint64(len(g.base.InDoms[i].Instances))
	fits := func(count, at uint64) bool {
		return at <= g.l.Size && count <= (g.l.Size-at)/g.elem(reader.SectionInstances)
	}
	return []field{
		{name + "serial", off, 4, func(v uint64) outcome {
			return edit(func(w *view) {
				if uint32(v) == g.base.InDoms[1-i].Serial { // the same one twice: the second does not count
					w.Remarks = append(w.Remarks, remark{reader.SectionInDoms, 1, "serial", g.l.InDom(1), reader.ErrDuplicate})
				}
				w.InDoms[i].Serial = uint32(v)
				*w = g.resolve(*w)
			})
		}},
		{name + "count", off + 4, 4, func(v uint64) outcome {
			n, at := v, g.l.Instance(3*i)
			switch {
			case !fits(n, at):
				return edit(func(w *view) {
					w.Remarks = append(w.Remarks, remark{reader.SectionInDoms, i, "offset", off + 8, reader.ErrBounds})
					w.InDoms[i].Instances = nil
					lost(w, 0)
				})
			case n < insts:
				return edit(func(w *view) {
					w.InDoms[i].Instances = w.InDoms[i].Instances[:n:n]
					if n == 0 {
						w.InDoms[i].Instances = nil
					}
					lost(w, int(n))
				})
			default: // takes in instances of others, or what follows
				return loose
			}
		}},
		{name + "offset", off + 8, 8, func(v uint64) outcome {
			if fits(insts, v) {
				return loose
			}
			return edit(func(w *view) {
				w.Remarks = append(w.Remarks, remark{reader.SectionInDoms, i, "offset", off + 8, reader.ErrBounds})
				w.InDoms[i].Instances = nil
				lost(w, 0)
			})
		}},
		g.help(reader.SectionInDoms, i, "shorttext", off+16, func(w *view) *string { return &w.InDoms[i].Short }),
		g.help(reader.SectionInDoms, i, "helptext", off+24, func(w *view) *string { return &w.InDoms[i].Help }),
	}
}

// resolve settles which metrics still have their indom after a serial changed.
func (g *rules) resolve(w view) view {
	if w.InDoms[0].Serial == w.InDoms[1].Serial {
		w.InDoms = w.InDoms[:1]
	}
	indomOff := uint64(8 + 16) // from the name's field on: item, type, semantics, dimension, indom
	if g.version == 1 {
		indomOff = 64 + 16
	}
	var late []remark
	for k := range w.Metrics {
		m := &w.Metrics[k]
		if m.InDom < 0 {
			continue
		}
		m.InDom = -1
		for d := range w.InDoms {
			if w.InDoms[d].Serial == uint32(m.Serial) {
				m.InDom = int32(d)
			}
		}
		first := []int{0, 3, 4}[k]
		switch {
		case m.InDom < 0:
			w.Remarks = append(w.Remarks, remark{reader.SectionMetrics, k, "indom", g.l.Metric(k) + indomOff, reader.ErrReference})
			m.Values = nil
		case w.InDoms[m.InDom].Instances[0].Name != g.base.InDoms[g.base.Metrics[k].InDom].Instances[0].Name: // another's instances
			for i := range m.Values {
				late = append(late, remark{reader.SectionValues, first + i, "instance", g.l.Value(first+i) + 24, reader.ErrReference})
			}
			m.Values = nil
		}
	}
	w.Remarks = append(w.Remarks, late...)
	return w
}

func (g *rules) instance(i int) []field {
	off := g.l.Instance(i)
	d, k := 0, i
	if i == 3 {
		d, k = 1, 0
	}
	metric := []int{0, 2}[d]
	drop := func(w *view) {
		w.InDoms[d].Instances = append(w.InDoms[d].Instances[:k:k], w.InDoms[d].Instances[k+1:]...)
		w.Metrics[metric].Values = append(w.Metrics[metric].Values[:k:k], w.Metrics[metric].Values[k+1:]...)
		if d == 1 {
			w.InDoms[d].Instances, w.Metrics[metric].Values = nil, nil
		}
	}
	name := fmt.Sprintf("instance[%d] ", i)
	fs := []field{
		{name + "indom", off, 8, func(uint64) outcome { return same }},
		{name + "padding", off + 8, 4, func(uint64) outcome { return same }},
		{name + "internal", off + 12, 4, func(v uint64) outcome {
			id := int32(v)
			return edit(func(w *view) {
				if id == -1 {
					w.Remarks = append(w.Remarks, remark{reader.SectionInstances, k, "internal", off + 12, reader.ErrRange})
					drop(w)
					return
				}
				for o, in := range w.InDoms[d].Instances {
					if in.ID != id || o == k {
						continue
					}
					// the later of the two does not count, nor its value
					late := max(o, k)
					w.Remarks = append(w.Remarks,
						remark{reader.SectionInstances, late, "internal", g.l.Instance(3*d+late) + 12, reader.ErrDuplicate},
						remark{reader.SectionMetrics, metric, "", g.l.Metric(metric), reader.ErrDuplicate})
					w.InDoms[d].Instances[k].ID, w.Metrics[metric].Values[k].Inst = id, id
					w.InDoms[d].Instances = append(w.InDoms[d].Instances[:late:late], w.InDoms[d].Instances[late+1:]...)
					w.Metrics[metric].Values = append(w.Metrics[metric].Values[:late:late], w.Metrics[metric].Values[late+1:]...)
					return
				}
				w.InDoms[d].Instances[k].ID, w.Metrics[metric].Values[k].Inst = id, id
			})
		}},
	}
	noName := func(w *view) {
		w.Remarks = append(w.Remarks, remark{reader.SectionInstances, k, "name", off + 16, reader.ErrNoName})
		drop(w)
	}
	if g.version == 1 {
		return append(fs, field{name + "name", off + 16, 4, func(v uint64) outcome {
			var b [4]byte
			mmvimage.PutU32(b[:], 0, uint32(v))
			return edit(func(w *view) {
				if b[0] == 0 {
					noName(w)
					return
				}
				full := append(b[:], w.InDoms[d].Instances[k].Name[min(4, len(w.InDoms[d].Instances[k].Name)):]...)
				text, _, _ := bytes.Cut(full, []byte{0})
				w.InDoms[d].Instances[k].Name = string(text)
			})
		}})
	}
	return append(fs, field{name + "name", off + 16, 8, func(v uint64) outcome {
		return edit(func(w *view) {
			text, ok := g.text(v)
			if !ok || text == "" {
				noName(w)
				return
			}
			w.InDoms[d].Instances[k].Name = text
		})
	}})
}

func (g *rules) metric(i int) []field {
	off, rest := g.l.Metric(i), g.l.MetricFields(i)
	name := fmt.Sprintf("metric[%d] ", i)
	first := []int{0, 3, 4}[i] // value
	fs := []field{
		{name + "item", rest + mmvimage.MetricItem, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Metrics[i].Item = uint32(v) })
		}},
		{name + "type", rest + mmvimage.MetricType, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Metrics[i].Type = reader.Type(int32(v)) })
		}},
		{name + "semantics", rest + mmvimage.MetricSem, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Metrics[i].Semantics = int32(v) })
		}},
		{name + "dimension", rest + mmvimage.MetricUnits, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Metrics[i].Dimension = uint32(v) })
		}},
		{name + "padding", rest + mmvimage.MetricPadding, 4, func(uint64) outcome { return same }},
		{name + "indom", rest + mmvimage.MetricInDom, 4, func(v uint64) outcome {
			serial := int32(v)
			return edit(func(w *view) {
				m := &w.Metrics[i]
				m.Serial, m.InDom = serial, -1
				n := len(m.Values)
				switch {
				case serial == 0 || serial == -1: // singular: one value, whatever its instance
					m.Values = []reader.ValueRef{{Inst: -1, Off: uint32(g.l.Value(first))}}
					if n > 1 {
						w.Remarks = append(w.Remarks, remark{reader.SectionMetrics, i, "", off, reader.ErrDuplicate})
					}
				case v == 5 || v == 6: // another's
					m.InDom, m.Values = int32(v-5), nil
					for k := range n {
						w.Remarks = append(w.Remarks, remark{reader.SectionValues, first + k, "instance", g.l.Value(first+k) + 24, reader.ErrReference})
					}
				default:
					m.Values = nil
					w.Remarks = append(w.Remarks, remark{reader.SectionMetrics, i, "indom", rest + 16, reader.ErrReference})
				}
			})
		}},
		g.help(reader.SectionMetrics, i, "shorttext", rest+mmvimage.MetricShort, func(w *view) *string { return &w.Metrics[i].Short }),
		g.help(reader.SectionMetrics, i, "helptext", rest+mmvimage.MetricHelp, func(w *view) *string { return &w.Metrics[i].Help }),
	}
	if g.version == 1 {
		return append(fs, field{name + "name", off, 4, func(v uint64) outcome {
			var b [4]byte
			mmvimage.PutU32(b[:], 0, uint32(v))
			return edit(func(w *view) {
				text, _, _ := bytes.Cut(append(b[:], w.Metrics[i].Name[4:]...), []byte{0})
				w.Metrics[i].Name = string(text)
			})
		}})
	}
	return append(fs, field{name + "name", off, 8, func(v uint64) outcome {
		return edit(func(w *view) {
			text, ok := g.text(v)
			w.Metrics[i].Name, w.Metrics[i].NoName = text, !ok
			if !ok {
				w.Remarks = append(w.Remarks, remark{reader.SectionMetrics, i, "name", off, reader.ErrBounds})
			}
		})
	}})
}

func (g *rules) value(i int) []field {
	off := g.l.Value(i)
	metric, k := 0, i
	if i >= 3 {
		metric, k = i-2, 0
	}
	lose := func(w *view, name string, at uint64) {
		w.Remarks = append(w.Remarks, remark{reader.SectionValues, i, name, at, reader.ErrReference})
		w.Metrics[metric].Values = append(w.Metrics[metric].Values[:k:k], w.Metrics[metric].Values[k+1:]...)
		if len(w.Metrics[metric].Values) == 0 {
			w.Metrics[metric].Values = nil
		}
	}
	return []field{
		{fmt.Sprintf("value[%d] bits", i), off, 8, func(uint64) outcome { return same }},
		{fmt.Sprintf("value[%d] extra", i), off + 8, 8, func(uint64) outcome { return same }},
		// none of the values tried is the offset of another metric
		{fmt.Sprintf("value[%d] metric", i), off + 16, 8, func(uint64) outcome {
			return edit(func(w *view) { lose(w, "metric", off+16) })
		}},
		{fmt.Sprintf("value[%d] instance", i), off + 24, 8, func(uint64) outcome {
			if metric == 1 {
				return same // singular
			}
			return edit(func(w *view) { lose(w, "instance", off+24) })
		}},
	}
}

func (g *rules) label(i int) []field {
	off := g.l.Label(i)
	name := fmt.Sprintf("label[%d] ", i)
	return []field{
		{name + "flags", off, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Labels[i].Flags = reader.LabelFlags(v) })
		}},
		{name + "identity", off + 4, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Labels[i].Identity = uint32(v) })
		}},
		{name + "internal", off + 8, 4, func(v uint64) outcome {
			return edit(func(w *view) { w.Labels[i].Internal = int32(v) })
		}},
		{name + "payload", off + 12, 4, func(v uint64) outcome {
			var b [4]byte
			mmvimage.PutU32(b[:], 0, uint32(v))
			return edit(func(w *view) {
				text, _, _ := bytes.Cut(append(b[:], w.Labels[i].Payload[4:]...), []byte{0})
				w.Labels[i].Payload = string(text)
			})
		}},
	}
}
