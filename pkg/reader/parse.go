package reader

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
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
// out by itself and told in Catalog.Remarks. Live values are not its business:
// a Dir maps files and loads them.
func Parse(data []byte) (*Catalog, error) {
	return parse(image{data: data, size: uint64(len(data))}, uint64(len(data)), &scratch{})
}

// manyValues is from how many values on they are not looked at, in a file that
// is read in parts, before one of them is asked for.
const manyValues = 4096

// parse is Parse of an image of which only filled bytes are not holes: a sparse
// file must not make us take the memory it does not take itself.
func parse(m image, filled uint64, s *scratch) (*Catalog, error) {
	p := &parser{image: m, c: &Catalog{}}
	if err := p.header(); err != nil {
		return nil, err
	}
	return p.parse(filled, s)
}

// parse is parse after the header.
func (p *parser) parse(filled uint64, s *scratch) (*Catalog, error) {
	p.filled, p.scratch, p.c.Size = filled, s, p.size
	p.last = p.last[:0]
	for _, step := range []func() error{p.toc, p.indoms, p.metrics, p.valuesNow, p.labels} {
		if err := step(); err != nil || p.err != nil {
			return nil, cmp.Or(p.err, err)
		}
	}
	if p.bound(); p.overlap != nil {
		return nil, p.overlap
	}
	p.c.live = p.live()
	if len(p.last) > pieceSize/2 { // pages that were never touched cost nothing
		p.full, p.last = append(p.full, p.last), nil
	} else {
		p.full = append(p.full, exact(p.last))
	}
	p.c.text = p.full
	p.image, p.scratch, p.texts, p.serials, p.full = image{size: p.size}, nil, nil, nil, nil
	if n := len(p.c.instances); cap(p.c.instances)-n > n/8 { // indoms share some
		p.c.instances = exact(p.c.instances)
	}
	return p.c, nil
}

// exact is a copy without room for more.
func exact[E any](s []E) []E { return append(make([]E, 0, len(s)), s...) }

// scratch is memory that one parse after the other can use.
type scratch struct {
	last         []byte   // the piece of text to which is added
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
	image
	filled   uint64 // bytes of the image that are not holes
	c        *Catalog
	full     [][]byte                    // pieces of text to which nothing is added any more, together
	fullText uint64                      // so many bytes
	section  [SectionLabels + 1]TOCEntry // Section is set where the file has it
	domain   []domain                    // of each indom kept
	serials  map[uint32]int32            // indom's serial to its index
	texts    map[uint64]Text             // strings already copied that lie elsewhere; zero where there is none
	outline  bool                        // no instances, where there are many values
	overlap  error                       // entries share more bytes than the file has
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

// inFlux is for a file whose writer is at work, so that nothing else can be said
// of it.
func inFlux(why string) error {
	return &FormatError{Section: SectionHeader, Index: -1, Field: "generation", Off: offGeneration1, Err: ErrInFlux, Detail: why}
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

func (p *parser) header() error {
	if p.size < HeaderSize {
		if n := min(len(p.data), len(Tag)); string(p.data[:n]) != Tag[:n] && !zero(p.data[:n]) {
			return p.errorf(SectionHeader, -1, "tag", 0, ErrTag, "")
		}
		return p.errorf(SectionHeader, -1, "", 0, ErrTruncated, "%d bytes of %d", p.size, HeaderSize)
	}
	h, b := &p.c.Header, p.at(atEntries, 0, HeaderSize, 0)
	*h = Header{
		Version:     native.Uint32(b[offVersion:]),
		Generation1: native.Uint64(b[offGeneration1:]),
		Generation2: native.Uint64(b[offGeneration2:]),
		TOCCount:    int32(native.Uint32(b[offTOCCount:])),
		Flags:       Flags(native.Uint32(b[offFlags:])),
		Process:     int32(native.Uint32(b[offProcess:])),
		Cluster:     int32(native.Uint32(b[offCluster:])),
	}
	tag := b[:len(Tag)]
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
	count := uint64(p.c.Header.TOCCount)
	p.c.TOC = make([]TOCEntry, 0, min(count, keep))
	for i := range count {
		off := HeaderSize + i*TOCEntrySize
		e := tocEntryOf(p.at(atEntries, off, TOCEntrySize, (count-i)*TOCEntrySize))
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
	// Whether labels have changed is told with every fetch, and takes the instances that have some.
	p.c.Outline = p.outline && p.section[SectionValues].Count >= manyValues && p.section[SectionLabels].Count == 0
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

// str copies the string at off, 256 bytes at most, to its first NUL; ok is
// false where there is none in the file. Every string is copied once.
func (p *parser) str(off uint64) (t Text, ok bool) {
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
	n := min(StringSize, p.size-off)
	b := p.at(atStrings, off, n, 0)
	t, ended := p.add(b[:min(n, StringSize-1)])
	if !ended && n < StringSize {
		p.last = p.last[:(t-1)%pieceSize]
		return 0
	}
	return t
}

// name copies the name in the field b.
func (p *parser) name(b []byte) Text {
	t, _ := p.add(b[:len(b)-1])
	return t
}

// Text is kept in pieces, so that nothing is copied when there is more of it. A
// Text is one more than the number of its piece and its place there.
const (
	placeBits = 16
	pieceSize = 1 << placeBits
	maxPieces = 1 << (32 - placeBits)
)

// add keeps b, at most 255 bytes, up to its first NUL; ended tells whether it has
// one. Entries that are copied once each cannot be longer than the file; those
// which are would let a small file take any amount of memory, so that is looked
// at (bound) whenever there is a piece more.
func (p *parser) add(b []byte) (t Text, ended bool) {
	const word = 8 // bytes that are looked at, and copied, at once
	if len(p.last)+1+len(b)+word > cap(p.last) {
		p.more(1 + len(b) + word)
	}
	at := len(p.last)
	to := p.last[at+1 : cap(p.last)]
	n := 0
	for ; n+word <= len(b); n += word {
		w := binary.LittleEndian.Uint64(b[n:])
		binary.LittleEndian.PutUint64(to[n:], w)
		if z := (w - 0x0101010101010101) &^ w & 0x8080808080808080; z != 0 { // a byte of it is zero
			n += bits.TrailingZeros64(z) / 8
			ended = true
			break
		}
	}
	for ; !ended && n < len(b); n++ {
		if ended = b[n] == 0; ended {
			break
		}
		to[n] = b[n]
	}
	p.last = p.last[:at+1+n]
	p.last[at] = byte(n)
	return Text(len(p.full)<<placeBits|at) + 1, ended
}

// bound sets overlap when there is more text than there may be.
func (p *parser) bound() {
	if text := p.fullText + uint64(len(p.last)); p.overlap == nil && (text > p.filled || len(p.full) >= maxPieces-1) {
		p.overlap = p.errorf(SectionStrings, -1, "", p.section[SectionStrings].Offset, ErrSections, "more text than the file has bytes")
	}
}

// empty tells whether t, which has been added, has no bytes.
func (p *parser) empty(t Text) bool {
	piece := p.last
	if k := int((t - 1) >> placeBits); k < len(p.full) {
		piece = p.full[k]
	}
	return piece[(t-1)%pieceSize] == 0
}

// more makes room for need more bytes in the last piece, or begins another.
func (p *parser) more(need int) {
	if cap(p.last) < pieceSize {
		p.last = append(make([]byte, 0, min(pieceSize, max(1<<10, 4*(len(p.last)+need)))), p.last...)
	}
	if len(p.last)+need > pieceSize {
		p.bound()
		p.full, p.fullText = append(p.full, p.last), p.fullText+uint64(len(p.last))
		p.last = make([]byte, 0, pieceSize)
	}
}

// help copies the help text at at, which the field at off says; a bad offset is remarked.
func (p *parser) help(s Section, i int, field string, off, at uint64) Text {
	if at == 0 {
		return 0
	}
	t, ok := p.str(at)
	if !ok {
		p.remark(s, i, field, off, ErrBounds, "string at %d in a file of %d", at, p.size)
	}
	return t
}
