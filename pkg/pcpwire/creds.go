package pcpwire

import "fmt"

// CVersion is the type of the one credential there is (CVERSION).
const CVersion uint8 = 1

// ProtocolVersion is the protocol's version since PCP 2 (PDU_VERSION2).
const ProtocolVersion uint8 = 2

// Flags of a version credential (PDU_FLAG_*). Those here have a meaning to pmcd
// when an agent sends them: each asks for an ATTR PDU per attribute of a client.
// pmcd answers with FlagAuth, if that was asked for, and no other.
const (
	FlagAuth      uint16 = 0x0004
	FlagContainer uint16 = 0x0040
)

const maxCreds = 1024 // as in libpcp

// Credential is one word of a CREDS PDU (__pmCred), most significant byte first.
type Credential struct {
	Type    uint8
	Version uint8
	Flags   uint16
}

// Creds is the first PDU of an agent, and pmcd's answer to it:
//
//	numcreds    1..1024
//	credential  numcreds words
type Creds struct {
	Credentials []Credential
}

// NewCreds returns the PDU with which agent and pmcd greet each other. PCP's own
// MMV agent sends no flags.
func NewCreds(flags uint16) *Creds {
	return &Creds{[]Credential{{Type: CVersion, Version: ProtocolVersion, Flags: flags}}}
}

// Version returns version and flags of the version credential; ok is false if there is none.
func (p *Creds) Version() (version uint8, flags uint16, ok bool) {
	for _, c := range p.Credentials {
		if c.Type == CVersion {
			return c.Version, c.Flags, true
		}
	}
	return 0, 0, false
}

// PDUType returns PDUCreds.
func (*Creds) PDUType() PDUType { return PDUCreds }

// AppendBinary appends the body; there must be 1 to 1024 credentials.
func (p *Creds) AppendBinary(dst []byte) ([]byte, error) {
	if n := len(p.Credentials); n < 1 || n > maxCreds {
		return dst, fmt.Errorf("%d credentials: %w", n, ErrRange)
	}
	dst = appendI32(dst, int32(len(p.Credentials)))
	for _, c := range p.Credentials {
		dst = appendU32(dst, uint32(c.Type)<<24|uint32(c.Version)<<16|uint32(c.Flags))
	}
	return dst, nil
}

// Decode reads the body; it aliases nothing.
func (p *Creds) Decode(body []byte) error {
	c := cursor{pdu: PDUCreds, src: body}
	n := c.count("numcreds", 4)
	if n < 1 || n > maxCreds {
		c.fail("numcreds", 0, ErrRange)
		return c.err
	}
	p.Credentials = resize(p.Credentials, n)
	for i := range p.Credentials {
		w := c.u32("credential")
		p.Credentials[i] = Credential{Type: uint8(w >> 24), Version: uint8(w >> 16), Flags: uint16(w)}
	}
	return c.end()
}
