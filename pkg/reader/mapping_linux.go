package reader

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a read-only shared mapping of the bytes from start (on a page
// boundary) to size of a file. Its memory is only read through word and
// appendString, with SetPanicOnFault on, and no slice or string over it exists.
type mapping struct {
	base  unsafe.Pointer // of the byte at start
	start uintptr
	size  uintptr
}

func mapFile(fd int, start, size uint64) (mapping, error) {
	flags := unix.MAP_SHARED
	if size-start <= uint64(os.Getpagesize()) { // without its neighbours
		flags |= unix.MAP_POPULATE
	}
	p, err := unix.MmapPtr(fd, int64(start), nil, uintptr(size-start), unix.PROT_READ, flags)
	if err != nil {
		return mapping{}, fmt.Errorf("map: %w", err)
	}
	return mapping{p, uintptr(start), uintptr(size)}, nil
}

func (m mapping) unmap() {
	if m.size != 0 {
		_ = unix.MunmapPtr(m.base, m.size-m.start)
	}
}

// faulted tells whether a recovered panic is a fault of this memory: its file
// has become shorter. Any other panic is a bug. (On s390x the address is not
// exact, and in an emulator wrong.)
func (m mapping) faulted(r any) bool {
	e, ok := r.(interface{ Addr() uintptr }) // runtime.errorAddressString
	return ok && (e.Addr()-uintptr(m.base) < m.size-m.start || runtime.GOARCH == "s390x")
}

// at is where the byte at off of the file lies, which must be in the mapping.
func (m mapping) at(off uint32) unsafe.Pointer { return unsafe.Add(m.base, uintptr(off)-m.start) }

// word loads the 8 bytes at p, once if they are aligned.
func word(p unsafe.Pointer) uint64 {
	if uintptr(p)&7 == 0 {
		return load64(p)
	}
	return unaligned(p)
}

//go:noinline // so that word is inlined
func unaligned(p unsafe.Pointer) uint64 {
	var b [8]byte
	if uintptr(p)&3 == 0 {
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
		c := load8(m.at(uint32(off)))
		if c == 0 {
			break
		}
		dst = append(dst, c)
	}
	return dst
}

// statx is stat(2) of a path that ends in NUL, of fd if it is empty. It is
// here, with the other pointers, because the package unix copies the path at
// every call.
func statx(fd int, path *byte, x *unix.Statx_t) unix.Errno {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(path)),
			unix.AT_NO_AUTOMOUNT|unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, uintptr(unsafe.Pointer(x)), 0)
		if errno != unix.EINTR {
			return errno
		}
	}
}
