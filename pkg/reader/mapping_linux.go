package reader

import (
	"fmt"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a read-only shared mapping of the first size bytes of a file. Its
// memory is only read through the load functions, under a guard, and no slice
// or string over it exists.
type mapping struct {
	base unsafe.Pointer
	size uintptr
}

func mapFile(fd int, size int64) (mapping, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return mapping{}, fmt.Errorf("map: %w", err)
	}
	return mapping{p, uintptr(size)}, nil
}

func (m mapping) unmap() {
	if m.base != nil {
		_ = unix.MunmapPtr(m.base, m.size)
	}
}

// guard is deferred by functions that read mapped memory: it turns the fault
// of a file that became shorter into ok == false. Anything else that panics is
// a bug and goes on.
//
//	old := debug.SetPanicOnFault(true)
//	defer guard(old, &fault)
func guard(old bool, fault *bool) {
	debug.SetPanicOnFault(old)
	switch r := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }: // runtime.errorAddressString
		*fault = true
	default:
		panic(r)
	}
}

// word loads the 8 bytes at off, once if they are aligned; the caller has
// checked that they are inside.
func (m mapping) word(off uint32) uint64 {
	p := unsafe.Add(m.base, off)
	if off&7 == 0 {
		return load64(p)
	}
	var b [8]byte
	if off&3 == 0 {
		native.PutUint32(b[:4], load32(p))
		native.PutUint32(b[4:], load32(unsafe.Add(p, 4)))
	} else {
		for i := range b {
			b[i] = load8(unsafe.Add(p, i))
		}
	}
	return native.Uint64(b[:])
}

// appendString appends the string at off, up to its NUL, its 255th byte or the
// end of the mapping.
func (m mapping) appendString(dst []byte, off uint64) []byte {
	end := min(off+StringSize-1, uint64(m.size))
	for ; off < end; off++ {
		c := load8(unsafe.Add(m.base, off))
		if c == 0 {
			break
		}
		dst = append(dst, c)
	}
	return dst
}
