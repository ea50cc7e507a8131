// Package reader reads memory-mapped-value (MMV) files: it parses and
// validates one image, maps a file and reads its live values, and keeps a view
// of a directory of such files that is never older than the question asked.
// It knows nothing of PCP's protocol.
//
// # The file format
//
// An MMV file is written by one instrumented program through a shared mapping.
// All integers are in the byte order of the writing host, which is the reading
// host's; offsets count from the start of the file (see mmv(5) and
// pcp/mmv_dev.h).
//
//	header, 40 bytes                      TOC entry, 16 bytes
//	┌──────────┬──────────┐               ┌──────────┬──────────┐
//	│ "MMV\0"  │ version  │ 0             │ type     │ count    │
//	├──────────┴──────────┤               ├──────────┴──────────┤
//	│ generation 1        │ 8             │ offset              │
//	├─────────────────────┤               └─────────────────────┘
//	│ generation 2        │ 16
//	├──────────┬──────────┤               indom, 32 bytes
//	│ entries  │ flags    │ 24            ┌──────────┬──────────┐
//	├──────────┼──────────┤               │ serial   │ instances│
//	│ pid      │ cluster  │ 32            ├──────────┴──────────┤
//	└──────────┴──────────┘               │ first instance      │
//	                                      ├─────────────────────┤
//	instance, 80 (v1) or 24 bytes         │ one-line help       │
//	┌─────────────────────┐               ├─────────────────────┤
//	│ indom offset        │               │ help                │
//	├──────────┬──────────┤               └─────────────────────┘
//	│ zero     │ internal │
//	├──────────┴──────────┤               value, 32 bytes
//	│ name: 64 bytes (v1) │               ┌─────────────────────┐
//	│ or string offset    │               │ pmAtomValue         │ live
//	└─────────────────────┘               ├─────────────────────┤
//	                                      │ extra               │ live
//	metric, 104 (v1) or 48 bytes          ├─────────────────────┤
//	┌─────────────────────┐               │ metric offset       │
//	│ name, as above      │               ├─────────────────────┤
//	├──────────┬──────────┤               │ instance offset     │
//	│ item     │ type     │               └─────────────────────┘
//	├──────────┼──────────┤
//	│ semantics│ dimension│               string, 256 bytes, NUL-terminated
//	├──────────┼──────────┤
//	│ indom    │ zero     │               label, 256 bytes (version 3)
//	├──────────┴──────────┤               ┌──────────┬──────────┐
//	│ one-line help       │               │ flags    │ identity │
//	├─────────────────────┤               ├──────────┼──────────┘
//	│ help                │               │ internal │ payload, 244 bytes
//	└─────────────────────┘               └──────────┴───────────
//
// # Hostile files
//
// Whoever can write to the directory can write the files, at any time. So the
// static part (everything but the two words marked live, and the strings that
// live words point to) is copied out, each entry once, and validated in that
// copy; live words are loaded once each, and ranges are checked on the loaded
// value. Memory that stops existing (the file was truncated) is a fault that is
// caught, and the file is then without values.
package reader
