package reader_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestNeverRejected looks at a good file while it is rewritten all the time, in
// every way: it is complete or not, and nothing is ever wrong with it. Its size
// decides how it is read.
func TestNeverRejected(t *testing.T) {
	ways := map[string]func(f *os.File, image []byte) error{
		"truncated, mapped":  func(f *os.File, image []byte) error { return fill(f, image, true, true) },
		"truncated, written": func(f *os.File, image []byte) error { return fill(f, image, true, false) },
		"mapped":             func(f *os.File, image []byte) error { return fill(f, image, false, true) },
		"written":            func(f *os.File, image []byte) error { return fill(f, image, false, false) },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, dir string) {
				for _, metrics := range []int{10, 300, 1000} {
					neverRejected(t, dir, metrics, way)
				}
			})
		})
	}
}

func neverRejected(t *testing.T, dir string, metrics int, way func(f *os.File, image []byte) error) {
	t.Helper()
	path := filepath.Join(dir, "a")
	image := counter("m", metrics, 1).Build()
	check0(t, os.WriteFile(path, image, 0o644)) //nolint:gosec // as writers do
	d, err := reader.Open(dir, reader.Options{})
	check0(t, err)
	defer d.Close()
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := uint64(2); !stop.Load(); n++ {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err == nil {
				mmvimage.PutU64(image, mmvimage.HdrG1, n)
				err = way(f, image)
				_ = f.Close()
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	looks := 3000
	if testing.Short() {
		looks = 500
	}
	for range looks {
		s := d.Look()
		for _, o := range s.Others {
			if o.State == reader.Rejected {
				t.Errorf("%d metrics: %v", metrics, o.Err)
				looks = 0
			}
		}
		d.Reap()
		if looks == 0 {
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	check0(t, os.Remove(path))
}

// TestRejectedAtLast: what is said of a bad file that is written to while it is
// read is not the last word, also when nothing tells of the writing.
func TestRejectedAtLast(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		image := counter("m", 10, 1).Build()
		mmvimage.PutU32(image, mmvimage.HeaderSize+mmvimage.TOCCount, 1<<30)
		mmv, elsewhere := filepath.Join(dir, "mmv"), filepath.Join(dir, "a")
		check0(t, os.Mkdir(mmv, 0o755)) //nolint:gosec // as it is
		check0(t, os.WriteFile(elsewhere, image, 0o600))
		f, err := os.OpenFile(elsewhere, os.O_RDWR, 0)
		check0(t, err)
		defer f.Close()                                        //nolint:errcheck // of no interest
		check0(t, os.Link(elsewhere, filepath.Join(mmv, "a"))) // f is not known by this name
		check0(t, os.Remove(elsewhere))
		w := watch(t, mmv, reader.Options{})
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				if _, err := f.WriteAt(image[len(image)-1:], int64(len(image)-1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for range 2000 { // an older kernel's clock may be too coarse to see the writing
			if s := w.Rescan(); s.Others[0].State == reader.Pending {
				break
			}
		}
		stop.Store(true)
		wg.Wait()
		w.look("a rejected")
	})
}

// fill writes the image, the second generation last, which is the first.
func fill(f *os.File, image []byte, truncate, mapped bool) error {
	const after = mmvimage.HdrG2 + 8
	if _, err := f.WriteAt(make([]byte, 8), mmvimage.HdrG2); err != nil {
		return err
	}
	if truncate {
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
	if err := f.Truncate(int64(len(image))); err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, len(image), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(m) //nolint:errcheck // nothing is lost
	if mapped {
		copy(m, image[:mmvimage.HdrG2])
		copy(m[after:], image[after:])
	} else if _, err := f.WriteAt(image[:mmvimage.HdrG2], 0); err != nil {
		return err
	} else if _, err := f.WriteAt(image[after:], after); err != nil {
		return err
	}
	copy(m[mmvimage.HdrG2:], image[mmvimage.HdrG1:mmvimage.HdrG1+8])
	return nil
}
