package reader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
)

// layout is one of two images with the same size and generation, and other
// names for the same places. Values tell which one they are from.
func layout(which, n int) []byte {
	return counter(fmt.Sprintf("l%d.", which), n, uint64(which)*1e6).Build()
}

// rewriteChild writes the one layout over the other, again and again.
func rewriteChild(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	f, err := os.OpenFile(args[0], os.O_RDWR, 0) //nolint:gosec // a test's own file
	if err != nil {
		return err
	}
	stop := make(chan error)
	go func() { stop <- ready("") }()
	images := [2][]byte{layout(1, n), layout(2, n)}
	for i := 1; ; i++ {
		select {
		case err := <-stop:
			return err
		case <-time.After(pause + time.Duration(i%7)*pause/10):
		}
		if _, err := f.WriteAt(images[i%2], 0); err != nil {
			return err
		}
	}
}

// fineTimes tells whether two writes in a row leave different times when they
// are looked at in between, as newer kernels see to.
func fineTimes(t *testing.T, dir string) bool {
	t.Helper()
	path := filepath.Join(dir, ".times")
	seen := map[time.Time]bool{}
	for i := range 20 {
		check0(t, os.WriteFile(path, []byte{byte(i)}, 0o644))
		st, err := os.Stat(path)
		check0(t, err)
		seen[st.ModTime()] = true
	}
	check0(t, os.Remove(path))
	return len(seen) == 20
}

// TestLayoutsAreNotMixed reads a file that another process rewrites in place
// with write(2), without telling so by its generation. An answer that is Still
// good at its end has names and values of one layout, also when others look
// meanwhile. The first rewrite is let go by: see Quiet.
func TestLayoutsAreNotMixed(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		pause, rewrites := "200us", uint64(400)
		if !fineTimes(t, dir) {
			pause, rewrites = "12ms", 40 // longer than a clock tick
		}
		for _, n := range []int{10, 1000} {
			for _, others := range []int{0, 1} {
				t.Run(fmt.Sprintf("%d metrics, %d others", n, others), func(t *testing.T) {
					path := filepath.Join(dir, "a")
					check0(t, os.WriteFile(path, layout(1, n), 0o644))
					w := watch(t, dir, reader.Options{})
					w.look("a loaded")
					overwrite(t, path, layout(2, n))
					w.look("a loaded")
					start(t, "rewrite", nil, path, strconv.Itoa(n), pause)
					l := &looker{watched: w}
					stop := make(chan struct{})
					var wg sync.WaitGroup
					for range others {
						wg.Go(func() {
							for {
								select {
								case <-stop:
									return
								default:
									l.look()
								}
							}
						})
					}
					good, again := answers(t, l, w.Touches()+rewrites)
					close(stop)
					wg.Wait()
					if good == 0 {
						t.Error("no good answer")
					}
					t.Logf("%d good, %d made again", good, again)
				})
			}
		}
	})
}

// a looker is a goroutine's way to look, with the count of Looks until that.
type looker struct {
	*watched
	mu sync.Mutex
}

func (l *looker) look() (*reader.Snapshot, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Look(), l.Looks()
}

// answers makes answers until the file was touched that often and one was
// good, or for a few seconds, and tells how many were good, and how many were
// not.
func answers(t *testing.T, w *looker, touches uint64) (good, again int) {
	var v reader.Values
	enough := time.Now().Add(3 * time.Second)
	eventually(t, "a good answer", func() bool {
		s, looks := w.look()
		w.Acquire()
		defer w.Reap()
		defer w.Release()
		if len(s.Files) != 1 || s.Files[0].Held {
			return false
		}
		f := s.Files[0]
		v.Reset()
		if !f.Load(wants(f.Catalog), &v) || !w.Still(looks) {
			again++
			return false
		}
		good++
		for i, name := range names(f) {
			if got := fmt.Sprintf("l%d.%d", v.Bits[i]/1e6, v.Bits[i]%1e6); got != name {
				t.Errorf("%s has the value of %s, after %d good answers", name, got, good)
				return true
			}
		}
		return w.Touches() >= touches || time.Now().After(enough)
	})
	return good, again
}

// TestStill is what makes an answer a bad one.
func TestStill(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "a")
		put(t, dir, "a", counter("m", 1, 1))
		w := watch(t, dir, reader.Options{})
		w.look("a loaded")
		looks := w.Looks()
		expect := func(what string, quiet, still bool) {
			t.Helper()
			if got := w.Quiet(); got != quiet {
				t.Errorf("%s: quiet is %v", what, got)
			}
			if got := w.Still(looks); got != still {
				t.Errorf("%s: still is %v", what, got)
			}
		}
		expect("at first", true, true)

		m := live(t, path)
		m[len(m)-32]++ // the value
		expect("after a store", true, true)

		put(t, dir, "b", counter("n", 1, 1))
		expect("with another file", false, false)
		s := w.look("a loaded, b loaded")
		expect("when that was looked at", true, true) // no loaded file
		looks = w.Looks()

		overwrite(t, path, counter("m", 1, 5).Build()) // the same but for the value
		expect("after a write", false, false)
		if w.Look() != s {
			t.Error("a written value makes another Snapshot")
		}
		expect("of values only", true, false) // perhaps: that was seen by others too late
		looks = w.Looks()
		expect("of values only, later", true, true)

		overwrite(t, path, counter("x", 1, 5).Build())
		expect("after another layout", false, false)
		w.look("a loaded, b loaded")
		expect("when that was looked at", true, false)
		looks = w.Looks()
		expect("in the new one", true, true)

		// Now the file is known as one that is written to. An event comes late;
		// a time that has changed is enough.
		check0(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
		expect("with another time", false, false)
		w.Look()
		expect("when that was looked at", true, false)
		looks = w.Looks()
		expect("in the next answer", true, true)
	})
}

// TestStillOfMany: when files that are written to by system calls have changed,
// the next Look looks at all of them, not only at the first that is found.
func TestStillOfMany(t *testing.T) {
	dir := t.TempDir()
	all := []string{"a", "b", "c", "d"}
	for _, name := range all {
		put(t, dir, name, counter("m", 1, 1))
	}
	w := watch(t, dir, reader.Options{})
	w.look("a loaded, b loaded, c loaded, d loaded")
	for _, name := range all[:3] {
		overwrite(t, filepath.Join(dir, name), counter("m", 1, 5).Build())
	}
	s := w.Look()
	for _, waiting := range []string{"", "d"} {
		w.AgeStamps()
		want := all[:3]
		if waiting != "" { // an event, besides
			overwrite(t, filepath.Join(dir, waiting), counter("m", 1, 5).Build())
			want = all
		}
		looks := w.Looks()
		if w.Quiet() {
			t.Error("quiet")
		}
		if w.Look() != s {
			t.Error("another Snapshot")
		}
		if diff := cmp.Diff(want, w.LookedAt(looks)); diff != "" {
			t.Errorf("looked at (-want +got)\n%s", diff)
		}
	}
}
