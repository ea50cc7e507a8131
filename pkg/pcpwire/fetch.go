package pcpwire

import (
	"encoding/binary"
	"fmt"
)

// Fetch asks for the current values of metrics:
//
//	ctxid    of the client's context; means nothing to an agent
//	unused   8 bytes, 0; ignored
//	numpmid  at least 1
//	pmid     numpmid words; all of the agent's domain, perhaps some twice
//
// The reply is a [Result] with as many value sets, in this order.
type Fetch struct {
	Context int32
	PMIDs   []PMID
}

// PDUType returns PDUFetch.
func (*Fetch) PDUType() PDUType { return PDUFetch }

// AppendBinary appends the body; there must be a PMID.
func (p *Fetch) AppendBinary(dst []byte) ([]byte, error) {
	if len(p.PMIDs) == 0 {
		return dst, fmt.Errorf("numpmid 0: %w", ErrRange)
	}
	dst = appendI32(dst, p.Context)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	return appendPMIDs(dst, p.PMIDs), nil
}

// Decode reads the body; it aliases nothing of it.
func (p *Fetch) Decode(body []byte) error {
	c := cursor{pdu: PDUFetch, src: body}
	p.Context = c.i32("ctxid")
	c.bytes("unused", 8)
	p.PMIDs = c.pmids(p.PMIDs)
	return c.end()
}

// appendPMIDs appends a count and that many PMIDs.
func appendPMIDs(dst []byte, pmids []PMID) []byte {
	dst = appendI32(dst, int32(len(pmids)))
	for _, p := range pmids {
		dst = appendU32(dst, uint32(p))
	}
	return dst
}

// pmids reads a count of at least 1 and that many PMIDs, into the memory of s.
func (c *cursor) pmids(s []PMID) []PMID {
	off := c.off
	n := c.count("numpmid", 4)
	if n == 0 {
		c.fail("numpmid", off, ErrRange)
		return s[:0]
	}
	s = resize(s, n)
	b := c.bytes("pmid", 4*n)
	for i := range s {
		s[i] = PMID(binary.BigEndian.Uint32(b[4*i:]))
	}
	return s
}
