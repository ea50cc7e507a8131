package check

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/reader"
)

// walk looks at one image for faults.
type walk struct {
	list
	*image.Image
	section [reader.SectionLabels + 1]section
	broken  [reader.SectionLabels + 1]bool // not used: that has been told

	indoms  map[uint32]*indom // by serial
	metrics []metric
	items   map[uint32]int // metrics that are exported by item
}

// section is a section that is used: the first of its type that makes sense.
type section struct {
	there  bool
	off, n uint64
}

// Image finds what is wrong with the bytes of one file; with a limit, not more
// than that many findings of one kind. omitted is how many more there are.
func Image(data []byte, limit int) (found []Finding, omitted int) {
	w := &walk{list: list{max: limit}}
	w.all(data)
	return w.found, w.omitted
}

// all looks at the file with both pairs of eyes.
func (w *walk) all(data []byte) {
	w.file(data)
	w.ask(data)
	w.sort()
}

// sort brings the findings into the order of the file.
func (w *walk) sort() {
	sort.SliceStable(w.found, func(i, j int) bool { return w.found[i].Offset < w.found[j].Offset })
}

// ask asks the agent's parser too: whatever it complains of is a finding.
func (w *walk) ask(data []byte) {
	c, err := reader.Parse(data)
	var fe *reader.FormatError
	switch {
	case errors.As(err, &fe):
		w.said("rejected", fe)
	case c != nil:
		for _, r := range c.Remarks {
			w.said("entry-unused", r)
		}
	}
}

func (w *walk) said(code Code, e *reader.FormatError) {
	for i := range w.found {
		if f := &w.found[i]; f.Offset == int64(e.Off) && f.Section == e.Section.String() {
			return
		}
	}
	if w.omitted > 0 { // it may be one of those
		return
	}
	problem := e.Err.Error()
	if e.Detail != "" {
		problem += ": " + e.Detail
	}
	w.add(newFinding(code, e.Section.String(), e.Index, e.Field, int64(e.Off), problem))
}

// fault adds a finding about a field.
func (w *walk) fault(code Code, s reader.Section, index int, field string, off uint64, format string, args ...any) {
	if w.room(code) {
		w.found = append(w.found, newFinding(code, s.String(), index, field, int64(off), fmt.Sprintf(format, args...)))
	}
}

func (w *walk) file(data []byte) {
	if !w.tag(data) {
		return
	}
	w.Image = image.New(data)
	if !w.header() {
		return
	}
	w.toc()
	w.strings()
	w.allInDoms()
	w.allMetrics()
	if !w.broken[reader.SectionMetrics] {
		w.allValues()
		w.allLabels()
	}
}

const header = reader.SectionHeader

// tag tells whether this is an MMV file with a header.
func (w *walk) tag(data []byte) bool {
	n := min(len(data), len(reader.Tag))
	switch {
	case n > 0 && string(data[:n]) != reader.Tag[:n] && len(bytes.Trim(data[:n], "\x00")) > 0:
		w.fault("not-mmv", header, -1, "tag", 0, "it does not begin with \"MMV\"%s", like(data))
	case len(data) == 0:
		w.fault("truncated", header, -1, "", 0, "the file is empty")
	case len(data) < reader.HeaderSize:
		w.fault("truncated", header, -1, "", 0, "%d bytes, the header alone has %d", len(data), reader.HeaderSize)
	case string(data[:n]) != reader.Tag:
		w.fault("in-flux", header, -1, "tag", 0, "the tag is still zero: nothing has been written yet")
	default:
		return true
	}
	return false
}

// like is what the file looks like instead.
func like(data []byte) string {
	if kind := image.Guess(data); kind != "" {
		return "; it looks like " + kind
	}
	return ""
}

// header tells whether there is any use in looking at what follows it.
func (w *walk) header() bool {
	h := &w.Header
	flux := h.Generation1 == 0 || h.Generation1 != h.Generation2
	if flux {
		w.fault("in-flux", header, -1, "generation", 8, "generations %d and %d: the writer has not finished", h.Generation1, h.Generation2)
	}
	switch {
	case w.Other:
		w.fault("byte-order", header, -1, "version", 4, "version %d in the other byte order", h.Version)
	case h.Version < 1 || h.Version > 3:
		w.fault("version", header, -1, "version", 4, "version %d", h.Version)
		return false
	case flux && h.TOCCount == 0: // nor begun
		return false
	}
	if unknown := h.Flags &^ (reader.FlagNoPrefix | reader.FlagProcess | reader.FlagSentinel); unknown != 0 {
		w.fault("flags-unknown", header, -1, "flags", 28, "unknown flags 0x%x", uint32(unknown))
	}
	if h.Flags&reader.FlagProcess != 0 && h.Process < 0 {
		w.fault("pid-range", header, -1, "pid", 32, "the flag PROCESS with pid %d", h.Process)
	}
	if h.Cluster < 0 || h.Cluster > 4095 {
		w.fault("cluster-range", header, -1, "cluster", 36, "cluster %d is not in 0..4095", h.Cluster)
	}
	const field, at = "toc count", 24
	switch {
	case h.TOCCount < 2:
		w.fault("toc-count", header, -1, field, at, "%d entries; metrics and values are at least two", h.TOCCount)
	case !w.Inside(reader.HeaderSize, uint64(h.TOCCount), reader.TOCEntrySize):
		w.fault("toc-count", header, -1, field, at, "%d entries do not fit into a file of %d bytes", h.TOCCount, w.Size())
	}
	return true
}
