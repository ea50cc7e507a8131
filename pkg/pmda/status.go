package pmda

import (
	"errors"
	"syscall"

	"pmdammv/pkg/pcpwire"
)

// errMalformed is a request that can be decoded but makes no sense.
var errMalformed = errors.New("malformed request")

// statusOf returns the code that tells a client of an error. It is always
// negative: 0 is only the answer to a successful store, and in place of a text
// or of instances it brings pmcd down.
func statusOf(err error) pcpwire.Status {
	if errors.Is(err, errMalformed) {
		return pcpwire.ErrIPC
	}
	s, ok := errors.AsType[pcpwire.Status](err)
	if !ok || s >= 0 {
		return pcpwire.ErrGeneric
	}
	switch s {
	case pcpwire.ErrIPC, pcpwire.ErrTimeout, pcpwire.ErrPMDAReady, pcpwire.ErrPMDANotReady, -pcpwire.Status(syscall.EPIPE):
		return pcpwire.ErrGeneric
	default:
		return s
	}
}
