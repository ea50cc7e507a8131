package pcpwire

// InstanceReq asks for instances of an instance domain:
//
//	indom
//	unused   8 bytes, 0; ignored
//	inst     InstNull: none
//	namelen  0: none
//	name     padded
//
// With neither inst nor name all of them are meant, with one of the two the
// instance of that number or name; both is an error of the client's.
type InstanceReq struct {
	InDom InDom
	Inst  int32
	Name  []byte // nil: none
}

// PDUType returns PDUInstanceReq.
func (*InstanceReq) PDUType() PDUType { return PDUInstanceReq }

// AppendBinary appends the body; it cannot fail.
func (p *InstanceReq) AppendBinary(dst []byte) ([]byte, error) {
	dst = appendU32(dst, uint32(p.InDom))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = appendI32(dst, p.Inst)
	return appendStr(dst, p.Name), nil
}

// Decode reads the body; Name aliases it. Bytes after the end are ignored, as
// libpcp does.
func (p *InstanceReq) Decode(body []byte) error {
	c := cursor{pdu: PDUInstanceReq, src: body}
	p.InDom = InDom(c.u32("indom"))
	c.bytes("unused", 8)
	p.Inst = c.i32("inst")
	p.Name = c.str("name")
	return c.err
}

// Instance is the reply to an [InstanceReq] (pmInResult):
//
//	indom
//	numinst
//	entries  numinst times: inst, namelen, name (padded)
//
// A reply to "all" has number and name of each; to a number one entry with
// InstNull and the name; to a name one entry with the number and no name.
type Instance struct {
	InDom   InDom
	Entries []InstanceEntry
}

// InstanceEntry is one instance.
type InstanceEntry struct {
	Inst int32  // internal identifier
	Name []byte // external identifier; nil: none
}

// PDUType returns PDUInstance.
func (*Instance) PDUType() PDUType { return PDUInstance }

// AppendBinary appends the body; it cannot fail.
func (p *Instance) AppendBinary(dst []byte) ([]byte, error) {
	dst = appendU32(dst, uint32(p.InDom))
	dst = appendI32(dst, int32(len(p.Entries)))
	for _, e := range p.Entries {
		dst = appendI32(dst, e.Inst)
		dst = appendStr(dst, e.Name)
	}
	return dst, nil
}

// Decode reads the body; the names alias it.
func (p *Instance) Decode(body []byte) error {
	c := cursor{pdu: PDUInstance, src: body}
	p.InDom = InDom(c.u32("indom"))
	p.Entries = resize(p.Entries, c.count("numinst", 8))
	for i := range p.Entries {
		p.Entries[i] = InstanceEntry{Inst: c.i32("inst"), Name: c.str("name")}
	}
	return c.end()
}
