package check

import (
	"errors"
	"strconv"
	"strings"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

func (w *walk) allLabels() {
	sec := w.section[reader.SectionLabels]
	for i := range int(sec.n) {
		off := sec.off + uint64(i)*reader.LabelSize
		l, ok := w.Label(off)
		if !ok {
			return
		}
		w.label(i, off, &l)
	}
}

func (w *walk) label(i int, off uint64, l *image.Label) {
	const s = reader.SectionLabels
	const levels = reader.LabelInDom | reader.LabelCluster | reader.LabelItem | reader.LabelInstances
	text := l.Payload.Text
	if l.Payload.Cut {
		w.fault("label-unended", s, i, "payload", off+12, "no NUL in its 244 bytes")
	}
	set, err := pmda.MergeLabels(pcpwire.LabelItem, []pmda.LabelRecord{{JSON: text}})
	switch {
	case err != nil:
		w.fault("label-json", s, i, "payload", off+12, "%.80q: %s", text, labelError(err))
	case len(set.Labels) == 0:
		w.fault("label-json", s, i, "payload", off+12, "%.80q has no label in it", text)
	}
	if l.Flags&levels == 0 {
		w.fault("label-flags", s, i, "flags", off, "flags 0x%x do not say what the label %.80q is for", uint32(l.Flags), text)
		return
	}
	if !w.labelled(l) && !w.broken[reader.SectionInDoms] {
		w.fault("label-of-nothing", s, i, "identity", off+4, "%s for the label %.80q", labelledBy(l), text)
	}
}

// labelled tells whether what the label is for is in the file.
func (w *walk) labelled(l *image.Label) bool {
	_, item := w.items[l.Identity]
	d := w.indoms[l.Identity]
	return l.Flags&reader.LabelCluster != 0 && (l.Identity == uint32(w.Header.Cluster) || w.Header.Cluster == 0) ||
		l.Flags&reader.LabelItem != 0 && item ||
		l.Flags&reader.LabelInDom != 0 && d != nil ||
		l.Flags&reader.LabelInstances != 0 && d != nil && d.names[l.Internal]
}

func labelledBy(l *image.Label) string {
	var b strings.Builder
	b.WriteString("there is no ")
	switch {
	case l.Flags&reader.LabelItem != 0:
		b.WriteString("exported metric with item ")
	case l.Flags&reader.LabelInstances != 0:
		b.WriteString("instance " + strconv.FormatInt(int64(l.Internal), 10) + " of an indom with serial ")
	case l.Flags&reader.LabelInDom != 0:
		b.WriteString("indom with serial ")
	default:
		b.WriteString("cluster in the header with number ")
	}
	return b.String() + strconv.FormatUint(uint64(l.Identity), 10)
}

func labelError(err error) string {
	for _, e := range []error{pmda.ErrLabelJSON, pmda.ErrLabelName, pmda.ErrLabelTwice, pmda.ErrLabelSize} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return err.Error()
}
