package pcpwire

import (
	"fmt"
	"math"
)

// NodeStatus says whether a name has names below it (PMNS_*_STATUS).
type NodeStatus int32

// The two kinds of node.
const (
	Leaf    NodeStatus = 0
	NonLeaf NodeStatus = 1
)

// Names is a PMNS_NAMES PDU. From pmcd it asks for the PMID of one name, which
// an [IDs] answers; to pmcd it is the reply to an [IDs], a [Child] or a
// [Traverse].
//
//	nstrbytes  the bytes of all names, and one more for each
//	numstatus  0, or numnames
//	numnames
//	entries    numnames times: status (unless numstatus is 0), namelen, name (padded)
type Names struct {
	Status []NodeStatus // nil: no statuses; otherwise one for each name
	Names  [][]byte
}

// PDUType returns PDUPMNSNames.
func (*Names) PDUType() PDUType { return PDUPMNSNames }

// AppendBinary appends the body; ErrCount if statuses and names are not as many.
func (p *Names) AppendBinary(dst []byte) ([]byte, error) {
	if p.Status != nil && len(p.Status) != len(p.Names) {
		return dst, fmt.Errorf("%d statuses for %d names: %w", len(p.Status), len(p.Names), ErrCount)
	}
	nstrbytes := len(p.Names)
	for _, n := range p.Names {
		nstrbytes += len(n)
	}
	if nstrbytes > math.MaxInt32 {
		return dst, fmt.Errorf("nstrbytes %d: %w", nstrbytes, ErrTooBig)
	}
	dst = appendI32(dst, int32(nstrbytes))
	dst = appendI32(dst, int32(len(p.Status)))
	dst = appendI32(dst, int32(len(p.Names)))
	for i, n := range p.Names {
		if p.Status != nil {
			dst = appendI32(dst, int32(p.Status[i]))
		}
		dst = appendStr(dst, n)
	}
	return dst, nil
}

// Decode reads the body; the names alias it. nstrbytes may be larger than
// needed, and bytes after the end are ignored, as libpcp does.
func (p *Names) Decode(body []byte) error {
	c := cursor{pdu: PDUPMNSNames, src: body}
	nstrbytes := c.i32("nstrbytes")
	numstatus := c.i32("numstatus")
	n := c.count("numnames", 4)
	if c.err != nil {
		return c.err
	}
	// Without names libpcp does not look at the other two words.
	if n > 0 {
		switch {
		case nstrbytes < 0 || int(nstrbytes) > HeaderSize+len(body):
			c.fail("nstrbytes", 0, ErrRange)
		case numstatus != 0 && int(numstatus) != n:
			c.fail("numstatus", 4, ErrCount)
		case numstatus != 0 && n > c.left()/8:
			c.fail("numnames", 8, ErrShort)
		}
		if c.err != nil {
			return c.err
		}
	}
	p.Names = resize(p.Names, n)
	if n > 0 && numstatus != 0 {
		p.Status = resize(p.Status, n)
	} else {
		p.Status = nil
	}
	used := n
	for i := range p.Names {
		if p.Status != nil {
			p.Status[i] = NodeStatus(c.i32("status"))
		}
		p.Names[i] = c.str("name")
		used += len(p.Names[i])
	}
	if used > int(nstrbytes) && n > 0 {
		c.fail("nstrbytes", 0, ErrCount)
	}
	return c.err
}

// Child asks for the names just below a name (PMNS_CHILD):
//
//	subtype  1: with their statuses, 0: without
//	namelen
//	name     padded
//
// The reply is a [Names] of last components.
type Child struct {
	WantStatus bool
	Name       []byte
}

// PDUType returns PDUPMNSChild.
func (*Child) PDUType() PDUType { return PDUPMNSChild }

// AppendBinary appends the body; it cannot fail.
func (p *Child) AppendBinary(dst []byte) ([]byte, error) {
	var subtype int32
	if p.WantStatus {
		subtype = 1
	}
	return appendStr(appendI32(dst, subtype), p.Name), nil
}

// Decode reads the body; Name aliases it. Any subtype but 0 is taken for 1 and
// bytes after the end are ignored, as libpcp does.
func (p *Child) Decode(body []byte) error {
	c := cursor{pdu: PDUPMNSChild, src: body}
	p.WantStatus = c.u32("subtype") != 0
	p.Name = c.str("name")
	return c.err
}

// Traverse asks for the names of all leaves at or below a name (PMNS_TRAVERSE):
//
//	subtype  0; ignored
//	namelen
//	name     padded
//
// The reply is a [Names] of whole names, without statuses.
type Traverse struct {
	Name []byte
}

// PDUType returns PDUPMNSTraverse.
func (*Traverse) PDUType() PDUType { return PDUPMNSTraverse }

// AppendBinary appends the body; it cannot fail.
func (p *Traverse) AppendBinary(dst []byte) ([]byte, error) {
	return appendStr(appendI32(dst, 0), p.Name), nil
}

// Decode reads the body; Name aliases it. Bytes after the end are ignored, as
// libpcp does.
func (p *Traverse) Decode(body []byte) error {
	c := cursor{pdu: PDUPMNSTraverse, src: body}
	c.u32("subtype")
	p.Name = c.str("name")
	return c.err
}
