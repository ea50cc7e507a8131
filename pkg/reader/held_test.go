package reader_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// flux makes the file at path, mapped as m, incomplete in each way.
var flux = map[string]func(t *testing.T, path string, m []byte){
	"generation":    func(_ *testing.T, _ string, m []byte) { mmvimage.PutU64(m, mmvimage.HdrG2, 0) },
	"generations":   func(_ *testing.T, _ string, m []byte) { mmvimage.PutU64(m, mmvimage.HdrG1, 99) },
	"truncated":     func(t *testing.T, path string, _ []byte) { check0(t, os.Truncate(path, 0)) },
	"to nothing":    func(t *testing.T, path string, _ []byte) { check0(t, os.WriteFile(path, nil, 0o644)) },
	"to its header": func(t *testing.T, path string, _ []byte) { check0(t, os.Truncate(path, 39)) },
	"another": func(t *testing.T, path string, _ []byte) {
		put(t, filepath.Dir(path), "a", counter("n", 1, 1).Generations(1, 2))
	},
}

// TestHeld keeps names and descriptors, without values, of a file that is
// being written again: for five seconds, if that does not end before.
func TestHeld(t *testing.T) {
	for name, begin := range flux {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, dir string) {
				path := filepath.Join(dir, "a")
				put(t, dir, "a", counter("m", 2, 1))
				synctest.Test(t, func(t *testing.T) {
					w := watch(t, dir, reader.Options{})
					before := w.file("a")
					m := live(t, path)
					begin(t, path, m)
					s := w.look("a held, a pending")
					f := s.Files[0]
					if f.Catalog != before.Catalog {
						t.Error("another Catalog")
					}
					var v reader.Values
					if f.Load(wants(f.Catalog), &v) {
						t.Error("a file that is held has values")
					}
					if diff := cmp.Diff([]int{0, 0}, v.End); diff != "" {
						t.Errorf("ends (-want +got)\n%s", diff)
					}
					if !reader.Unfinished(s.Others[0].Err) {
						t.Errorf("error %v", s.Others[0].Err)
					}
					time.Sleep(4 * time.Second)
					if w.Look() != s {
						t.Error("another Snapshot, though nothing happened")
					}
					time.Sleep(999 * time.Millisecond)
					w.look("a held, a pending")
					time.Sleep(time.Millisecond)
					w.look("a pending")
					put(t, dir, "a", counter("m", 2, 1))
					w.look("a loaded")

					// this time it comes back
					m = live(t, path)
					begin(t, path, m)
					w.look("a held, a pending")
					time.Sleep(3 * time.Second)
					put(t, dir, "a", counter("m", 3, 1))
					if got := names(w.look("a loaded").Files[0]); len(got) != 3 {
						t.Errorf("metrics %v", got)
					}
					time.Sleep(3 * time.Second)
					w.look("a loaded")

					// and this time it goes
					m = live(t, path)
					begin(t, path, m)
					w.look("a held, a pending")
					check0(t, os.Remove(path))
					w.look("")
				})
			})
		})
	}
}

// TestHeldOnce does not begin the five seconds anew with every step.
func TestHeldOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	put(t, dir, "a", counter("m", 2, 1))
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, dir, reader.Options{})
		w.look("a loaded")
		for range 5 {
			check0(t, os.WriteFile(path, nil, 0o644))
			w.look("a held, a pending")
			check0(t, os.WriteFile(path, counter("m", 2, 1).Generations(1, 2).Build(), 0o644))
			w.look("a held, a pending")
			time.Sleep(time.Second)
		}
		w.look("a pending")
	})
}

// TestHeldWhileItMoves keeps them for as long as the writer goes on to make new
// generations, also when it is between two at every look, and five seconds more.
func TestHeldWhileItMoves(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	put(t, dir, "a", counter("m", 2, 1))
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, dir, reader.Options{})
		w.look("a loaded")
		m := live(t, path)
		for g := range 5 {
			mmvimage.PutU64(m, mmvimage.HdrG2, 0)
			mmvimage.PutU64(m, mmvimage.HdrG1, uint64(g+100))
			w.look("a held, a pending")
			time.Sleep(time.Minute)
		}
		w.look("a pending")
	})
}

// TestHeldThenRejected shows what is wrong at once.
func TestHeldThenRejected(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a", counter("m", 2, 1))
	w := watch(t, dir, reader.Options{})
	w.look("a loaded")
	put(t, dir, "a", counter("m", 2, 1).Generations(1, 2))
	w.look("a held, a pending")
	put(t, dir, "a", counter("m", 2, 1).Cluster(5000))
	w.look("a rejected")
}

// A file that is kept while it is rewritten, and is looked at each time since nothing
// tells when it changes, is no change each time.
func TestHeldUnchanged(t *testing.T) {
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
	check0(t, mmvimage.Write(target, counter("m", 1, 1).Build()))
	check0(t, os.Symlink(target, filepath.Join(dir, "a")))
	w := watch(t, dir, reader.Options{})
	w.look("a loaded")
	check0(t, os.Truncate(target, 0))
	s := w.Look()
	if len(s.Files) != 1 || !s.Files[0].Held {
		t.Fatalf("not kept: %v", s.Others)
	}
	for range 3 {
		if w.Look() != s {
			t.Fatal("another Snapshot")
		}
	}
}
