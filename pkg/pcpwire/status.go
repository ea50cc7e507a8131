package pcpwire

import (
	"fmt"
	"syscall"
)

// Status is an error code as it is on the wire (PM_ERR_* of pmapi.h): negative;
// a code above ErrGeneric is a negated errno. 0 is no error.
type Status int32 //nolint:errname // PCP calls it a status, and 0 is no error

// The codes that an agent may send or get.
const (
	ErrGeneric      Status = -12345
	ErrText         Status = -12349 // no help text
	ErrAppVersion   Status = -12350
	ErrValue        Status = -12351
	ErrTimeout      Status = -12353 // never to be sent: pmcd ends the agent
	ErrName         Status = -12357
	ErrPMID         Status = -12358
	ErrInDom        Status = -12359
	ErrInst         Status = -12360
	ErrUnit         Status = -12361
	ErrConv         Status = -12362
	ErrTrunc        Status = -12363
	ErrSign         Status = -12364
	ErrProfile      Status = -12365
	ErrIPC          Status = -12366 // pmcd ends an agent that answers a fetch, a text request or a store with it
	ErrEOF          Status = -12368
	ErrNoProfile    Status = -12381
	ErrNoAgent      Status = -12386
	ErrPermission   Status = -12387
	ErrAgain        Status = -12389
	ErrNotConn      Status = -12391 // from pmcd: the client of this number has gone
	ErrNonLeaf      Status = -12394
	ErrType         Status = -12397
	ErrThread       Status = -12398
	ErrNoContainer  Status = -12399
	ErrBadStore     Status = -12400
	ErrNoLabels     Status = -12410
	ErrPMDAFenced   Status = -12411
	ErrArg          Status = -12415
	ErrBotch        Status = -12442
	ErrTooSmall     Status = -12443
	ErrTooBig       Status = -12444 // also what this package returns for a length over a limit
	ErrFault        Status = -12445
	ErrPMDAReady    Status = -13393 // sent unasked: requests are welcome again
	ErrPMDANotReady Status = -13394
	ErrNYI          Status = -21344
)

// Error returns the text that pmErrStr gives; for a negated errno that of [syscall.Errno].
func (s Status) Error() string {
	if text := s.text(); text != "" {
		return text
	}
	if s < 0 && s > ErrGeneric {
		return syscall.Errno(-s).Error()
	}
	return fmt.Sprintf("No such PMAPI error code (%d)", int32(s))
}

// text is the text of the codes that have one of their own.
func (s Status) text() string {
	switch s {
	case 0:
		return "No error"
	case ErrGeneric:
		return "Generic error, already reported above"
	case ErrText:
		return "One-line or help text is not available"
	case ErrAppVersion:
		return "Metric not supported by this version of monitored application"
	case ErrValue:
		return "Missing metric value(s)"
	case ErrTimeout:
		return "Timeout waiting for a response from PMCD"
	case ErrName:
		return "Unknown metric name"
	case ErrPMID:
		return "Unknown or illegal metric identifier"
	case ErrInDom:
		return "Unknown or illegal instance domain identifier"
	case ErrInst:
		return "Unknown or illegal instance identifier"
	case ErrUnit:
		return "Illegal pmUnits specification"
	case ErrConv:
		return "Impossible value or scale conversion"
	case ErrTrunc:
		return "Truncation in value conversion"
	case ErrSign:
		return "Negative value in conversion to unsigned"
	case ErrProfile:
		return "Explicit instance identifier(s) required"
	case ErrIPC:
		return "IPC protocol failure"
	case ErrEOF:
		return "IPC channel closed"
	case ErrNoProfile:
		return "Missing profile - protocol botch"
	case ErrNoAgent:
		return "No PMCD agent for domain of request"
	case ErrPermission:
		return "No permission to perform requested operation"
	case ErrAgain:
		return "Try again. Information not currently available"
	case ErrNotConn:
		return "Not Connected"
	case ErrNonLeaf:
		return "Metric name is not a leaf in PMNS"
	case ErrType:
		return "Unknown or illegal metric type"
	case ErrThread:
		return "Operation not supported for multi-threaded applications"
	case ErrNoContainer:
		return "Container not found"
	case ErrBadStore:
		return "Bad input to pmstore"
	case ErrNoLabels:
		return "No support for metric label metadata"
	case ErrPMDAFenced:
		return "PMDA is currently fenced and unable to respond to requests"
	case ErrArg:
		return "Bad value for function argument"
	case ErrBotch:
		return "Internal inconsistency detected or assertion failed"
	case ErrTooSmall:
		return "Insufficient elements in list"
	case ErrTooBig:
		return "Result size exceeded"
	case ErrFault:
		return "QA fault injected"
	case ErrPMDAReady:
		return "PMDA is now responsive to requests"
	case ErrPMDANotReady:
		return "PMDA is not yet ready to respond to requests"
	case ErrNYI:
		return "Functionality not yet implemented"
	default:
		return ""
	}
}
