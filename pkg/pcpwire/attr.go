package pcpwire

import "fmt"

// AttrKey names an attribute of a client (PCP_ATTR_*).
type AttrKey int32

// The attributes that pmcd may send.
const (
	AttrUserAuth  AttrKey = 4 // without value
	AttrUserName  AttrKey = 5
	AttrAuthName  AttrKey = 6
	AttrMethod    AttrKey = 8
	AttrRealm     AttrKey = 9
	AttrUserID    AttrKey = 11 // decimal
	AttrGroupID   AttrKey = 12 // decimal
	AttrProcessID AttrKey = 14 // decimal
	AttrContainer AttrKey = 15
)

const maxAttr = 4095 // value and NUL

// Attr tells an agent that has asked for it in its [Creds] an attribute of a
// client; there is no reply.
//
//	key
//	value  all the rest, ended by a NUL, not padded; or nothing
type Attr struct {
	Key   AttrKey
	Value []byte // without the NUL; nil: none
}

// PDUType returns PDUAttr.
func (*Attr) PDUType() PDUType { return PDUAttr }

// AppendBinary appends the body; ErrTooBig if value and NUL have over 4095 bytes.
func (p *Attr) AppendBinary(dst []byte) ([]byte, error) {
	if len(p.Value)+1 > maxAttr {
		return dst, fmt.Errorf("value of %d bytes: %w", len(p.Value), ErrTooBig)
	}
	dst = appendI32(dst, int32(p.Key))
	if p.Value == nil {
		return dst, nil
	}
	return append(append(dst, p.Value...), 0), nil
}

// Decode reads the body; Value aliases it. The NUL may be missing.
func (p *Attr) Decode(body []byte) error {
	c := cursor{pdu: PDUAttr, src: body}
	p.Key = AttrKey(c.i32("key"))
	off := c.off
	p.Value = c.bytes("value", c.left())
	if n := len(p.Value); n > 0 && p.Value[n-1] == 0 {
		p.Value = p.Value[: n-1 : n-1]
	}
	if len(p.Value)+1 > maxAttr {
		c.fail("value", off, ErrTooBig)
	}
	return c.end()
}
