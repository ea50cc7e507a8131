package check

import (
	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/reader"
)

func (w *walk) allValues() {
	sec := w.section[reader.SectionValues]
	for i := range int(sec.n) {
		off := sec.off + uint64(i)*reader.ValueSize
		v, ok := w.Value(off)
		if !ok {
			break
		}
		w.value(i, off, &v)
	}
	if !sec.there {
		return
	}
	for i := range w.metrics {
		m := &w.metrics[i]
		d := w.indoms[uint32(m.Serial)]
		if m.values == 0 && m.Type != reader.TypeNoSupport && (m.Singular() || d != nil && len(d.names) > 0) {
			w.fault("no-value", reader.SectionMetrics, i, "", m.off, "%.80q has no value entry", m.Name.Text)
		}
	}
}

func (w *walk) value(i int, off uint64, v *image.Value) {
	const s = reader.SectionValues
	k, ok := w.entry(reader.SectionMetrics, v.Metric)
	if !ok || k >= len(w.metrics) {
		w.fault("value-metric", s, i, "metric", off+16, "no metric begins at %d", v.Metric)
		return
	}
	m := &w.metrics[k]
	place := uint64(0)
	if !m.Singular() {
		d := w.indoms[uint32(m.Serial)]
		if d == nil {
			return // told with the metric
		}
		elem := w.Elem(reader.SectionInstances)
		if v.Instance < d.off || (v.Instance-d.off)%elem != 0 || (v.Instance-d.off)/elem >= d.n {
			w.fault("value-instance", s, i, "instance", off+24, "no instance of indom %d, which %.80q has, begins at %d", uint32(m.Serial), m.Name.Text, v.Instance)
			return
		}
		if n := (v.Instance - d.off) / elem; n >= uint64(len(d.kept)) || !d.kept[n] {
			return // told with the instance
		}
		place = v.Instance
		if in, ok := w.Instance(v.Instance); ok { // instances with one number are one
			place = uint64(uint32(in.Internal))
		}
	}
	if m.insts == nil {
		m.insts = map[uint64]bool{}
	}
	if m.insts[place] {
		// The agent speaks of the metric, so that is where it is told.
		w.fault("value-twice", reader.SectionMetrics, k, "", m.off, "value[%d] at offset %d is a second one of %.80q", i, off, m.Name.Text)
		return
	}
	m.insts[place] = true
	m.values++
	w.live(i, off, v, m)
}

// live looks at what the program changes while it runs.
func (w *walk) live(i int, off uint64, v *image.Value, m *metric) {
	const s = reader.SectionValues
	switch m.Type {
	case reader.TypeString:
		switch t := w.String(uint64(v.Extra)); {
		case !t.OK:
			w.fault("string-outside", s, i, "extra", off+8, "the string of %.80q, at %d, does not lie in a file of %d bytes", m.Name.Text, uint64(v.Extra), w.Size())
		case t.Cut:
			w.text(s, i, "extra", off+8, uint64(v.Extra))
		}
	case reader.TypeElapsed:
		if v.Extra > 0 {
			w.fault("elapsed-running", s, i, "extra", off+8, "%.80q has the positive extra field %d", m.Name.Text, v.Extra)
		}
	default:
	}
}
