//go:build !race

package reader

import (
	"sync/atomic"
	"unsafe"
)

// Loads of words that another process may be storing at the same time. Each is
// one load, never repeated or torn by the compiler.

func load64(p unsafe.Pointer) uint64 { return atomic.LoadUint64((*uint64)(p)) }
func load32(p unsafe.Pointer) uint32 { return atomic.LoadUint32((*uint32)(p)) }
func load8(p unsafe.Pointer) byte    { return *(*byte)(p) }
