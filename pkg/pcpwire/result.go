package pcpwire

import (
	"encoding/binary"
	"fmt"
)

// What an agent says in [Result.Flags] of the first reply to a fetch after the
// change, once (PMCD_LABEL_CHANGE, PMCD_NAMES_CHANGE).
const (
	LabelsChanged uint32 = 0x08
	NamesChanged  uint32 = 0x10
)

// Result is the reply to a [Fetch], and from pmcd a store (pmResult):
//
//	tv_sec   fetch: LabelsChanged, NamesChanged or 0; store: undefined
//	tv_usec  fetch: 0; store: undefined
//	numpmid  fetch: as many as were asked for, in that order
//	sets     numpmid times: pmid, numval; if numval > 0: valfmt, and numval times: inst, value
//	blocks   one for each value that is not in situ: type (8 bits), vlen (24), body, padding
//
// vlen counts the block's first word and its body. The value word of such a
// value is where its block starts, in words from the start of the PDU. Blocks
// start right after the sets, leave no gaps, and are not shared.
type Result struct {
	Flags uint32 // tv_sec
	Usec  uint32
	Sets  []ValueSet
}

// ValueSet is the values of one metric (pmValueSet).
type ValueSet struct {
	PMID   PMID
	NumVal int32 // number of Values; 0: none; negative: a Status, and no Values
	Format ValueFormat
	Values []Value
}

const (
	resultHeader = HeaderSize + 12 // PDU header, time and numpmid
	setHeader    = 12              // pmid, numval and valfmt of a set that has values
	valueSize    = 8               // inst and value
)

// PDUType returns PDUResult.
func (*Result) PDUType() PDUType { return PDUResult }

// AppendBinary appends the body, the blocks in the order of their values.
// ErrCount if NumVal and Values of a set do not agree, ErrRange for a format or
// a block type that there is not, ErrTooBig for a block over 16 MiB or a PDU
// over MaxPDU.
func (p *Result) AppendBinary(dst []byte) ([]byte, error) {
	block := resultHeader
	for i := range p.Sets {
		s := &p.Sets[i]
		if err := s.check(); err != nil {
			return dst, fmt.Errorf("value set %d (%v): %w", i, s.PMID, err)
		}
		block += setHeader + valueSize*len(s.Values)
		if s.NumVal <= 0 {
			block -= 4
		}
	}
	out := appendU32(dst, p.Flags)
	out = appendU32(out, p.Usec)
	out = appendI32(out, int32(len(p.Sets)))
	for _, s := range p.Sets {
		out = appendU32(out, uint32(s.PMID))
		out = appendI32(out, s.NumVal)
		if s.NumVal <= 0 {
			continue
		}
		out = appendI32(out, int32(s.Format))
		for _, v := range s.Values {
			out = appendI32(out, v.Inst)
			if s.Format == InSitu {
				out = appendU32(out, v.Word)
				continue
			}
			if block > MaxPDU {
				return dst, fmt.Errorf("value block at %d: %w", block, ErrTooBig)
			}
			out = appendU32(out, uint32(block/4))
			n := blockHeader + len(v.Block.Body)
			block += n + padding(n)
		}
	}
	for _, s := range p.Sets {
		if s.NumVal <= 0 || s.Format == InSitu {
			continue
		}
		for _, v := range s.Values {
			out = v.Block.append(out)
		}
	}
	return out, nil
}

// check says what keeps a set from being sent.
func (s *ValueSet) check() error {
	if max(int(s.NumVal), 0) != len(s.Values) {
		return fmt.Errorf("numval %d with %d values: %w", s.NumVal, len(s.Values), ErrCount)
	}
	if s.NumVal <= 0 {
		return nil
	}
	if s.Format < InSitu || s.Format > SPtr {
		return fmt.Errorf("valfmt %d: %w", int32(s.Format), ErrRange)
	}
	for i := range s.Values {
		b := &s.Values[i].Block
		switch {
		case s.Format == InSitu:
		case b.Type < 0 || b.Type > 0xff:
			return fmt.Errorf("value %d: block type %d: %w", i, int32(b.Type), ErrRange)
		case len(b.Body) > maxBlock-blockHeader:
			return fmt.Errorf("value %d: block of %d bytes: %w", i, len(b.Body), ErrTooBig)
		}
	}
	return nil
}

// append appends the block with its padding.
func (b ValueBlock) append(dst []byte) []byte {
	n := blockHeader + len(b.Body)
	dst = appendU32(dst, blockWord(b.Type, n))
	dst = append(dst, b.Body...)
	return appendPad(dst, n)
}

// blockWord is the first word of a value block; vlen includes that word.
func blockWord(t Type, vlen int) uint32 { return uint32(t)<<24 | uint32(vlen) }

// Decode reads the body; the bodies of the value blocks alias it, the values are
// in new memory. It makes the checks that pmcd makes of an agent's reply.
func (p *Result) Decode(body []byte) error {
	c := cursor{pdu: PDUResult, src: body}
	p.Flags = c.u32("tv_sec")
	p.Usec = c.u32("tv_usec")
	n := c.count("numpmid", setHeader-4)
	if c.err != nil {
		return c.err
	}
	// Once to see how many values there are and where the blocks begin, and once more.
	p.Sets = resize(p.Sets, n)
	again, total := c, 0
	for i := range p.Sets {
		total += p.Sets[i].decode(&c)
	}
	if c.err != nil {
		return c.err
	}
	d := valueDecoder{cursor: again, arena: make([]Value, total), first: c.off, lowest: len(body)}
	for i := range p.Sets {
		d.values(&p.Sets[i])
	}
	return d.end()
}

// decode reads a set without its values, whose number it returns.
func (s *ValueSet) decode(c *cursor) int {
	*s = ValueSet{PMID: PMID(c.u32("pmid")), NumVal: c.i32("numval")}
	n := int(s.NumVal)
	if n <= 0 || c.err != nil {
		return 0
	}
	at := c.off
	s.Format = ValueFormat(c.i32("valfmt"))
	switch {
	case s.Format < InSitu || s.Format > SPtr:
		c.fail("valfmt", at, ErrRange)
	case n > c.left()/valueSize:
		c.fail("numval", at-4, ErrShort)
	}
	if c.err != nil {
		return 0
	}
	c.off += valueSize * n
	return n
}

// valueDecoder reads values; its cursor is in the value sets.
type valueDecoder struct {
	cursor
	arena  []Value // what is left of the memory for all of them
	first  int     // where the first block must start
	lowest int     // where the first block seen starts
	size   int     // of all blocks seen, with padding
}

// values reads the values of a set of which all else is known.
func (d *valueDecoder) values(s *ValueSet) {
	d.off += setHeader - 4
	n := int(s.NumVal)
	if n <= 0 {
		return
	}
	d.off += 4
	s.Values, d.arena = d.arena[:n:n], d.arena[n:]
	for i := range s.Values {
		v := &s.Values[i]
		v.Inst = d.i32("inst")
		at := d.off
		word := d.u32("value")
		if s.Format == InSitu {
			v.Word = word
		} else {
			v.Block = d.block(at, word)
		}
	}
}

// block returns the block that the pointer at offset at leads to.
func (d *valueDecoder) block(at int, word uint32) ValueBlock {
	off := int64(word)*4 - HeaderSize
	if off < int64(d.first) || off > int64(len(d.src)-blockHeader) {
		d.fail("value", at, ErrRange)
		return ValueBlock{}
	}
	head := binary.BigEndian.Uint32(d.src[off:])
	vlen := int(head & maxBlock)
	switch {
	case vlen < blockHeader:
		d.fail("vlen", int(off), ErrRange)
		return ValueBlock{}
	case vlen > len(d.src)-int(off):
		d.fail("vlen", int(off), ErrShort)
		return ValueBlock{}
	}
	d.lowest = min(d.lowest, int(off))
	d.size += vlen + padding(vlen)
	end := int(off) + vlen
	return ValueBlock{Type: Type(head >> 24), Body: d.src[int(off)+blockHeader : end : end]}
}

// end checks that the blocks seen fill the body from the end of the value sets.
func (d *valueDecoder) end() error {
	switch room := len(d.src) - d.first; {
	case d.size < room:
		d.fail("blocks", d.first+d.size, ErrTrailing)
	case d.size > room, d.lowest != d.first: // shared, or not where they should be
		d.fail("blocks", d.first, ErrRange)
	}
	return d.err
}
