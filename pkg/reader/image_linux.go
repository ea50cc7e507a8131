package reader

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const scratchSize = 1 << 20

// imageReader copies files into private memory. The memory is its own: valid
// until the next read.
type imageReader struct {
	scratch []byte // for files of up to scratchSize
	large   []byte // an anonymous mapping, for a file that is larger, or of which not all is read
	zero    [2]int // from where to where large is zero, at least
	parsing scratch
}

// read copies the file of size bytes; filled is how many of them are not holes,
// which are not read. Nor is the section skip, if it is one: it is left zero.
// The file may change meanwhile: what is then wrong in the copy is for the
// caller to find out.
func (r *imageReader) read(fd int, size, blocks int64, skip TOCEntry) (data []byte, filled uint64, err error) {
	switch {
	case skip.Count > 0: // nothing is a hole
		data, err = r.readAround(fd, int(size), int(skip.Offset), int(skip.Offset)+int(skip.Count)*ValueSize)
		return data, uint64(size), err
	case size <= scratchSize && blocks*512 >= size:
		if int64(len(r.scratch)) < size {
			r.scratch = make([]byte, min(scratchSize, max(2*size, 64<<10)))
		}
		data = r.scratch[:size]
		n, err := preadFull(fd, data, 0)
		return data[:n], uint64(n), err
	default:
		return r.readSparse(fd, size)
	}
}

// mapLarge makes large a new mapping.
func (r *imageReader) mapLarge(size int) (err error) {
	r.unmap()
	r.large, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("memory for %d bytes: %w", size, err)
	}
	r.zero = [2]int{0, size}
	return nil
}

// readAround reads all but the bytes from start to end. Memory that has been
// used for another file is used again, since most of it is as it must be when
// the two are alike.
func (r *imageReader) readAround(fd, size, start, end int) ([]byte, error) {
	fresh := len(r.large) < size
	if fresh {
		if err := r.mapLarge(size); err != nil {
			return nil, err
		}
	}
	data, zero := r.large[:size], r.zero
	clear(data[start:max(start, min(end, zero[0]))])
	clear(data[min(end, max(start, zero[1])):end])
	r.zero = [2]int{start, end}
	if fresh { // all pages at once: one by one takes several times as long
		_ = unix.Madvise(data[:start], unix.MADV_POPULATE_WRITE) // older kernels do not know it
	}
	for _, part := range [][2]int{{0, start}, {end, size}} {
		b := data[part[0]:part[1]]
		n, err := preadFull(fd, b, int64(part[0]))
		if err != nil {
			return nil, err
		}
		clear(b[n:]) // the file has become shorter
	}
	return data, nil
}

// readSparse reads what is not a hole.
func (r *imageReader) readSparse(fd int, size int64) (data []byte, filled uint64, err error) {
	if err := r.mapLarge(int(size)); err != nil {
		return nil, 0, err
	}
	r.zero = [2]int{}
	for off := int64(0); off < size; {
		start, end := off, size
		if s, err := unix.Seek(fd, off, unix.SEEK_DATA); err == nil {
			start = min(s, size)
			if e, err := unix.Seek(fd, start, unix.SEEK_HOLE); err == nil {
				end = min(e, size)
			}
		} else if err == unix.ENXIO { // nothing but a hole from here on
			break
		}
		n, err := preadFull(fd, r.large[start:end], start)
		filled += uint64(n)
		if err != nil {
			return nil, 0, err
		}
		if end <= off {
			break
		}
		off = end
	}
	return r.large, filled, nil
}

// keepScratch is how much of each kind of scratch memory is kept for other
// files.
const keepScratch = 64 << 10

// release lets go of memory for an unusual file.
func (r *imageReader) release() {
	if s := &r.parsing; cap(s.arena) > keepScratch || 8*cap(s.owner) > keepScratch || 4*cap(s.slots) > keepScratch {
		*s = scratch{}
	}
	if len(r.scratch) > keepScratch {
		r.scratch = nil
	}
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
	r.release()
	r.scratch, r.parsing = nil, scratch{}
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
