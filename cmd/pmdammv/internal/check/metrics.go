package check

import (
	"errors"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

// metric is what is kept of a metric for later.
type metric struct {
	image.Metric
	off    uint64
	values int
	insts  map[uint64]bool // offsets of instances that have a value
}

const maxItem = 1023

func (w *walk) allMetrics() {
	sec := w.section[reader.SectionMetrics]
	w.items = map[uint32]int{}
	var tree pmda.TreeBuilder
	for i := range int(sec.n) {
		off := sec.off + uint64(i)*w.Elem(reader.SectionMetrics)
		m, ok := w.Metric(off)
		if !ok {
			return
		}
		w.metrics = append(w.metrics, metric{Metric: m, off: off})
		good := w.name(i, off, &m)
		good = w.fields(i, off, &m) && good
		if !good {
			continue
		}
		// Name and item are taken only by what is exported.
		if err := tree.Add(m.Name.Text, pcpwire.PMID(m.Item)); err != nil {
			w.nameClash(i, off, err)
			continue
		}
		w.items[m.Item] = i
	}
}

// name looks at the name alone and tells whether it can be exported.
func (w *walk) name(i int, off uint64, m *image.Metric) bool {
	const s, field = reader.SectionMetrics, "name"
	name := m.Name
	switch {
	case !name.OK && name.Off == 0:
		w.fault("name-missing", s, i, field, off, "no name: the offset is 0")
		return false
	case !name.OK:
		w.fault("name-missing", s, i, field, off, "the name, at %d, does not lie in a file of %d bytes", name.Off, w.Size())
		return false
	case name.Cut && name.Off == 0:
		w.fault("name-unterminated", s, i, field, off, "no NUL in its 64 bytes")
	case name.Cut:
		w.text(s, i, field, off, name.Off)
	}
	if w.Header.Flags&reader.FlagNoPrefix != 0 && first(name.Text) == "control" {
		w.fault("name-reserved", s, i, field, off, "%.80q: below control are the agent's own metrics, and the flag NOPREFIX is set", name.Text)
		return false
	}
	var alone pmda.TreeBuilder
	if err := alone.Add(name.Text, 0); err != nil {
		w.fault("name-characters", s, i, field, off, "%s", badName(name.Text))
		return false
	}
	if digitFirst(name.Text) {
		w.fault("name-digit", s, i, field, off, "%.80q: a part of the name does not begin with a letter", name.Text)
	}
	return true
}

func (w *walk) nameClash(i int, off uint64, err error) {
	const s, field = reader.SectionMetrics, "name"
	var ne *pmda.NameError
	switch name := w.metrics[i].Name.Text; {
	case !errors.As(err, &ne):
		w.fault("not-exported", s, i, field, off, "%v", err)
	case errors.Is(err, pmda.ErrNameTaken):
		w.fault("name-twice", s, i, field, off, "%.80q is another metric's name", name)
	case errors.Is(err, pmda.ErrNameBelowLeaf):
		w.fault("name-below-leaf", s, i, field, off, "%.80q lies below the metric %.80q", name, ne.Clash)
	case errors.Is(err, pmda.ErrNameNonLeaf):
		w.fault("name-below-leaf", s, i, field, off, "there are metrics below %.80q", name)
	default:
		w.fault("not-exported", s, i, field, off, "%v", err)
	}
}

// fields looks at all but the name, and tells whether the metric can be
// exported.
func (w *walk) fields(i int, off uint64, m *image.Metric) bool {
	const s = reader.SectionMetrics
	at, good := w.Fields(off), true
	if m.Item > maxItem {
		w.fault("item-range", s, i, "item", at, "%.80q has item %d, which is not in 0..%d", m.Name.Text, m.Item, maxItem)
		good = false
	} else if o, taken := w.items[m.Item]; taken {
		w.fault("item-twice", s, i, "item", at, "%.80q has item %d, as has %.80q", m.Name.Text, m.Item, w.metrics[o].Name.Text)
		good = false
	}
	switch {
	case !m.Type.Known():
		w.fault("type-unknown", s, i, "type", at+4, "%.80q is of type %d", m.Name.Text, m.Type)
		good = false
	case m.Type == reader.TypeNoSupport:
		w.fault("type-none", s, i, "type", at+4, "%.80q is of type -1, NOSUPPORT", m.Name.Text)
	}
	w.semantics(i, at, m)
	if !m.Singular() && w.indoms[uint32(m.Serial)] == nil && !w.broken[reader.SectionInDoms] {
		w.fault("indom-unknown", s, i, "indom", at+16, "no indom has the serial %d", uint32(m.Serial))
	}
	w.text(s, i, "shorttext", at+24, m.Short)
	w.text(s, i, "helptext", at+32, m.Help)
	return good
}

func (w *walk) semantics(i int, at uint64, m *image.Metric) {
	const s = reader.SectionMetrics
	counter := m.Semantics == int32(pcpwire.SemCounter) || m.Semantics == 0
	switch {
	case m.Type == reader.TypeElapsed && (!counter || pcpwire.Units(m.Dimension) != pcpwire.NewUnits(0, 1, 0, 0, pcpwire.TimeUSec, 0)):
		w.fault("elapsed", s, i, "semantics", at+8, "%.80q is of type ELAPSED, but not described as a counter in microseconds", m.Name.Text)
	case m.Semantics == 0:
		w.fault("semantics-none", s, i, "semantics", at+8, "%.80q has semantics 0", m.Name.Text)
	case pcpwire.Semantics(m.Semantics).String() == "???":
		w.fault("semantics", s, i, "semantics", at+8, "%.80q has the unknown semantics %d", m.Name.Text, m.Semantics)
	}
}
