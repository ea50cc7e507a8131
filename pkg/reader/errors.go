package reader

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong with a file. Errors of this package wrap one of these.
var (
	ErrTag       = errors.New("not an MMV file")
	ErrVersion   = errors.New("unknown version")
	ErrInFlux    = errors.New("generation in flux")          // the writer has not finished: look again
	ErrTruncated = errors.New("file ends before its header") // likewise
	ErrBounds    = errors.New("outside the file")
	ErrCount     = errors.New("bad count")
	ErrMissing   = errors.New("section missing")
	ErrDuplicate = errors.New("occurs twice")
	ErrReference = errors.New("not the offset of an entry")
	ErrNoName    = errors.New("no name")
	ErrRange     = errors.New("out of range")
	ErrTooBig    = errors.New("too big")
	ErrSections  = errors.New("strings overlap")
)

// FormatError says what is wrong in a file and where. Section, Index and Field
// name the faulty field (Index is -1 where the section has one entry or none),
// Off is its offset in the file, Err one of this package's sentinels, Detail
// the numbers behind it.
type FormatError struct {
	Section Section
	Index   int
	Field   string
	Off     uint64
	Err     error
	Detail  string
}

// Error is like "metric[7] name at offset 1234: outside the file: 9999 + 256 > 4096".
func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString(e.Section.String())
	if e.Index >= 0 {
		fmt.Fprintf(&b, "[%d]", e.Index)
	}
	if e.Field != "" {
		b.WriteString(" " + e.Field)
	}
	fmt.Fprintf(&b, " at offset %d: %v", e.Off, e.Err)
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// Unwrap gives the sentinel.
func (e *FormatError) Unwrap() error { return e.Err }

// Unfinished tells whether err means that the writer has not finished yet, so
// that the file may become good by itself.
func Unfinished(err error) bool {
	return errors.Is(err, ErrInFlux) || errors.Is(err, ErrTruncated)
}
