package pcpwire

// DescReq asks for the descriptor of a metric:
//
//	pmid
type DescReq struct {
	PMID PMID
}

// PDUType returns PDUDescReq.
func (*DescReq) PDUType() PDUType { return PDUDescReq }

// AppendBinary appends the body; it cannot fail.
func (p *DescReq) AppendBinary(dst []byte) ([]byte, error) {
	return appendU32(dst, uint32(p.PMID)), nil
}

// Decode reads the body.
func (p *DescReq) Decode(body []byte) error {
	c := cursor{pdu: PDUDescReq, src: body}
	p.PMID = PMID(c.u32("pmid"))
	return c.end()
}

// Desc is the descriptor of a metric (pmDesc), and the reply to a [DescReq]:
//
//	pmid, type, indom, semantics, units
type Desc struct {
	PMID      PMID
	Type      Type
	InDom     InDom // InDomNull: one value
	Semantics Semantics
	Units     Units
}

// PDUType returns PDUDesc.
func (*Desc) PDUType() PDUType { return PDUDesc }

// AppendBinary appends the body; it cannot fail.
func (p *Desc) AppendBinary(dst []byte) ([]byte, error) {
	dst = appendU32(dst, uint32(p.PMID))
	dst = appendI32(dst, int32(p.Type))
	dst = appendU32(dst, uint32(p.InDom))
	dst = appendI32(dst, int32(p.Semantics))
	return appendU32(dst, uint32(p.Units)), nil
}

// Decode reads the body.
func (p *Desc) Decode(body []byte) error {
	c := cursor{pdu: PDUDesc, src: body}
	*p = Desc{
		PMID:      PMID(c.u32("pmid")),
		Type:      Type(c.i32("type")),
		InDom:     InDom(c.u32("indom")),
		Semantics: Semantics(c.i32("semantics")),
		Units:     Units(c.u32("units")),
	}
	return c.end()
}
