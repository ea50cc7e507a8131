package pcpwire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// NamesBuilder writes a PMNS_NAMES PDU, header included, into a buffer that it
// uses again for the next one. Begin, one call per name, Finish. The zero value
// is ready for use. The first error stays until the next Begin.
type NamesBuilder struct {
	buf        []byte
	withStatus bool
	names      int
	nstrbytes  int
	err        error
	keep       keeper
}

const namesHeader = HeaderSize + 12 // PDU header and the three counts

// Begin starts a list: with statuses, for AddStatus, or without, for Add.
func (b *NamesBuilder) Begin(withStatus bool) {
	if b.keep.done(cap(b.buf), len(b.buf)) {
		b.buf = nil
	}
	*b = NamesBuilder{buf: b.buf[:0], keep: b.keep, withStatus: withStatus}
	b.buf = Header{Type: PDUPMNSNames}.append(b.buf)
	b.buf = append(b.buf, make([]byte, namesHeader-HeaderSize)...)
}

// WithStatus says what Begin was told.
func (b *NamesBuilder) WithStatus() bool { return b.withStatus }

// Len is the number of names so far.
func (b *NamesBuilder) Len() int { return b.names }

// Add adds the name prefix+name, to a list without statuses.
func (b *NamesBuilder) Add(prefix, name []byte) {
	if b.room(len(prefix)+len(name), false) {
		b.add(prefix, name)
	}
}

// AddStatus adds a name to a list with statuses.
func (b *NamesBuilder) AddStatus(name []byte, s NodeStatus) {
	if b.room(len(name), true) {
		b.buf = appendI32(b.buf, int32(s))
		b.add(nil, name)
	}
}

func (b *NamesBuilder) add(prefix, name []byte) {
	n := len(prefix) + len(name)
	b.buf = appendI32(b.buf, int32(n))
	b.buf = append(b.buf, prefix...)
	b.buf = append(b.buf, name...)
	b.buf = appendPad(b.buf, n)
	b.names++
	b.nstrbytes += n + 1
}

// begun says whether Begin was called, and nothing has gone wrong since.
func (b *NamesBuilder) begun() bool {
	if b.err == nil && len(b.buf) < namesHeader {
		b.err = fmt.Errorf("no Begin: %w", ErrCount)
	}
	return b.err == nil
}

// room says whether a name of n bytes may be added.
func (b *NamesBuilder) room(n int, withStatus bool) bool {
	switch {
	case !b.begun():
	case withStatus != b.withStatus:
		b.err = fmt.Errorf("name with a status and one without: %w", ErrCount)
	case n > MaxPDU-12-len(b.buf): // status, length and padding
		b.err = fmt.Errorf("%d bytes and a name of %d: %w", len(b.buf), n, ErrTooBig)
	}
	return b.err == nil
}

// Finish returns the whole PDU, valid until the next Begin; ErrCount without one.
func (b *NamesBuilder) Finish() ([]byte, error) {
	if b.begun() {
		b.err = patchLen(b.buf, 0, MaxPDU)
	}
	if b.err != nil {
		return nil, fmt.Errorf("%v: %w", PDUPMNSNames, b.err)
	}
	p := b.buf[HeaderSize:namesHeader]
	binary.BigEndian.PutUint32(p, uint32(b.nstrbytes))
	if b.withStatus {
		binary.BigEndian.PutUint32(p[4:], uint32(b.names))
	}
	binary.BigEndian.PutUint32(p[8:], uint32(b.names))
	return slices.Clip(b.buf), nil
}
