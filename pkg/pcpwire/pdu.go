package pcpwire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// PDUType is the second word of a PDU (PDU_* of libpcp.h).
type PDUType uint32

// The PDU types. Those from HighResFetch on are between clients and pmcd only;
// an agent never sees them. 0x700b is unused.
const (
	PDUError         PDUType = 0x7000
	PDUResult        PDUType = 0x7001
	PDUProfile       PDUType = 0x7002
	PDUFetch         PDUType = 0x7003
	PDUDescReq       PDUType = 0x7004
	PDUDesc          PDUType = 0x7005
	PDUInstanceReq   PDUType = 0x7006
	PDUInstance      PDUType = 0x7007
	PDUTextReq       PDUType = 0x7008
	PDUText          PDUType = 0x7009
	PDUControlReq    PDUType = 0x700a
	PDUCreds         PDUType = 0x700c
	PDUPMNSIDs       PDUType = 0x700d
	PDUPMNSNames     PDUType = 0x700e
	PDUPMNSChild     PDUType = 0x700f
	PDUPMNSTraverse  PDUType = 0x7010
	PDUAttr          PDUType = 0x7011
	PDULabelReq      PDUType = 0x7012
	PDULabel         PDUType = 0x7013
	PDUHighResFetch  PDUType = 0x7014
	PDUHighResResult PDUType = 0x7015
	PDUDescIDs       PDUType = 0x7016
	PDUDescs         PDUType = 0x7017
)

// String returns PCP's name of the type, such as "PMNS_NAMES".
func (t PDUType) String() string {
	names := [...]string{
		"ERROR", "RESULT", "PROFILE", "FETCH", "DESC_REQ", "DESC", "INSTANCE_REQ", "INSTANCE",
		"TEXT_REQ", "TEXT", "CONTROL_REQ", "", "CREDS", "PMNS_IDS", "PMNS_NAMES", "PMNS_CHILD",
		"PMNS_TRAVERSE", "ATTR", "LABEL_REQ", "LABEL", "HIGHRES_FETCH", "HIGHRES_RESULT",
		"DESC_IDS", "DESCS",
	}
	if i := uint32(t - PDUError); i < uint32(len(names)) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("TYPE-%#x", uint32(t))
}

// HasReply says whether pmcd waits for an answer when it has sent an agent a PDU
// of this type. An answer to any other would be taken for that to the next request.
func (t PDUType) HasReply() bool {
	switch t {
	case PDUResult, PDUFetch, PDUDescReq, PDUInstanceReq, PDUTextReq,
		PDUPMNSIDs, PDUPMNSNames, PDUPMNSChild, PDUPMNSTraverse, PDULabelReq:
		return true
	default:
		return false
	}
}

const (
	// HeaderSize is the size of a PDU's header in bytes.
	HeaderSize = 12

	// MaxPDU is the largest PDU that is ever written, in bytes with the header:
	// the ceiling that pmcd has for agents since PCP 7.2. Before, it had none,
	// and a larger one stopped it for good.
	MaxPDU = math.MaxInt32 - 1024

	// DefaultMaxBody is the ceiling for a received body, in bytes, unless
	// [WithMaxBody] says otherwise.
	DefaultMaxBody = 64 << 20
)

// Header is the first 12 bytes of a PDU (__pmPDUHdr).
type Header struct {
	Len  int32 // of the whole PDU in bytes, header included
	Type PDUType
	From int32 // CREDS: the sender's pid. Otherwise from pmcd: the number of the client; to pmcd: 0
}

// append appends the 12 bytes of h.
func (h Header) append(dst []byte) []byte {
	dst = appendI32(dst, h.Len)
	dst = appendU32(dst, uint32(h.Type))
	return appendI32(dst, h.From)
}

// decodeHeader reads a header from the first 12 bytes of b.
func decodeHeader(b []byte) Header {
	return Header{
		Len:  int32(binary.BigEndian.Uint32(b)),
		Type: PDUType(binary.BigEndian.Uint32(b[4:])),
		From: int32(binary.BigEndian.Uint32(b[8:])),
	}
}

// PDU is a decoded PDU, without its header.
type PDU interface {
	// PDUType is the type word that goes with this body.
	PDUType() PDUType

	// AppendBinary appends the body to dst. It changes nothing in the PDU and
	// gives the same bytes each time. Offsets that a body contains count from
	// the start of the PDU, so HeaderSize bytes before the body. On an error
	// (a part that does not fit its field) dst is returned as it was.
	AppendBinary(dst []byte) ([]byte, error)

	// Decode reads a body. What it fills in may be slices of body and reuses
	// the slices that the receiver has already, so both must be left alone as
	// long as the PDU is in use, and what is to live on must be copied. An
	// error is always a *DecodeError; the receiver is then in no usable state.
	Decode(body []byte) error
}

// AppendPDU appends p with its header. On an error dst is returned as it was.
func AppendPDU(dst []byte, from int32, p PDU) ([]byte, error) {
	start := len(dst)
	out := Header{Type: p.PDUType(), From: from}.append(dst)
	out, err := p.AppendBinary(out)
	if err != nil {
		return dst, fmt.Errorf("%v: %w", p.PDUType(), err)
	}
	if err := patchLen(out, start, MaxPDU); err != nil {
		return dst, fmt.Errorf("%v: %w", p.PDUType(), err)
	}
	return out, nil
}

// patchLen writes the length of the PDU that starts at b[start:] into its header.
func patchLen(b []byte, start, ceiling int) error {
	n := len(b) - start
	if n > ceiling {
		return fmt.Errorf("%d bytes: %w", n, ErrTooBig)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(n))
	return nil
}

// Unknown is a PDU of a type that agents do not know, and the obsolete
// CONTROL_REQ. Decode aliases body.
type Unknown struct {
	Type PDUType
	Body []byte
}

// PDUType returns u.Type.
func (u *Unknown) PDUType() PDUType { return u.Type }

// AppendBinary appends u.Body.
func (u *Unknown) AppendBinary(dst []byte) ([]byte, error) { return append(dst, u.Body...), nil }

// Decode keeps body; it cannot fail.
func (u *Unknown) Decode(body []byte) error {
	u.Body = body
	return nil
}
