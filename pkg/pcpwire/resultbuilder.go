package pcpwire

import (
	"encoding/binary"
	"fmt"
)

// ResultBuilder writes the reply to a fetch, header included, into a buffer that
// it uses again for the next one. Begin, then one call per metric in the order
// of the request, then Finish. The zero value is ready for use. Set32, Set64,
// SetFloat and BeginStrings without instances add a metric without values, as
// Status does with 0. For values of PM_TYPE_AGGREGATE and PM_TYPE_EVENT there is
// [Result].
//
// The first error stays until the next Begin and is returned by Finish; calls
// after it do nothing.
//
// Value sets are written from the front and value blocks behind the room that
// Begin leaves for the sets, so that both are written once. If the room turns
// out to be too small or too large, the blocks are moved and the pointers to
// them mended.
type ResultBuilder struct {
	buf     []byte // used over its whole length
	npmid   int
	sets    int // written so far
	set     int // where the next value set goes
	blocks  int // where the value blocks start
	block   int // where the next block goes
	claimed int // where the pointers written so far take the blocks to start
	strings int // AddString calls that are due
	ceiling int // for the whole PDU
	err     error
	keep    keeper
}

// Begin starts a reply with npmid value sets. nvalues is the number of values in
// all of them, as well as it is known: with exactly that many, and no set
// without values, Finish has nothing to move.
func (b *ResultBuilder) Begin(flags uint32, npmid, nvalues int) {
	if b.keep.done(len(b.buf), b.block) {
		b.buf = nil
	}
	*b = ResultBuilder{buf: b.buf, keep: b.keep, npmid: npmid, set: resultHeader, blocks: resultHeader, ceiling: MaxPDU}
	room := int64(setHeader)*int64(npmid) + int64(valueSize)*int64(nvalues)
	switch {
	case npmid < 0 || nvalues < 0:
		b.err = fmt.Errorf("%d value sets, %d values: %w", npmid, nvalues, ErrRange)
	case npmid > MaxPDU || nvalues > MaxPDU || room > int64(b.ceiling-resultHeader):
		b.err = fmt.Errorf("%d value sets, %d values: %w", npmid, nvalues, ErrTooBig)
	}
	if b.err != nil {
		npmid, nvalues, room = 0, 0, 0
	}
	b.blocks += int(room)
	b.block, b.claimed = b.blocks, b.blocks
	b.reserve(min(b.blocks+(blockHeader+8)*nvalues, b.ceiling)) // what numbers need: growing would double it
	clear(b.buf[:resultHeader])
	binary.BigEndian.PutUint32(b.buf[4:], uint32(PDUResult))
	binary.BigEndian.PutUint32(b.buf[20:], uint32(npmid))
	b.SetFlags(flags)
}

// SetFlags sets the word that tells pmcd of changes: 0, LabelsChanged,
// NamesChanged or both. It may be called at any time between Begin and Finish.
func (b *ResultBuilder) SetFlags(flags uint32) {
	if len(b.buf) < resultHeader {
		return // no Begin
	}
	binary.BigEndian.PutUint32(b.buf[HeaderSize:], flags)
}

// Len is the number of value sets so far.
func (b *ResultBuilder) Len() int { return b.sets }

// Status adds a metric without values: s is 0 or the reason.
func (b *ResultBuilder) Status(pmid PMID, s Status) {
	if s > 0 {
		b.fail(fmt.Errorf("%v: status %d: %w", pmid, int32(s), ErrRange))
	}
	if !b.room(setHeader-4, 0) {
		return
	}
	p := b.buf[b.set : b.set+8]
	binary.BigEndian.PutUint32(p, uint32(pmid))
	binary.BigEndian.PutUint32(p[4:], uint32(s))
	b.set += setHeader - 4
	b.sets++
}

// Set32 adds a metric of TypeI32 or TypeU32: for each instance the low half of
// its bits. A singular metric has the one instance InstNull.
func (b *ResultBuilder) Set32(pmid PMID, insts []int32, bits []uint64) {
	if len(insts) == 1 && len(bits) == 1 && b.fits(setHeader+valueSize, 0) { // nearly always; worth it
		p := b.single(pmid, InSitu, insts[0])
		binary.BigEndian.PutUint32(p, uint32(bits[0]))
		return
	}
	p, _, _ := b.begin(pmid, len(insts), len(bits), InSitu, 0)
	for i, inst := range insts {
		if len(p) < valueSize || i >= len(bits) {
			break // nothing to add; and spares the bounds checks
		}
		binary.BigEndian.PutUint64(p, uint64(uint32(inst))<<32|uint64(uint32(bits[i])))
		p = p[valueSize:]
	}
}

// Set64 adds a metric of TypeI64, TypeU64 or TypeDouble: for each instance its bits.
func (b *ResultBuilder) Set64(pmid PMID, t Type, insts []int32, bits []uint64) {
	const size = blockHeader + 8
	if t != TypeU64 && t != TypeI64 && t != TypeDouble {
		b.fail(fmt.Errorf("%v: type %v in a value of 64 bits: %w", pmid, t, ErrRange))
	}
	head := blockWord(t, size)
	if len(insts) == 1 && len(bits) == 1 && b.fits(setHeader+valueSize, size) { // nearly always; worth it
		p := b.single(pmid, DPtr, insts[0])
		binary.BigEndian.PutUint32(p, b.pointer())
		q := b.buf[b.block : b.block+size]
		binary.BigEndian.PutUint32(q, head)
		binary.BigEndian.PutUint64(q[4:], bits[0])
		b.block += size
		return
	}
	p, q, word := b.begin(pmid, len(insts), len(bits), DPtr, size)
	if len(p) == 0 {
		return
	}
	bits = bits[:len(insts)]
	for i, inst := range insts {
		s, d := (*[valueSize]byte)(p), (*[size]byte)(q)
		binary.BigEndian.PutUint64(s[:], uint64(uint32(inst))<<32|word)
		binary.BigEndian.PutUint32(d[:], head)
		binary.BigEndian.PutUint64(d[4:], bits[i])
		p, q, word = p[valueSize:], q[size:], word+size/4
	}
}

// SetFloat adds a metric of TypeFloat: for each instance the low half of its
// bits is the float. PCP sends floats in value blocks.
func (b *ResultBuilder) SetFloat(pmid PMID, insts []int32, bits []uint64) {
	const size = blockHeader + 4
	p, q, word := b.begin(pmid, len(insts), len(bits), DPtr, size)
	head := uint64(blockWord(TypeFloat, size)) << 32
	for i, inst := range insts {
		if len(p) < valueSize || len(q) < size || i >= len(bits) {
			break // nothing to add; and spares the bounds checks
		}
		binary.BigEndian.PutUint64(p, uint64(uint32(inst))<<32|word)
		binary.BigEndian.PutUint64(q, head|uint64(uint32(bits[i])))
		p, q, word = p[valueSize:], q[size:], word+size/4
	}
}

// BeginStrings adds a metric of TypeString, whose n values the next n calls of
// AddString add.
func (b *ResultBuilder) BeginStrings(pmid PMID, n int) {
	if p, _, _ := b.begin(pmid, n, n, DPtr, 0); len(p) > 0 {
		b.set -= len(p)
		b.strings = n
	}
}

// AddString adds the value of one instance; the NUL that ends it is added here.
func (b *ResultBuilder) AddString(inst int32, s []byte) {
	if b.strings == 0 {
		b.fail(fmt.Errorf("string without BeginStrings: %w", ErrCount))
		return
	}
	n := blockHeader + len(s) + 1
	if n > maxBlock {
		b.fail(fmt.Errorf("string of %d bytes: %w", len(s), ErrTooBig))
		return
	}
	b.strings--
	size := n + padding(n)
	if !b.hasRoom(0, size) {
		return
	}
	p := b.buf[b.set : b.set+valueSize]
	binary.BigEndian.PutUint32(p, uint32(inst))
	binary.BigEndian.PutUint32(p[4:], b.pointer())
	q := b.buf[b.block : b.block+size]
	binary.BigEndian.PutUint32(q, blockWord(TypeString, n))
	end := blockHeader + copy(q[blockHeader:], s)
	q[end] = 0
	for i := end + 1; i < size; i++ {
		q[i] = padByte
	}
	b.set += valueSize
	b.block += size
}

// Finish returns the whole PDU, valid until the next Begin. It may be called
// once. ErrCount if there are not as many sets as Begin was told, or strings
// missing in the last one.
func (b *ResultBuilder) Finish() ([]byte, error) {
	if b.err == nil && b.strings > 0 {
		b.fail(fmt.Errorf("%d strings missing: %w", b.strings, ErrCount))
	}
	if b.err == nil && (b.sets != b.npmid || b.set < resultHeader) {
		b.fail(fmt.Errorf("%d value sets of %d: %w", b.sets, b.npmid, ErrCount))
	}
	if b.err != nil {
		return nil, fmt.Errorf("%v: %w", PDUResult, b.err)
	}
	b.blocks, b.block = b.set, b.set+copy(b.buf[b.set:], b.buf[b.blocks:b.block])
	if b.claimed != b.blocks {
		b.mend()
	}
	out := b.buf[:b.block:b.block]
	if err := patchLen(out, 0, b.ceiling); err != nil {
		return nil, fmt.Errorf("%v: %w", PDUResult, err)
	}
	return out, nil
}

// mend makes all pointers right for where the blocks have come to be.
func (b *ResultBuilder) mend() {
	by := uint32(b.blocks/4 - b.claimed/4)
	for p := b.buf[resultHeader:b.set]; len(p) > 0; {
		numval := int32(binary.BigEndian.Uint32(p[4:]))
		if numval <= 0 {
			p = p[setHeader-4:]
			continue
		}
		format := ValueFormat(binary.BigEndian.Uint32(p[8:]))
		end := setHeader + valueSize*int(numval)
		if format != InSitu {
			for q := p[setHeader:end]; len(q) >= valueSize; q = q[valueSize:] {
				binary.BigEndian.PutUint32(q[4:], binary.BigEndian.Uint32(q[4:])+by)
			}
		}
		p = p[end:]
	}
	b.claimed = b.blocks
}

// begin adds a set of n values, each with a block of size bytes. It writes the
// header and returns where the values and their blocks go, and what points to the
// first block; nothing if there is nothing to add.
func (b *ResultBuilder) begin(pmid PMID, n, m int, format ValueFormat, size int) (p, q []byte, word uint64) {
	if n != m || n <= 0 || !b.fits(setHeader+valueSize*n, size*n) {
		if !b.beginSlow(pmid, n, m, size) {
			return nil, nil, 0
		}
	}
	p = b.buf[b.set : b.set+setHeader+valueSize*n]
	q = b.buf[b.block : b.block+size*n]
	word = uint64(b.pointer())
	b.set += len(p)
	b.block += len(q)
	b.sets++
	binary.BigEndian.PutUint32(p, uint32(pmid))
	binary.BigEndian.PutUint32(p[4:], uint32(n))
	binary.BigEndian.PutUint32(p[8:], uint32(format))
	return p[setHeader:], q, word
}

// single adds a set of one value, which fits, and returns where its value word goes.
func (b *ResultBuilder) single(pmid PMID, format ValueFormat, inst int32) []byte {
	p := b.buf[b.set : b.set+setHeader+valueSize]
	binary.BigEndian.PutUint64(p, uint64(pmid)<<32|1)
	binary.BigEndian.PutUint64(p[8:], uint64(format)<<32|uint64(uint32(inst)))
	b.set += len(p)
	b.sets++
	return p[16:]
}

// fits says whether a new set of n bytes with blocks of m bytes can be written
// without further ado.
func (b *ResultBuilder) fits(n, m int) bool {
	return b.set+n <= b.blocks && b.block+m <= len(b.buf) && b.strings == 0 && b.err == nil
}

// beginSlow is begin where something is in the way.
func (b *ResultBuilder) beginSlow(pmid PMID, n, m, size int) bool {
	switch {
	case n != m || n < 0:
		b.fail(fmt.Errorf("%v: %d instances, %d values: %w", pmid, n, m, ErrCount))
		return false
	case n == 0:
		b.Status(pmid, 0)
		return false
	}
	return b.room(setHeader+valueSize*n, size*n)
}

// pointer is what points to the next block.
func (b *ResultBuilder) pointer() uint32 { return uint32(b.claimed+b.block-b.blocks) / 4 }

// room makes room for a new set of n bytes with blocks of m bytes.
func (b *ResultBuilder) room(n, m int) bool {
	if b.strings > 0 {
		b.fail(fmt.Errorf("%d strings missing: %w", b.strings, ErrCount))
	}
	return b.err == nil && b.hasRoom(n, m)
}

// hasRoom makes room for n bytes of value sets and m bytes of blocks.
func (b *ResultBuilder) hasRoom(n, m int) bool {
	if b.err == nil && b.set+n <= b.blocks && b.block+m <= len(b.buf) {
		return true
	}
	return b.grow(n, m)
}

// grow is the slow way of hasRoom.
func (b *ResultBuilder) grow(n, m int) bool {
	if b.err != nil {
		return false
	}
	need := int64(b.set) + int64(n) + int64(b.block-b.blocks) + int64(m)
	if need > int64(b.ceiling) {
		b.fail(fmt.Errorf("%d bytes: %w", need, ErrTooBig))
		return false
	}
	size, blocks := b.block-b.blocks, b.blocks
	if b.set+n > blocks {
		blocks = b.set + n + min(b.set+n, b.ceiling-int(need)) // twice as much, so that it is seldom done
	}
	b.reserve(blocks + size + m)
	copy(b.buf[blocks:], b.buf[b.blocks:b.block])
	b.blocks, b.block = blocks, blocks+size
	return true
}

// reserve makes the buffer at least n bytes long.
func (b *ResultBuilder) reserve(n int) {
	if n <= len(b.buf) {
		return
	}
	buf := make([]byte, max(n, min(2*len(b.buf), b.ceiling), 512))
	copy(buf, b.buf[:min(b.block, len(b.buf))])
	b.buf = buf
}

func (b *ResultBuilder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}
