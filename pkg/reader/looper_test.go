package reader_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// TestNeverTorn looks at a file that holds one of two lists of metrics, and is
// rewritten all the time, always with the same generation, as by writers for which
// that is the time in seconds: what is loaded is one of the two. With nothing to
// spare of the machine, whoever reads or writes is held up in the middle of it.
func TestNeverTorn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 * runtime.NumCPU()))
	var stop atomic.Bool
	var spins atomic.Int64
	var wg sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		wg.Go(func() {
			for !stop.Load() {
				spins.Add(1)
			}
		})
	}
	onEach(t, func(t *testing.T, dir string) {
		for _, metrics := range []int{14, 1000} {
			neverTorn(t, filepath.Join(dir, "a"), metrics)
		}
	})
	stop.Store(true)
	wg.Wait()
}

func neverTorn(t *testing.T, path string, metrics int) {
	t.Helper()
	images := [][]byte{named("m", metrics), named("n", metrics)}
	check0(t, os.WriteFile(path, images[0], 0o644)) //nolint:gosec // as writers do
	d, err := reader.Open(filepath.Dir(path), reader.Options{})
	check0(t, err)
	defer d.Close()
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		for n := 0; err == nil && !stop.Load(); n++ {
			err = fill(f, images[n%2], n%4 < 2, false)
			_ = named("m", 14) // it is complete meanwhile
		}
		check0(t, errors.Join(err, f.Close()))
	})
	for range 10000 {
		for _, f := range d.Look().Files {
			if f.Held {
				continue
			}
			all := names(f)
			if i := slices.IndexFunc(all, func(n string) bool { return n == "" || n[0] != all[0][0] }); i >= 0 {
				t.Errorf("%d metrics: from %q to %q", metrics, all[0], all[i])
			}
		}
		d.Reap()
	}
	stop.Store(true)
	wg.Wait()
	if s := d.Look(); len(s.Files) != 1 || s.Files[0].Held {
		t.Errorf("%d metrics: not loaded in the end: %v", metrics, s.Others)
	}
	check0(t, os.Remove(path))
}

// named is a file whose names lie behind all else.
func named(prefix string, metrics int) []byte {
	img := mmvimage.New(2)
	for i := range metrics {
		img.Metric(mmvimage.Metric{Name: fmt.Sprint(prefix, i), Item: uint32(i), Type: mmvimage.U64, InDom: -1, Values: []mmvimage.Value{mmvimage.Int(1)}})
	}
	return img.Build()
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
