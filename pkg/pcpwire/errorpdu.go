package pcpwire

// ErrorPDU is an ERROR PDU: the answer to a store (code 0 if all is well) and
// to any request that cannot be met; from pmcd only ErrNotConn, to say that the
// client of that number has gone.
//
//	code   0 or negative
//	datum  in the extended form only, which pmcd sends to its clients; ignored
type ErrorPDU struct {
	Code Status
}

// PDUType returns PDUError.
func (*ErrorPDU) PDUType() PDUType { return PDUError }

// AppendBinary appends the body in its short form; it cannot fail.
func (p *ErrorPDU) AppendBinary(dst []byte) ([]byte, error) {
	return appendI32(dst, int32(p.Code)), nil
}

// Decode reads the body in either form.
func (p *ErrorPDU) Decode(body []byte) error {
	c := cursor{pdu: PDUError, src: body}
	p.Code = Status(c.i32("code"))
	if c.left() > 0 {
		c.u32("datum")
	}
	return c.end()
}
