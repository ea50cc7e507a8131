package reader

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

var native = binary.NativeEndian

// MaxImage is the largest image that Parse takes: offsets are kept in 32 bits.
const MaxImage = math.MaxUint32

// Parse validates the image of one MMV file of version 1, 2 or 3 and returns
// its static part, or what is wrong with it as a *FormatError (see Unfinished
// for files that may still become good). It does not keep data. Memory taken
// is at most about the size of data: what several entries share is kept once.
//
// A file is wrong as a whole when its header is, or when its metrics, values,
// indoms or instances section does not lie inside it. Anything smaller is left
// out by itself and told in Catalog.Remarks.
func Parse(data []byte) (*Catalog, error) {
	return parse(data, uint64(len(data)), TOCEntry{}, &scratch{})
}

// parse is Parse of an image of which only filled bytes are not holes: a sparse
// file must not make us take the memory it does not take itself. If there is a
// section skip it is that of the values, and not looked at.
func parse(data []byte, filled uint64, skip TOCEntry, s *scratch) (*Catalog, error) {
	p := parser{data: data, size: uint64(len(data)), filled: filled, c: &Catalog{Size: uint64(len(data))}, scratch: s}
	p.arena = p.arena[:0]
	values := func() error {
		if skip.Count == 0 {
			return p.values(p.u64)
		}
		if p.section[SectionValues] != skip {
			return p.errorf(SectionHeader, -1, "", offGeneration1, ErrInFlux, "changed while it was read")
		}
		p.c.lazy = &p
		return nil
	}
	for _, step := range []func() error{p.header, p.toc, p.indoms, p.metrics, values, p.labels} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	p.c.live = p.live()
	p.c.arena = exact(p.arena)
	p.data, p.scratch, p.texts, p.serials = nil, nil, nil, nil
	if n := len(p.c.instances); cap(p.c.instances)-n > n/8 { // indoms share some
		p.c.instances = exact(p.c.instances)
	}
	return p.c, nil
}

// exact is a copy without room for more.
func exact[E any](s []E) []E { return append(make([]E, 0, len(s)), s...) }

// scratch is memory that one parse after the other can use.
type scratch struct {
	arena        []byte
	slots        []Text   // strings already copied, by their place in the strings section
	owner, place []int32  // of each value: its metric, and which instance of its indom
	next         []uint32 // of each metric, where its next value goes
}

// cleared returns n zero elements, in s if there is room.
func cleared[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	clear(s[:n])
	return s[:n]
}

type parser struct {
	*scratch
	data    []byte
	size    uint64
	filled  uint64 // bytes of data that are not holes
	c       *Catalog
	section [SectionLabels + 1]TOCEntry // Section is set where the file has it
	domain  []domain                    // of each indom kept
	serials map[uint32]int32            // indom's serial to its index
	texts   map[uint64]Text             // strings already copied that lie elsewhere; zero where there is none
	overlap error                       // entries share more bytes than the file has
}

// live is where the live values and the strings they may point to lie.
func (p *parser) live() [2]uint64 {
	v, s := p.section[SectionValues], p.section[SectionStrings]
	if v.Count == 0 {
		return [2]uint64{}
	}
	start, end := v.Offset, v.Offset+uint64(v.Count)*ValueSize
	for i := range p.c.Metrics {
		if p.c.Metrics[i].Type != TypeString {
			continue
		}
		if s.Count == 0 {
			return [2]uint64{0, p.size}
		}
		return [2]uint64{min(start, s.Offset), p.size}
	}
	return [2]uint64{start, end}
}

// domain is where the instances of an indom lie in the file, and which of
// those kept each of them is, -1: none; nil where all are kept.
type domain struct {
	off, n uint64
	kept   []int32
}

// at is what kept has for the instance at place i.
func (d *domain) at(i uint64) int32 {
	if d.kept == nil {
		return int32(i)
	}
	return d.kept[i]
}

// set sets it, for all i in turn.
func (d *domain) set(i uint64, k int32) {
	if d.kept == nil {
		if k == int32(i) {
			return
		}
		d.kept = make([]int32, d.n)
		for j := range i {
			d.kept[j] = int32(j)
		}
	}
	d.kept[i] = k
}

func (p *parser) errorf(s Section, index int, field string, off uint64, err error, format string, args ...any) *FormatError {
	return &FormatError{Section: s, Index: index, Field: field, Off: off, Err: err, Detail: fmt.Sprintf(format, args...)}
}

// remark costs next to nothing once there are enough: a file can be full of
// what is wrong.
func (p *parser) remark(s Section, index int, field string, off uint64, err error, format string, args ...uint64) {
	p.c.RemarkCount++
	if len(p.c.Remarks) >= MaxRemarks {
		return
	}
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	p.c.Remarks = append(p.c.Remarks, p.errorf(s, index, field, off, err, format, list...))
}

// inside tells whether n elements of elem bytes from off lie in the file.
func (p *parser) inside(off, n, elem uint64) bool {
	return off <= p.size && n <= (p.size-off)/elem
}

func (p *parser) u32(off uint64) uint32 { return native.Uint32(p.data[off:]) }
func (p *parser) u64(off uint64) uint64 { return native.Uint64(p.data[off:]) }

func (p *parser) header() error {
	if p.size < HeaderSize {
		if n := min(len(p.data), len(Tag)); string(p.data[:n]) != Tag[:n] && !zero(p.data[:n]) {
			return p.errorf(SectionHeader, -1, "tag", 0, ErrTag, "")
		}
		return p.errorf(SectionHeader, -1, "", 0, ErrTruncated, "%d bytes of %d", p.size, HeaderSize)
	}
	h := &p.c.Header
	*h = Header{
		Version:     p.u32(offVersion),
		Generation1: p.u64(offGeneration1),
		Generation2: p.u64(offGeneration2),
		TOCCount:    int32(p.u32(offTOCCount)),
		Flags:       Flags(p.u32(offFlags)),
		Process:     int32(p.u32(offProcess)),
		Cluster:     int32(p.u32(offCluster)),
	}
	tag := p.data[:4]
	switch {
	case zero(tag):
		return p.errorf(SectionHeader, -1, "tag", 0, ErrInFlux, "still zero")
	case string(tag) != Tag:
		return p.errorf(SectionHeader, -1, "tag", 0, ErrTag, "")
	case h.Generation1 == 0 || h.Generation1 != h.Generation2:
		return p.errorf(SectionHeader, -1, "generation", offGeneration1, ErrInFlux, "g1=%d g2=%d", h.Generation1, h.Generation2)
	case h.Version < 1 || h.Version > 3:
		hint := ""
		if v := h.Version >> 24; v >= 1 && v <= 3 && h.Version<<8 == 0 {
			hint = ", written in the other byte order"
		}
		return p.errorf(SectionHeader, -1, "version", offVersion, ErrVersion, "%d%s", h.Version, hint)
	case h.TOCCount < 2:
		return p.errorf(SectionHeader, -1, "toc count", offTOCCount, ErrCount, "%d, at least metrics and values are needed", h.TOCCount)
	case !p.inside(HeaderSize, uint64(h.TOCCount), TOCEntrySize):
		return p.errorf(SectionHeader, -1, "toc count", offTOCCount, ErrBounds, "%d entries in %d bytes", h.TOCCount, p.size)
	case h.Cluster < 0 || h.Cluster > 4095:
		return p.errorf(SectionHeader, -1, "cluster", offCluster, ErrRange, "%d is not in 0..4095", h.Cluster)
	case h.Flags&FlagProcess != 0 && h.Process < 0:
		return p.errorf(SectionHeader, -1, "pid", offProcess, ErrRange, "%d", h.Process)
	}
	return nil
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// elem is the size of an entry of section s.
func (p *parser) elem(s Section) uint64 {
	v1 := p.c.Header.Version == 1
	switch {
	case s == SectionInDoms:
		return InDomSize
	case s == SectionInstances && v1:
		return Instance1Size
	case s == SectionInstances:
		return Instance2Size
	case s == SectionMetrics && v1:
		return Metric1Size
	case s == SectionMetrics:
		return Metric2Size
	case s == SectionValues:
		return ValueSize
	default:
		return StringSize // and LabelSize
	}
}

// index tells which entry of elem bytes, of n from off, begins at at.
func index(at, off, n, elem uint64) (i uint64, ok bool) {
	x := at - off // too far when at < off
	switch elem { // divisions by constants are cheap
	case Metric1Size:
		i, x = x/Metric1Size, x%Metric1Size
	case Metric2Size:
		i, x = x/Metric2Size, x%Metric2Size
	case Instance1Size:
		i, x = x/Instance1Size, x%Instance1Size
	default:
		i, x = x/Instance2Size, x%Instance2Size
	}
	return i, x == 0 && i < n
}

func tocEntryOf(b []byte) TOCEntry {
	return TOCEntry{Section: Section(native.Uint32(b)), Count: int32(native.Uint32(b[4:])), Offset: native.Uint64(b[8:])}
}

func (p *parser) toc() error {
	const keep = 64 // entries kept in the Catalog: six make sense
	if n := uint64(p.c.Header.TOCCount); n > p.filled/TOCEntrySize {
		return p.errorf(SectionHeader, -1, "toc count", offTOCCount, ErrCount, "%d entries in a sparse file with %d bytes of data", n, p.filled)
	}
	for i := range uint64(p.c.Header.TOCCount) {
		off := HeaderSize + i*TOCEntrySize
		e := tocEntryOf(p.data[off:])
		if i < keep {
			p.c.TOC = append(p.c.TOC, e)
		}
		if err := p.tocEntry(int(i), off, e); err != nil {
			return err
		}
	}
	for _, s := range []Section{SectionMetrics, SectionValues} {
		if p.section[s].Section == 0 {
			return p.errorf(SectionTOC, -1, "", HeaderSize, ErrMissing, "no %ss", s)
		}
	}
	p.slots = p.slots[:0]
	if n := uint64(p.section[SectionStrings].Count); n <= p.filled/StringSize {
		p.slots = cleared(p.slots, int(n))
	}
	return nil
}

func (p *parser) tocEntry(i int, off uint64, e TOCEntry) error {
	s := e.Section
	switch {
	case s < SectionInDoms || s > SectionLabels:
		p.remark(SectionTOC, i, "type", off, ErrRange, "%d", uint64(s))
		return nil
	case s == SectionLabels && p.c.Header.Version < 3:
		p.remark(SectionTOC, i, "type", off, ErrRange, "labels in version %d", uint64(p.c.Header.Version))
		return nil
	case p.section[s].Section != 0:
		p.remark(SectionTOC, i, "type", off, ErrDuplicate, "a second section of "+s.String()+"s")
		return nil
	}
	var err *FormatError
	switch {
	case e.Count < 0:
		err = p.errorf(SectionTOC, i, "count", off+4, ErrCount, "%d %ss", e.Count, s)
	case e.Count > 0 && !p.inside(e.Offset, uint64(e.Count), p.elem(s)):
		err = p.errorf(SectionTOC, i, "offset", off+8, ErrBounds, "%d %ss of %d bytes from %d in a file of %d", e.Count, s, p.elem(s), e.Offset, p.size)
	case uint64(e.Count) > p.filled/p.elem(s) && s != SectionStrings && s != SectionInstances:
		err = p.errorf(SectionTOC, i, "count", off+4, ErrCount, "%d %ss of %d bytes in a sparse file with %d bytes of data", e.Count, s, p.elem(s), p.filled)
	default:
		p.section[s] = e
		return nil
	}
	if s == SectionStrings || s == SectionLabels { // nothing depends on their TOC entry
		p.remark(SectionTOC, i, err.Field, err.Off, err.Err, err.Detail)
		return nil
	}
	return err
}

// text copies the string at off, 256 bytes at most, to its first NUL; ok is
// false where there is none in the file. Every string is copied once.
func (p *parser) text(off uint64) (t Text, ok bool) {
	x := off - p.section[SectionStrings].Offset // too far when that is later
	if k := x / StringSize; x%StringSize == 0 && k < uint64(len(p.slots)) {
		if p.slots[k] == 0 {
			p.slots[k] = p.copy(off)
		}
		return p.slots[k], true
	}
	if t, ok := p.texts[off]; ok {
		return t, t != 0
	}
	if off >= HeaderSize && off < p.size {
		t = p.copy(off)
	}
	if p.texts == nil {
		p.texts = map[uint64]Text{}
	}
	p.texts[off] = t
	return t, t != 0
}

// copy copies the string at off, which is inside the file.
func (p *parser) copy(off uint64) Text {
	b := p.data[off:min(off+StringSize, p.size)]
	if s, _, ok := bytes.Cut(b, []byte{0}); ok {
		return p.add(s)
	}
	if len(b) < StringSize {
		return 0
	}
	return p.add(b[:StringSize-1])
}

// name copies the name in the field of n bytes at off.
func (p *parser) name(off, n uint64) Text {
	b := p.data[off : off+n-1]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return p.add(b)
}

// add keeps b. Entries that are copied once each cannot be longer than the
// file; those which are would let a small file take any amount of memory.
func (p *parser) add(b []byte) Text {
	n := len(p.arena)
	if uint64(n+len(b)+1) > p.filled {
		if p.overlap == nil {
			p.overlap = p.errorf(SectionStrings, -1, "", p.section[SectionStrings].Offset, ErrSections, "more text than the file has bytes")
		}
		return 0
	}
	if cap(p.arena)-n <= len(b) {
		p.arena = slices.Grow(p.arena, len(b)+1)
	}
	a := p.arena[:n+1+len(b)]
	a[n] = byte(len(b))
	copy(a[n+1:], b)
	p.arena = a
	return Text(n + 1)
}

// help copies a help text; a bad offset is remarked.
func (p *parser) help(s Section, i int, field string, off uint64) Text {
	at := p.u64(off)
	if at == 0 {
		return 0
	}
	t, ok := p.text(at)
	if !ok {
		p.remark(s, i, field, off, ErrBounds, "string at %d in a file of %d", at, p.size)
	}
	return t
}
