package reader

import (
	"fmt"
	"iter"

	"golang.org/x/sys/unix"
)

// wholeSize is up to which size files are read at once.
const wholeSize = 64 << 10

// imageReader reads files into private memory, which it uses again: an image is
// valid until the next.
type imageReader struct {
	whole   []byte // for files of up to wholeSize
	windows [streams]window
	large   []byte // an anonymous mapping, for a file that is larger and in no order
	parsing scratch

	fd   int // the file of the image
	size int64
}

// open gives the image of the file of size bytes. The file may change meanwhile:
// what is then wrong in the image is for the caller to find out.
func (r *imageReader) open(fd int, size int64) (image, error) {
	r.fd, r.size = fd, size
	if size > wholeSize {
		forget(&r.windows)
		return image{size: uint64(size), src: r, windows: &r.windows}, nil
	}
	if r.whole == nil || int64(len(r.whole)) < size {
		r.whole = make([]byte, min(wholeSize, 2*size+1)) // never nil, even for no bytes: that means that it is not in memory
	}
	n, err := preadFull(fd, r.whole[:size], 0)
	return image{data: r.whole[:n], size: uint64(n)}, err
}

// filled is how many of the bytes of the file, of so many blocks, are not in
// holes.
func (r *imageReader) filled(blocks int64) (n uint64) {
	if blocks*512 >= r.size {
		return uint64(r.size)
	}
	for start, end := range filledParts(r.fd, r.size) {
		n += uint64(end - start)
	}
	return n
}

// readAt is for the image.
func (r *imageReader) readAt(b []byte, off uint64) (int, error) {
	return preadFull(r.fd, b, int64(off))
}

// readAll is for the image. Holes are not read: nothing is taken for them.
func (r *imageReader) readAll() (_ []byte, err error) {
	r.unmap()
	if r.large, err = unix.Mmap(-1, 0, int(r.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return nil, fmt.Errorf("memory for %d bytes: %w", r.size, err)
	}
	for start, end := range filledParts(r.fd, r.size) {
		_ = unix.Madvise(r.large[start:end], unix.MADV_POPULATE_WRITE) // older kernels do not know it: there it takes several times as long
		if _, err := preadFull(r.fd, r.large[start:end], start); err != nil {
			return nil, err
		}
	}
	return r.large, nil
}

// filledParts gives the parts of a file that are not holes, in turn. Where the
// file system does not know, all is one.
func filledParts(fd int, size int64) iter.Seq2[int64, int64] {
	return func(yield func(start, end int64) bool) {
		for off := int64(0); off < size; {
			start, err := unix.Seek(fd, off, unix.SEEK_DATA)
			if err == unix.ENXIO { // nothing but a hole from here on
				return
			}
			end, err2 := unix.Seek(fd, start, unix.SEEK_HOLE)
			if err != nil || err2 != nil || end <= off {
				start, end = off, size
			}
			start, end = min(start, size), min(end, size)
			if !yield(start, end) {
				return
			}
			off = end
		}
	}
}

// keepScratch is how much of each kind of scratch memory is kept for other
// files.
const keepScratch = 32 << 10

// release lets go of memory for an unusual file.
func (r *imageReader) release() {
	if s := &r.parsing; cap(s.last) > keepScratch || 8*cap(s.owner) > keepScratch || 4*cap(s.slots) > keepScratch {
		*s = scratch{}
	}
	r.windows = [streams]window{}
	r.unmap()
}

func (r *imageReader) unmap() {
	if r.large != nil {
		_ = unix.Munmap(r.large)
		r.large = nil
	}
}

// drop lets go of all memory.
func (r *imageReader) drop() {
	r.unmap()
	*r = imageReader{}
}

// preadFull reads until b is full or the file ends.
func preadFull(fd int, b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		k, err := unix.Pread(fd, b[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, fmt.Errorf("read: %w", err)
		case k == 0:
			return n, nil
		}
		n += k
	}
	return n, nil
}
