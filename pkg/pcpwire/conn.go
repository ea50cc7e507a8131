package pcpwire

import (
	"errors"
	"fmt"
	"io"
)

// Conn is one end of the connection between pmcd and an agent. It is for one
// goroutine, but one may read while another writes.
type Conn struct {
	r       io.Reader
	w       io.Writer
	maxBody int

	buf    []byte // used over its whole length
	rd, wr int    // buf[rd:wr] has been read and not yet been given out
	last   int    // size of the PDU given out last
	rerr   error  // of the reader, for when buf[rd:wr] is used up
	fatal  error  // of the protocol: no PDU can be read any more
	pdus   pduSet
	keep   keeper

	wbuf  []byte
	wkeep keeper
}

// ConnOption is an option of [NewConn].
type ConnOption func(*Conn)

// WithMaxBody sets the ceiling for the body of a received PDU, in bytes.
func WithMaxBody(n int) ConnOption { return func(c *Conn) { c.maxBody = n } }

const (
	firstBuf = 8 << 10 // larger than nearly every request
	trustBuf = 1 << 20 // up to here a header's length is believed before the bytes have come
)

// NewConn returns a connection that reads PDUs from r and writes them to w; the
// two may be the same. It reads ahead: see [Conn.Buffered].
func NewConn(r io.Reader, w io.Writer, opts ...ConnOption) *Conn {
	c := &Conn{r: r, w: w, maxBody: DefaultMaxBody}
	for _, o := range opts {
		o(c)
	}
	return c
}

// Buffered is the number of bytes that have been read and not yet been given
// out: if it is not 0, ReadPDU may return without reading.
func (c *Conn) Buffered() int { return c.wr - c.rd }

// ReadPDU reads the next PDU. It and its slices are valid until the next call.
//
// Errors:
//   - io.EOF, as it is: the other end has closed the connection between two PDUs.
//   - *DecodeError, with the header: this PDU's body is malformed. The next one
//     can be read.
//   - one that wraps ErrIPC: a PDU was cut off by the end of the input (also wraps
//     io.ErrUnexpectedEOF), or its header has a length under 12 or over the
//     ceiling (also wraps ErrTooBig) or a negative type. All calls from then on
//     return it.
//   - any other is the reader's. Nothing that was read is lost: if it was
//     temporary, ReadPDU may be called again.
//
// A PDU of a type that is not known is an [Unknown].
func (c *Conn) ReadPDU() (Header, PDU, error) {
	if c.fatal != nil {
		return Header{}, nil, c.fatal
	}
	c.release()
	if err := c.fill(HeaderSize); err != nil {
		return Header{}, nil, err
	}
	h := decodeHeader(c.buf[c.rd:])
	if err := c.check(h); err != nil {
		c.fatal = err
		return Header{}, nil, err
	}
	n := int(h.Len)
	if err := c.fill(n); err != nil {
		return Header{}, nil, err
	}
	body := c.buf[c.rd+HeaderSize : c.rd+n : c.rd+n]
	c.rd += n
	c.last = n
	p := c.pdus.get(h.Type)
	if err := p.Decode(body); err != nil {
		return h, nil, err
	}
	return h, p, nil
}

// check says what is fatally wrong with a header.
func (c *Conn) check(h Header) error {
	switch {
	case h.Len < HeaderSize:
		return fmt.Errorf("%w: header with length %d", ErrIPC, h.Len)
	case int32(h.Type) < 0:
		return fmt.Errorf("%w: header with type %#x", ErrIPC, uint32(h.Type))
	case int(h.Len)-HeaderSize > c.maxBody:
		return fmt.Errorf("%w: %v of %d bytes: %w", ErrIPC, h.Type, h.Len, ErrTooBig)
	}
	return nil
}

// release takes back the PDU given out last.
func (c *Conn) release() {
	if c.last == 0 {
		return
	}
	if c.keep.done(len(c.buf), c.last) {
		c.buf = append([]byte(nil), c.buf[c.rd:c.wr]...)
		c.buf = c.buf[:cap(c.buf)]
		c.rd, c.wr = 0, c.wr-c.rd
		c.pdus = pduSet{}
	}
	if c.rd == c.wr {
		c.rd, c.wr = 0, 0
	}
	c.last = 0
}

// fill reads until at least n bytes are buffered.
func (c *Conn) fill(n int) error {
	for idle := 0; c.wr-c.rd < n; {
		if err := c.rerr; err != nil {
			c.rerr = nil
			return c.readError(err)
		}
		if c.wr == len(c.buf) {
			c.makeRoom(n)
		}
		m, err := c.r.Read(c.buf[c.wr:])
		c.wr += m
		c.rerr = err
		if m > 0 || err != nil {
			idle = 0
		} else if idle++; idle == 100 {
			c.rerr = io.ErrNoProgress
		}
	}
	return nil
}

// readError makes an error of the reader one of ReadPDU.
func (c *Conn) readError(err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read PDU: %w", err)
	case c.wr == c.rd:
		return io.EOF
	}
	c.fatal = fmt.Errorf("%w: PDU cut off after %d bytes: %w", ErrIPC, c.wr-c.rd, io.ErrUnexpectedEOF)
	return c.fatal
}

// makeRoom makes the full buffer take more, for a PDU of n bytes in all.
func (c *Conn) makeRoom(n int) {
	if c.rd > 0 {
		c.wr = copy(c.buf, c.buf[c.rd:c.wr])
		c.rd = 0
		if c.wr < len(c.buf) && n <= len(c.buf) {
			return
		}
	}
	buf := make([]byte, max(min(n, max(trustBuf, 2*c.wr)), firstBuf))
	copy(buf, c.buf[:c.wr])
	c.buf = buf
}

// WritePDU writes p with one Write. The PDU is encoded in the connection's own memory.
func (c *Conn) WritePDU(from int32, p PDU) error {
	if c.wkeep.done(cap(c.wbuf), len(c.wbuf)) {
		c.wbuf = nil
	}
	out, err := AppendPDU(c.wbuf[:0], from, p)
	if err != nil {
		return err
	}
	c.wbuf = out
	return c.WriteBytes(out)
}

// WriteBytes writes a whole PDU, as the builders return it, with one Write.
func (c *Conn) WriteBytes(pdu []byte) error {
	n, err := c.w.Write(pdu)
	if err == nil && n < len(pdu) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write PDU: %w", err)
	}
	return nil
}

// pduSet has one PDU of each type, to be decoded into again and again.
type pduSet struct {
	errorPDU    ErrorPDU
	result      Result
	profile     Profile
	fetch       Fetch
	descReq     DescReq
	desc        Desc
	instanceReq InstanceReq
	instance    Instance
	textReq     TextReq
	text        Text
	creds       Creds
	ids         IDs
	names       Names
	child       Child
	traverse    Traverse
	attr        Attr
	labelReq    LabelReq
	label       LabelPDU
	unknown     Unknown
}

// get returns the PDU of type t.
func (s *pduSet) get(t PDUType) PDU {
	switch t {
	case PDUError:
		return &s.errorPDU
	case PDUResult:
		return &s.result
	case PDUProfile:
		return &s.profile
	case PDUFetch:
		return &s.fetch
	case PDUDescReq:
		return &s.descReq
	case PDUDesc:
		return &s.desc
	case PDUInstanceReq:
		return &s.instanceReq
	case PDUInstance:
		return &s.instance
	case PDUTextReq:
		return &s.textReq
	case PDUText:
		return &s.text
	case PDUCreds:
		return &s.creds
	case PDUPMNSIDs:
		return &s.ids
	case PDUPMNSNames:
		return &s.names
	case PDUPMNSChild:
		return &s.child
	case PDUPMNSTraverse:
		return &s.traverse
	case PDUAttr:
		return &s.attr
	case PDULabelReq:
		return &s.labelReq
	case PDULabel:
		return &s.label
	default:
		s.unknown.Type = t
		return &s.unknown
	}
}
