package pcpwire

import (
	"encoding/binary"
	"fmt"
)

// LabelLevel is what labels belong to (PM_LABEL_*); the same bits are in the
// flags of each label, with two more.
type LabelLevel uint32

// The levels, and what the ident of a request is.
const (
	LabelContext   LabelLevel = 0x01 // PMIDNull; pmcd answers it itself
	LabelDomain    LabelLevel = 0x02 // the domain's number
	LabelInDom     LabelLevel = 0x04 // an InDom
	LabelCluster   LabelLevel = 0x08 // a PMID; its item means nothing
	LabelItem      LabelLevel = 0x10 // a PMID
	LabelInstances LabelLevel = 0x20 // an InDom

	LabelCompound LabelLevel = 0x40 // in a label's flags: from a map
	LabelOptional LabelLevel = 0x80 // in a label's flags: a note, not part of the identity
)

// LabelReq asks for labels:
//
//	ident
//	type   the level
type LabelReq struct {
	Ident uint32
	Level LabelLevel
}

// PDUType returns PDULabelReq.
func (*LabelReq) PDUType() PDUType { return PDULabelReq }

// AppendBinary appends the body; it cannot fail.
func (p *LabelReq) AppendBinary(dst []byte) ([]byte, error) {
	return appendU32(appendU32(dst, p.Ident), uint32(p.Level)), nil
}

// Decode reads the body. Bytes after the end are ignored, as libpcp 6.0 does.
func (p *LabelReq) Decode(body []byte) error {
	c := cursor{pdu: PDULabelReq, src: body}
	p.Ident = c.u32("ident")
	p.Level = LabelLevel(c.u32("type"))
	return c.err
}

// LabelPDU is the reply to a [LabelReq] (LABEL):
//
//	ident, type  those of the request
//	pad          0
//	nsets        1 or, if there is nothing to say, 0; LabelInstances: any number
//	sets         nsets times: inst, nlabels, jsonoff, jsonlen, and nlabels labels
//	json         the texts of all sets, one after the other, not padded
//
// A label is a word and two halves: its name's offset (16 bits), the name's
// length (8), flags (8); its value's offset (16), the value's length (16).
// jsonoff counts from the start of the PDU, the label's offsets from jsonoff.
// A negative nlabels is an error code.
type LabelPDU struct {
	Ident uint32
	Level LabelLevel
	Sets  []LabelSet
}

// LabelSet is the labels of one thing (pmLabelSet).
type LabelSet struct {
	Inst   int32   // InstNull unless the level is LabelInstances
	JSON   []byte  // an object, up to 65534 bytes; nil: none
	Labels []Label // index into JSON, by name, up to 254
	Err    Status  // negative: there are no labels because of this
}

// Label is one label of a set (pmLabel): name without its quotes, value with them.
type Label struct {
	NameOff  uint16
	NameLen  uint8
	Flags    uint8 // LabelLevel bits
	ValueOff uint16
	ValueLen uint16
}

// Limits of a label set, as in libpcp.
const (
	MaxLabels    = 254
	MaxLabelJSON = 65534
)

const labelSetSize, labelSize = 16, 8

// PDUType returns PDULabel.
func (*LabelPDU) PDUType() PDUType { return PDULabel }

// AppendBinary appends the body. ErrTooBig for a set over the limits, ErrRange
// for a label that does not lie in its set's JSON or in a set with Err, or an
// Err that is no error code.
func (p *LabelPDU) AppendBinary(dst []byte) ([]byte, error) {
	json := HeaderSize + 16
	for i := range p.Sets {
		if err := p.Sets[i].check(); err != nil {
			return dst, fmt.Errorf("label set %d: %w", i, err)
		}
		json += labelSetSize + labelSize*len(p.Sets[i].Labels)
	}
	out := appendU32(dst, p.Ident)
	out = appendU32(out, uint32(p.Level))
	out = appendI32(out, 0)
	out = appendI32(out, int32(len(p.Sets)))
	for _, s := range p.Sets {
		n := int32(len(s.Labels))
		if s.Err != 0 {
			n = int32(s.Err)
		}
		if json > MaxPDU {
			return dst, fmt.Errorf("jsonoff %d: %w", json, ErrTooBig)
		}
		out = appendI32(out, s.Inst)
		out = appendI32(out, n)
		out = appendI32(out, int32(json))
		out = appendI32(out, int32(len(s.JSON)))
		for _, l := range s.Labels {
			out = appendU32(out, uint32(l.NameOff)<<16|uint32(l.NameLen)<<8|uint32(l.Flags))
			out = appendU32(out, uint32(l.ValueOff)<<16|uint32(l.ValueLen))
		}
		json += len(s.JSON)
	}
	for _, s := range p.Sets {
		out = append(out, s.JSON...)
	}
	return out, nil
}

// check says what keeps a set from being sent.
func (s *LabelSet) check() error {
	switch {
	case len(s.Labels) > MaxLabels:
		return fmt.Errorf("%d labels: %w", len(s.Labels), ErrTooBig)
	case len(s.JSON) > MaxLabelJSON:
		return fmt.Errorf("%d bytes of JSON: %w", len(s.JSON), ErrTooBig)
	case s.Err > 0, s.Err != 0 && len(s.Labels) > 0:
		return fmt.Errorf("error code %d with %d labels: %w", int32(s.Err), len(s.Labels), ErrRange)
	}
	for i, l := range s.Labels {
		if !l.inside(len(s.JSON)) {
			return fmt.Errorf("label %d is not in the JSON: %w", i, ErrRange)
		}
	}
	return nil
}

// inside says whether name and value lie in n bytes.
func (l Label) inside(n int) bool {
	return int(l.NameOff)+int(l.NameLen) <= n && int(l.ValueOff)+int(l.ValueLen) <= n
}

// Decode reads the body; the JSON aliases it. Besides the bounds it checks, as
// libpcp does since 6.3.1, that nothing but padding follows the last set's JSON.
func (p *LabelPDU) Decode(body []byte) error {
	c := cursor{pdu: PDULabel, src: body}
	p.Ident = c.u32("ident")
	p.Level = LabelLevel(c.u32("type"))
	c.u32("pad")
	n := c.count("nsets", labelSetSize)
	if c.err != nil {
		return c.err
	}
	p.Sets = resize(p.Sets, n)
	// What the sets leave is the most that there can be of labels.
	arena := make([]Label, 0, (c.left()-labelSetSize*n)/labelSize)
	end := c.off
	for i := range p.Sets {
		arena, end = p.Sets[i].decode(&c, arena)
		if c.err != nil {
			return c.err
		}
	}
	if over := len(body) - end; over > padding(end) {
		c.fail("end", end, ErrTrailing)
	}
	return c.err
}

// decode reads one set, whose labels go to the end of arena, and returns where its JSON ends.
func (s *LabelSet) decode(c *cursor, arena []Label) ([]Label, int) {
	*s = LabelSet{Inst: c.i32("inst")}
	at := c.off
	nlabels := c.i32("nlabels")
	off := c.i32("jsonoff")
	n := c.i32("jsonlen")
	end := int64(off) - HeaderSize + int64(n)
	switch {
	case nlabels > MaxLabels:
		c.fail("nlabels", at, ErrTooBig)
	case int(nlabels)*labelSize > c.left():
		c.fail("nlabels", at, ErrShort)
	case off < HeaderSize:
		c.fail("jsonoff", at+4, ErrRange)
	case n < 0:
		c.fail("jsonlen", at+8, ErrRange)
	case n > MaxLabelJSON:
		c.fail("jsonlen", at+8, ErrTooBig)
	case end > int64(len(c.src)):
		c.fail("jsonlen", at+8, ErrShort)
	}
	if c.err != nil {
		return arena, 0
	}
	if n > 0 {
		s.JSON = c.src[end-int64(n) : end : end]
	}
	if nlabels < 0 {
		s.Err = Status(nlabels)
		return arena, int(end)
	}
	first := len(arena)
	for range nlabels {
		at := c.off
		b := c.bytes("label", labelSize) // there are that many
		l := Label{
			NameOff: binary.BigEndian.Uint16(b), NameLen: b[2], Flags: b[3],
			ValueOff: binary.BigEndian.Uint16(b[4:]), ValueLen: binary.BigEndian.Uint16(b[6:]),
		}
		if !l.inside(int(n)) {
			c.fail("label", at, ErrRange)
			return arena, 0
		}
		arena = append(arena, l)
	}
	if nlabels > 0 {
		s.Labels = arena[first:len(arena):len(arena)]
	}
	return arena, int(end)
}
