package pcpwire

import "encoding/binary"

// padByte fills strings and value blocks up to a whole word.
const padByte = '~'

// A cursor reads a body from front to end. The first failure stays; reads after
// it give zeros, so a decoder may check once, before it uses what it has read.
type cursor struct {
	pdu PDUType
	src []byte
	off int // into src
	err error
}

// fail records a failure of the field that starts at body offset off.
func (c *cursor) fail(field string, off int, err error) {
	if c.err == nil {
		c.err = &DecodeError{PDU: c.pdu, Field: field, Off: HeaderSize + off, Err: err}
	}
}

func (c *cursor) left() int { return len(c.src) - c.off }

func (c *cursor) u32(field string) uint32 {
	if c.err != nil {
		return 0
	}
	if c.left() < 4 {
		c.fail(field, c.off, ErrShort)
		return 0
	}
	v := binary.BigEndian.Uint32(c.src[c.off:])
	c.off += 4
	return v
}

func (c *cursor) i32(field string) int32 { return int32(c.u32(field)) }

// count reads the number of elements that follow, each of at least size bytes:
// never more than there are bytes for.
func (c *cursor) count(field string, size int) int {
	off := c.off
	n := c.i32(field)
	switch {
	case n < 0:
		c.fail(field, off, ErrRange)
		return 0
	case int64(n)*int64(size) > int64(c.left()):
		c.fail(field, off, ErrShort)
		return 0
	}
	return int(n)
}

// bytes takes the next n >= 0 bytes, as a slice of the body; nil when n is 0.
func (c *cursor) bytes(field string, n int) []byte {
	if c.err != nil || n == 0 {
		return nil
	}
	if n > c.left() {
		c.fail(field, c.off, ErrShort)
		return nil
	}
	b := c.src[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

// str reads a length word, that many bytes, and the padding up to a whole word,
// which may be missing at the end of the body. Nil when the length is 0.
func (c *cursor) str(field string) []byte {
	n := c.count(field, 1)
	b := c.bytes(field, n)
	c.off += min(padding(n), c.left())
	return b
}

// end returns the first failure, if any; bytes that are left are one.
func (c *cursor) end() error {
	if c.left() > 0 {
		c.fail("end", c.off, ErrTrailing)
	}
	return c.err
}

// padding is how many bytes are missing from n to a multiple of 4.
func padding(n int) int { return -n & 3 }

// resize returns s with length n, in new memory only if it must be. The contents are undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func appendU32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

func appendI32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// appendStr appends a length word, s, and the padding up to a whole word.
func appendStr(dst, s []byte) []byte {
	dst = appendI32(dst, int32(len(s)))
	dst = append(dst, s...)
	return appendPad(dst, len(s))
}

// appendPad appends the padding that n bytes need.
func appendPad(dst []byte, n int) []byte {
	for range padding(n) {
		dst = append(dst, padByte)
	}
	return dst
}
