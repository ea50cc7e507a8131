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

// begin writes everything but the second generation, which is 0 until then. The file is open, to be completed.
func (w rewriting) begin(path string, image []byte) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // to be read by others
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && w.truncate {
		err = f.Truncate(0)
	} else if err == nil && st.Size() >= mmvimage.HeaderSize {
		err = w.store(f, mmvimage.HdrG2, make([]byte, 8))
	}
	if err == nil && (w.truncate || st.Size() != int64(len(image))) {
		err = f.Truncate(int64(len(image)))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	const after = mmvimage.HdrG2 + 8
	if w.mapped {
		err = stored(f, 0, image[:mmvimage.HdrG2])
		if err == nil {
			err = stored(f, after, image[after:])
		}
	} else if _, err = f.WriteAt(image[:mmvimage.HdrG2], 0); err == nil {
		_, err = f.WriteAt(image[after:], after)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// complete writes the second generation.
func (w rewriting) complete(f *os.File, image []byte) error {
	g2 := image[mmvimage.HdrG2 : mmvimage.HdrG2+8]
	var err error
	if w.last {
		err = stored(f, mmvimage.HdrG2, g2)
	} else {
		_, err = f.WriteAt(g2, mmvimage.HdrG2)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// store writes in the way that the filling is done.
func (w rewriting) store(f *os.File, off int64, b []byte) error {
	if w.mapped {
		return stored(f, off, b)
	}
	_, err := f.WriteAt(b, off)
	return err
}

// stored writes through a mapping, of which no file event tells.
func stored(f *os.File, off int64, b []byte) error {
	m, err := unix.Mmap(int(f.Fd()), 0, int(off)+len(b), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m[off:], b)
	return unix.Munmap(m)
}
