package reader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestStress has a writer that stores, writes over, truncates, replaces and
// removes, one goroutine that looks in the background, and several that
// answer. "steady" is never changed, so each answer must have all its values;
// what an answer has of "wild" must be of one layout.
func TestStress(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		steady, wild := filepath.Join(dir, "steady"), filepath.Join(dir, "wild")
		put(t, dir, "steady", counter("s", 200, 1000))
		put(t, dir, "wild", counter("l1.", 50, 1e6))
		w := watch(t, dir, reader.Options{})
		var table atomic.Pointer[reader.Snapshot] // what is published
		var mu sync.Mutex
		refresh := func() (looks uint64) {
			mu.Lock()
			defer mu.Unlock()
			table.Store(w.Look())
			w.Reap()
			return w.Looks()
		}
		refresh()
		stop := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					refresh()
				}
			}
		})
		var good, values atomic.Int64
		for range 3 {
			all.Go(func() {
				var v reader.Values
				for {
					select {
					case <-stop:
						return
					default:
					}
					looks := refresh()
					w.Acquire()
					s := table.Load()
					err := answer(s, &v)
					still := w.Still(looks)
					w.Release()
					if still {
						good.Add(1)
						values.Add(int64(len(v.Bits)))
						if err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		f, err := os.OpenFile(steady, os.O_RDWR, 0)
		check0(t, err)
		m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		check0(t, err)
		check0(t, f.Close())
		end := time.Now().Add(1500 * time.Millisecond)
		for i := 0; time.Now().Before(end); i++ {
			m[36]++ // the steady file's cluster: no layout
			m[36]--
			if err := disturb(wild, i); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		all.Wait()
		check0(t, unix.Munmap(m))
		if good.Load() == 0 || values.Load() < 200 {
			t.Errorf("%d good answers with %d values", good.Load(), values.Load())
		}
		t.Logf("%d good answers, %d values, %d faults", good.Load(), values.Load(), w.Faults())
	})
}

// disturb does the i-th thing to the wild file.
func disturb(wild string, i int) error {
	which := i / 7 % 2
	img := counter(fmt.Sprintf("l%d.", which), 50+which*30, uint64(which)*1e6).Generation(uint64(i + 1))
	switch i % 7 {
	case 0, 1:
		return mmvimage.Write(wild, img.Build())
	case 2:
		return os.Truncate(wild, 0)
	case 3:
		return os.WriteFile(wild, img.Build(), 0o644)
	case 4:
		return os.Truncate(wild, 100)
	case 5:
		return os.Remove(wild)
	default: // as a writer that stores
		b := img.Build()
		if err := os.WriteFile(wild, nil, 0o644); err != nil {
			return err
		}
		if err := os.Truncate(wild, int64(len(b))); err != nil {
			return err
		}
		m, err := mapShared(wild)
		if err != nil {
			return err
		}
		copy(m[40:], b[40:])
		copy(m[:16], b)
		copy(m[24:40], b[24:])
		copy(m[16:24], b[16:])
		return unix.Munmap(m)
	}
}

// answer loads all values of a Snapshot and says what is wrong with them.
func answer(s *reader.Snapshot, v *reader.Values) error {
	v.Reset()
	for _, f := range s.Files {
		from := len(v.Bits)
		ok := f.Load(wants(f.Catalog), v)
		if f.Name == "steady" {
			if !ok || len(v.Bits)-from != 200 {
				return fmt.Errorf("the steady file has %d values", len(v.Bits)-from)
			}
			for i, b := range v.Bits[from:] {
				if b != uint64(1000+i) {
					return fmt.Errorf("steady value %d is %d", i, b)
				}
			}
			continue
		}
		if !ok {
			continue
		}
		for i, name := range names(f) {
			if got := fmt.Sprintf("l%d.%d", v.Bits[from+i]/1e6, v.Bits[from+i]%1e6); got != name {
				return fmt.Errorf("%s has the value of %s", name, got)
			}
		}
	}
	return nil
}
