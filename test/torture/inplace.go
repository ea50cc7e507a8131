package main

import (
	"os"

	"pmdammv/test/mmvimage"

	"golang.org/x/sys/unix"
)

// rewriting is a way to write a file in place.
type rewriting struct {
	truncate bool // to nothing, before
	mapped   bool // filled through a mapping, else with pwrite
	last     bool // its second generation through a mapping, else with pwrite
}

func (w rewriting) String() string {
	s := "in place"
	if w.truncate {
		s += ", truncated"
	}
	if w.mapped {
		s += ", filled through a mapping"
	}
	if w.last {
		s += ", completed through a mapping"
	}
	return s
}

// opening is a file that is being written in place.
type opening struct {
	rewriting
	image []byte
	f     *os.File // closed as soon as it is not needed
	mem   []byte   // a mapping of the file, if one is used; as long as it is there, closing is no event
}

// begin writes everything but the second generation, which is 0 until then.
func (w rewriting) begin(path string, image []byte) (*opening, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // to be read by others
	if err != nil {
		return nil, err
	}
	o := &opening{rewriting: w, image: image, f: f}
	if err := o.fill(); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *opening) fill() error {
	st, err := o.f.Stat()
	if err != nil {
		return err
	}
	size := int64(len(o.image))
	switch {
	case o.truncate:
		err = o.f.Truncate(0)
	case st.Size() < mmvimage.HeaderSize:
	case o.mapped:
		if err = o.mmap(st.Size()); err == nil {
			copy(o.mem[mmvimage.HdrG2:], make([]byte, 8))
		}
	default:
		_, err = o.f.WriteAt(make([]byte, 8), mmvimage.HdrG2)
	}
	if err == nil && (o.truncate || st.Size() != size) {
		o.unmap()
		err = o.f.Truncate(size)
	}
	if err == nil && o.mem == nil && (o.mapped || o.last) {
		err = o.mmap(size)
	}
	if err != nil {
		return err
	}
	const after = mmvimage.HdrG2 + 8
	if o.mapped {
		copy(o.mem, o.image[:mmvimage.HdrG2])
		copy(o.mem[after:], o.image[after:])
	} else if _, err = o.f.WriteAt(o.image[:mmvimage.HdrG2], 0); err == nil {
		_, err = o.f.WriteAt(o.image[after:], after)
	}
	if err == nil && o.last && o.f != nil {
		err = o.f.Close()
		o.f = nil
	}
	return err
}

func (o *opening) mmap(size int64) (err error) {
	o.mem, err = unix.Mmap(int(o.f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil && o.mapped && o.last && size == int64(len(o.image)) {
		err = o.f.Close() // as libraries do
		o.f = nil
	}
	return err
}

func (o *opening) unmap() {
	if o.mem != nil {
		_ = unix.Munmap(o.mem)
		o.mem = nil
	}
}

// close lets go of the file; nil is fine.
func (o *opening) close() {
	if o == nil {
		return
	}
	o.unmap()
	if o.f != nil {
		_ = o.f.Close()
		o.f = nil
	}
}

// complete writes the second generation. With a mapping nobody is told of that until the file is closed.
func (o *opening) complete() error {
	g2 := o.image[mmvimage.HdrG2 : mmvimage.HdrG2+8]
	if o.last {
		copy(o.mem[mmvimage.HdrG2:], g2)
		return nil
	}
	_, err := o.f.WriteAt(g2, mmvimage.HdrG2)
	return err
}
