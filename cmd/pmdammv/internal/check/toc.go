package check

import (
	"fmt"
	"slices"
	"sort"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/reader"
)

const toc = reader.SectionTOC

func (w *walk) toc() {
	entries := w.TOC()
	if len(entries) < int(w.Header.TOCCount) { // the count is wrong, and few of these are entries
		entries = entries[:min(len(entries), int(reader.SectionLabels))]
	}
	for i, e := range entries {
		w.tocEntry(i, e)
	}
	whole := int(w.Header.TOCCount) == len(entries) && len(entries) > 1
	for _, s := range []reader.Section{reader.SectionMetrics, reader.SectionValues} {
		if whole && !slices.ContainsFunc(entries, func(e reader.TOCEntry) bool { return e.Section == s }) {
			w.fault("section-missing", toc, -1, "", reader.HeaderSize, "no section of %ss", s)
		}
	}
	if m := w.section[reader.SectionMetrics]; m.there && m.n == 0 {
		w.add(newFinding("no-metrics", "file", -1, "", -1, "the file has no metrics"))
	}
	if len(entries) == int(w.Header.TOCCount) {
		w.places(entries, whole)
	}
}

func (w *walk) tocEntry(i int, e reader.TOCEntry) {
	s, off := e.Section, image.TOCOffset(i)
	if s < reader.SectionInDoms || s > reader.SectionLabels {
		w.fault("section-unknown", toc, i, "type", off, "section type %d is not known", uint32(s))
		return
	}
	if s == reader.SectionLabels && w.Header.Version < 3 {
		w.fault("section-version", toc, i, "type", off, "labels in a file of version %d", w.Header.Version)
		return
	}
	if w.section[s].there || w.broken[s] {
		w.fault("section-twice", toc, i, "type", off, "a second section of %ss", s)
		return
	}
	optional := s == reader.SectionStrings || s == reader.SectionLabels
	elem := w.Elem(s)
	switch code := Code("section-count"); {
	case e.Count < 0:
		if optional {
			code = "section-ignored"
		}
		w.fault(code, toc, i, "count", off+4, "%d %ss", e.Count, s)
		w.broken[s] = !optional
	case e.Count > 0 && !w.Inside(e.Offset, uint64(e.Count), elem):
		code = "section-outside"
		if optional {
			code = "section-ignored"
		}
		w.fault(code, toc, i, "offset", off+8, "%d %s%s of %d bytes from %d on %s not fit into a file of %d bytes", e.Count, s, plural(uint64(e.Count)), elem, e.Offset, verb(e.Count), w.Size())
		w.broken[s] = !optional
	default:
		w.section[s] = section{true, e.Offset, uint64(e.Count)}
		if s == reader.SectionValues && e.Count > 0 && e.Offset%8 != 0 {
			w.fault("values-unaligned", toc, i, "offset", off+8, "values begin at %d, which is not a multiple of 8", e.Offset)
		}
	}
}

// places looks at where sections lie.
func (w *walk) places(entries []reader.TOCEntry, whole bool) {
	type place struct {
		entry    int
		from, to uint64
	}
	head := place{-1, 0, image.TOCOffset(len(entries))}
	all := []place{head}
	for i, e := range entries {
		known := e.Section >= reader.SectionInDoms && e.Section < reader.SectionLabels || e.Section == reader.SectionLabels && w.Header.Version == 3
		if e.Count == 0 {
			continue
		}
		if e.Count < 0 || !known || !w.Inside(e.Offset, uint64(e.Count), w.Elem(e.Section)) {
			whole = false
			continue
		}
		all = append(all, place{i, e.Offset, e.Offset + uint64(e.Count)*w.Elem(e.Section)})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].from < all[j].from })
	last, told := all[0], map[int]bool{}
	for _, p := range all[1:] {
		if p.from < last.to {
			whole = false
			k, other := p.entry, last.entry
			if k < 0 { // the header and TOC are never the ones in the wrong place
				k, other = other, k
			}
			if !told[k] && !told[other] {
				told[k] = true
				w.overlap(entries, k, other)
			}
		}
		if p.to > last.to {
			last = p
		}
	}
	if n := w.Size() - last.to; whole && n > 0 {
		w.add(newFinding("trailing", "file", -1, "", int64(last.to), fmt.Sprintf("%d byte%s after the last section", n, plural(n))))
	}
}

// overlap tells of a section that overlaps another one; -1 are header and TOC.
func (w *walk) overlap(entries []reader.TOCEntry, k, other int) {
	what := "the header and table of contents"
	if other >= 0 {
		what = "the " + entries[other].Section.String() + "s"
	}
	w.fault("section-overlap", toc, k, "offset", image.TOCOffset(k)+8, "%ss from %d on overlap %s", entries[k].Section, entries[k].Offset, what)
}

func verb(n int32) string {
	if n == 1 {
		return "does"
	}
	return "do"
}

func plural(n uint64) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// entry tells which entry of a section begins at off.
func (w *walk) entry(s reader.Section, off uint64) (i int, ok bool) {
	sec, elem := w.section[s], w.Elem(s)
	if off < sec.off || (off-sec.off)%elem != 0 || (off-sec.off)/elem >= sec.n {
		return -1, false
	}
	return int((off - sec.off) / elem), true
}

// strings looks at the strings section.
func (w *walk) strings() {
	sec := w.section[reader.SectionStrings]
	for i := range int(sec.n) {
		off := sec.off + uint64(i)*reader.StringSize
		if s := w.String(off); s.OK && s.Cut {
			w.fault("text-unended", reader.SectionStrings, i, "", off, "no NUL in its 256 bytes")
		}
	}
}

// text looks at the text at off that a field leads to; 0 means none.
func (w *walk) text(s reader.Section, index int, field string, at, off uint64) {
	if off == 0 {
		return
	}
	switch t := w.String(off); {
	case !t.OK:
		w.fault("text-outside", s, index, field, at, "a string at %d does not lie in a file of %d bytes", off, w.Size())
	case t.Cut:
		if _, told := w.entry(reader.SectionStrings, off); !told {
			w.fault("text-unended", s, index, field, at, "no NUL in the 256 bytes from %d on", off)
		}
	}
}
