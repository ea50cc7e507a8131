//go:build race

package reader

import "unsafe"

// With the race detector atomic loads happen inside its C code, where a fault
// cannot be recovered, so these are plain ones that it does not look at.

//go:norace
//go:nocheckptr
func load64(p unsafe.Pointer) uint64 { return *(*uint64)(p) }

//go:norace
//go:nocheckptr
func load32(p unsafe.Pointer) uint32 { return *(*uint32)(p) }

//go:norace
//go:nocheckptr
func load8(p unsafe.Pointer) byte { return *(*byte)(p) }
