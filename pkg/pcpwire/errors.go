package pcpwire

import (
	"errors"
	"fmt"
)

// Errors of encoding and decoding, found with [errors.Is]. ErrTooBig, a
// [Status], is the one for lengths over a limit.
var (
	ErrShort    = errors.New("ends too early")                    // the body ends inside a field
	ErrTrailing = errors.New("bytes after the end")               // the body goes on after its last field
	ErrRange    = errors.New("value out of range")                // a field has a value that it cannot have
	ErrCount    = errors.New("count does not match the contents") // more or fewer elements than announced
)

// DecodeError says what is wrong with the body of a PDU, and where.
type DecodeError struct {
	PDU   PDUType
	Field string // as named in the doc comment of the PDU
	Off   int    // of the start of the field, in bytes from the start of the PDU (header included)
	Err   error  // ErrShort, ErrTrailing, ErrRange, ErrCount or ErrTooBig
}

// Error gives PDU, field, offset and reason on one line.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("%v: %s at byte %d: %v", e.PDU, e.Field, e.Off, e.Err)
}

// Unwrap returns e.Err.
func (e *DecodeError) Unwrap() error { return e.Err }
