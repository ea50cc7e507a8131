package pcpwire

import "fmt"

// IDs is a PMNS_IDS PDU. From pmcd it asks for the names of one PMID, which a
// [Names] answers; to pmcd it is the reply to a [Names] of one name.
//
//	status   0
//	numpmid  at least 1
//	pmid     numpmid words
type IDs struct {
	Status int32
	IDs    []PMID
}

// PDUType returns PDUPMNSIDs.
func (*IDs) PDUType() PDUType { return PDUPMNSIDs }

// AppendBinary appends the body; there must be a PMID.
func (p *IDs) AppendBinary(dst []byte) ([]byte, error) {
	if len(p.IDs) == 0 {
		return dst, fmt.Errorf("numpmid 0: %w", ErrRange)
	}
	return appendPMIDs(appendI32(dst, p.Status), p.IDs), nil
}

// Decode reads the body; it aliases nothing of it. Bytes after the end are
// ignored, as libpcp 6.0 does.
func (p *IDs) Decode(body []byte) error {
	c := cursor{pdu: PDUPMNSIDs, src: body}
	p.Status = c.i32("status")
	p.IDs = c.pmids(p.IDs)
	return c.err
}
