package pcpwire

import "encoding/binary"

// TextKind says which text is meant (PM_TEXT_*): one of the first two and one of
// the last two.
type TextKind uint32

// The bits of a TextKind.
const (
	TextOneLine TextKind = 1
	TextHelp    TextKind = 2
	TextPMID    TextKind = 4 // ident is a PMID
	TextInDom   TextKind = 8 // ident is an InDom
)

// TextReq asks for a help text:
//
//	ident  PMID or InDom, as the kind says
//	type   the kind
type TextReq struct {
	Ident uint32
	Kind  TextKind
}

// PDUType returns PDUTextReq.
func (*TextReq) PDUType() PDUType { return PDUTextReq }

// AppendBinary appends the body; it cannot fail.
func (p *TextReq) AppendBinary(dst []byte) ([]byte, error) {
	return appendU32(appendU32(dst, p.Ident), uint32(p.Kind)), nil
}

// Decode reads the body. Bytes after the end are ignored, as libpcp does.
func (p *TextReq) Decode(body []byte) error {
	c := cursor{pdu: PDUTextReq, src: body}
	p.Ident = c.u32("ident")
	p.Kind = TextKind(c.u32("type"))
	return c.err
}

// Text is the reply to a [TextReq]:
//
//	ident   that of the request, but in the byte order of this host
//	buflen
//	text    without NUL, padded
//
// libpcp_pmda has always sent ident unswapped; pmcd passes it on and no client
// looks at it. Here too it is the one word in host order, so that Ident is the
// number that the request had.
type Text struct {
	Ident uint32
	Text  []byte
}

// PDUType returns PDUText.
func (*Text) PDUType() PDUType { return PDUText }

// AppendBinary appends the body; it cannot fail.
func (p *Text) AppendBinary(dst []byte) ([]byte, error) {
	return appendStr(binary.NativeEndian.AppendUint32(dst, p.Ident), p.Text), nil
}

// Decode reads the body; Text aliases it.
func (p *Text) Decode(body []byte) error {
	c := cursor{pdu: PDUText, src: body}
	if ident := c.bytes("ident", 4); ident != nil {
		p.Ident = binary.NativeEndian.Uint32(ident)
	}
	p.Text = c.str("text")
	return c.end()
}
