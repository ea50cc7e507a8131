// Package pcpwire speaks the protocol between pmcd and its agents (PMDAs):
// PCP's vocabulary ([PMID], [InDom], [Units], [Status] and so on), every PDU
// that an agent sends or gets, both ways, and the connection ([Conn]).
//
// A PDU is a 12-byte header (length, type, from) and a body, all in big-endian
// 32-bit words. Each PDU is a struct with two methods: AppendBinary appends
// the body, Decode reads one. Decode may keep slices of its input and reuses
// the memory that its receiver has; [Conn] therefore says how long a PDU lives.
//
// Big replies need no structs: [ResultBuilder] and [NamesBuilder] write a whole
// PDU into a buffer that is used again for the next one.
//
// The names are those of PCP's pmapi.h and libpcp.h, and there is one file per
// PDU, named like libpcp's p_*.c. Where libpcp of PCP 6.0 accepts from pmcd
// what the protocol does not allow for (bytes after the end of some requests),
// so does this package; everything else is rejected with a [DecodeError].
//
// The package logs nothing, opens nothing and starts no goroutines.
package pcpwire
