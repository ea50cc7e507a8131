package reader_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
)

// TestReplace is every way in which one file takes another's place, seen at
// the next look. A neighbour keeps its File.
func TestReplace(t *testing.T) {
	before, after := counter("old", 2, 1).Build(), counter("new", 3, 7).Build()
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, path string)
	}{
		{"rename", func(t *testing.T, path string) { put(t, filepath.Dir(path), "a", counter("new", 3, 7)) }},
		{"rename from elsewhere", func(t *testing.T, path string) {
			from := filepath.Join(filepath.Dir(path), ".made")
			check0(t, os.WriteFile(from, after, 0o644))
			check0(t, os.Rename(from, path))
		}},
		{"exchange", func(t *testing.T, path string) {
			from := filepath.Join(filepath.Dir(path), ".made")
			check0(t, os.WriteFile(from, after, 0o644))
			check0(t, unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE))
		}},
		{"unlink and create", func(t *testing.T, path string) {
			check0(t, os.Remove(path))
			check0(t, os.WriteFile(path, after, 0o644))
		}},
		{"unlink and link", func(t *testing.T, path string) {
			from := filepath.Join(filepath.Dir(path), ".made")
			check0(t, os.WriteFile(from, after, 0o644))
			check0(t, os.Remove(path))
			check0(t, os.Link(from, path))
		}},
		{"truncate and write", func(t *testing.T, path string) { check0(t, os.WriteFile(path, after, 0o644)) }},
		{"write over", func(t *testing.T, path string) { overwrite(t, path, after) }},
		{"truncate and store", func(t *testing.T, path string) {
			check0(t, os.Truncate(path, 0))
			check0(t, os.Truncate(path, int64(len(after))))
			copy(live(t, path), after)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, dir string) {
				path := filepath.Join(dir, "a")
				check0(t, os.WriteFile(path, before, 0o644))
				put(t, dir, "b", counter("b", 1, 1))
				w := watch(t, dir, reader.Options{})
				s := w.look("a loaded, b loaded")
				if diff := cmp.Diff([]string{"old0", "old1"}, names(s.Files[0])); diff != "" {
					t.Fatal(diff)
				}
				tt.do(t, path)
				next := w.look("a loaded, b loaded")
				if diff := cmp.Diff([]string{"new0", "new1", "new2"}, names(next.Files[0])); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if diff := cmp.Diff([]uint64{7, 8, 9}, all(t, next.Files[0])); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if s.Files[1] != next.Files[1] {
					t.Error("the neighbour is another File")
				}
				if diff := cmp.Diff([]string{"old0", "old1"}, names(s.Files[0])); diff != "" {
					t.Errorf("the Snapshot before has changed: %s", diff)
				}
				w.Reap()
				if m := mappings(t, dir); len(m) != 2 {
					t.Errorf("mapped: %v", m)
				}
			})
		})
	}
}

// TestNothing is what happens to a file without making it another one.
func TestNothing(t *testing.T) {
	image := counter("m", 2, 1).Build()
	onEach(t, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "a")
		check0(t, os.WriteFile(path, image, 0o644))
		w := watch(t, dir, reader.Options{})
		s := w.look("a loaded")
		for name, do := range map[string]func(){
			"nothing":     func() {},
			"other times": func() { check0(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))) },
			"other mode":  func() { check0(t, os.Chmod(path, 0o600)) },
			"the same written": func() {
				overwrite(t, path, image)
			},
			"a store": func() { live(t, path)[len(image)-32]++ },
			"a hidden file": func() {
				check0(t, os.WriteFile(filepath.Join(dir, ".b"), image, 0o644))
			},
			"a link made": func() { check0(t, os.Link(path, filepath.Join(dir, ".c"))) },
			"a full look": func() { w.Rescan() },
		} {
			do()
			if got := w.Look(); got != s {
				t.Errorf("%s: another Snapshot, %s", name, states(got))
			}
		}
		if len(w.reports) != 1 {
			t.Errorf("reports: %+v", w.reports)
		}
	})
}

// TestDirectory takes the directory through all that can happen to it.
func TestDirectory(t *testing.T) {
	onEach(t, func(t *testing.T, top string) {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("no inotify %v", blind), func(t *testing.T) {
				dir, away := filepath.Join(top, "mmv"), filepath.Join(top, "away")
				w := watch(t, dir, reader.Options{NoInotify: blind})
				expect := func(what, want string, err error) {
					t.Helper()
					for range 2 {
						s := w.Look()
						if got := states(s); got != want {
							t.Fatalf("%s: %q, want %q (%v)", what, got, want, s.Err)
						}
						if !errors.Is(s.Err, err) {
							t.Fatalf("%s: error %v, want %v", what, s.Err, err)
						}
					}
				}
				expect("missing", "", unix.ENOENT)
				check0(t, os.Mkdir(dir, 0o755))
				expect("made", "", nil)
				put(t, dir, "a", counter("a", 1, 1))
				expect("with a file", "a loaded", nil)
				check0(t, os.RemoveAll(dir))
				expect("removed", "", unix.ENOENT)
				check0(t, os.Mkdir(dir, 0o755))
				put(t, dir, "b", counter("b", 1, 1))
				expect("made again", "b loaded", nil)
				check0(t, os.RemoveAll(dir))
				check0(t, os.Mkdir(dir, 0o755))
				put(t, dir, "c", counter("c", 1, 1))
				expect("removed and made again", "c loaded", nil)

				check0(t, os.Rename(dir, away))
				expect("renamed", "", unix.ENOENT)
				check0(t, os.Rename(away, dir))
				expect("renamed back", "c loaded", nil)
				check0(t, os.Rename(dir, away))
				check0(t, os.Rename(away, dir))
				put(t, dir, "d", counter("d", 1, 1))
				expect("away and back", "c loaded, d loaded", nil)
				check0(t, os.Mkdir(away, 0o755))
				put(t, away, "e", counter("e", 1, 1))
				check0(t, unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, away, unix.RENAME_EXCHANGE))
				expect("exchanged", "e loaded", nil)
				put(t, away, "f", counter("f", 1, 1))
				expect("a file in the one before", "e loaded", nil)
				put(t, dir, "f", counter("f", 1, 1))
				expect("a file in this one", "e loaded, f loaded", nil)

				// a link to it, pointed elsewhere
				check0(t, os.Rename(dir, filepath.Join(top, "real")))
				check0(t, os.Symlink("real", dir))
				expect("a link", "e loaded, f loaded", nil)
				check0(t, os.Symlink("away", filepath.Join(top, "link")))
				check0(t, os.Rename(filepath.Join(top, "link"), dir))
				expect("another link", "c loaded, d loaded, f loaded", nil)
				check0(t, os.Remove(dir))

				check0(t, os.WriteFile(dir, nil, 0o644))
				expect("a file", "", unix.ENOTDIR)
				check0(t, os.Remove(dir))
				check0(t, unix.Mkfifo(dir, 0o644))
				expect("a FIFO", "", unix.ENOTDIR)
				check0(t, os.Remove(dir))
				expect("nothing again", "", unix.ENOENT)

				if blind {
					w.reports = w.reports[1:] // that there is no inotify
				}
				var errs []bool // whether the reports of it are of errors
				for _, r := range w.reports {
					if r.Name == "" {
						errs = append(errs, r.Err != nil)
					}
				}
				// said when it changed: missing, there, removed, there, renamed, there, a file, missing
				if diff := cmp.Diff([]bool{true, false, true, false, true, false, true, true}, errs); diff != "" {
					t.Errorf("reports of the directory (-want +got)\n%s\n%+v", diff, w.reports)
				}
				check0(t, os.RemoveAll(filepath.Join(top, "real")))
				check0(t, os.RemoveAll(away))
			})
		}
	})
}

// TestNames sorts by byte, and keeps every name that is not hidden.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"b", "B", "a.b", "a-b", "ä", "a b", "a\nb", "a\xff", "aa"} {
		put(t, dir, n, counter("m", 1, 1))
	}
	w := watch(t, dir, reader.Options{})
	s := w.Look()
	got := make([]string, 0, len(s.Files))
	for _, f := range s.Files {
		got = append(got, f.Name)
	}
	want := []string{"B", "a\nb", "a b", "a-b", "a.b", "aa", "a\xff", "b", "ä"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestEveryChangeIsSeen changes something and looks, many times over: without
// file events, too, where two changes may lie within one clock tick.
func TestEveryChangeIsSeen(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		for _, blind := range []bool{false, true} {
			w := watch(t, dir, reader.Options{NoInotify: blind})
			w.look("")
			for i := range 300 {
				put(t, dir, "a", counter("m", 1, 1))
				w.look("a loaded")
				put(t, dir, "b", counter("n", 1, 1))
				w.look("a loaded, b loaded")
				check0(t, os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "a")))
				w.look("a loaded")
				if got := names(w.file("a")); got[0] != "n0" {
					t.Fatalf("round %d: %v", i, got)
				}
				check0(t, os.Remove(filepath.Join(dir, "a")))
				w.look("")
			}
			w.Close()
		}
	})
}

// TestClosed is a Dir after Close.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a", counter("m", 1, 1))
	w := watch(t, dir, reader.Options{})
	f := w.file("a")
	w.Close()
	w.Close()
	if s := w.Look(); len(s.Files) != 0 || !errors.Is(s.Err, reader.ErrClosed) {
		t.Errorf("a look finds %s, %v", states(s), s.Err)
	}
	var v reader.Values
	if f.Load(wants(f.Catalog), &v) || len(v.End) != 1 || len(v.Bits) != 0 {
		t.Errorf("values %v", v)
	}
	w.Reap()
	if w.Path() != dir {
		t.Errorf("path %s", w.Path())
	}
}

// TestLookedAt names the files that something may have happened to.
func TestLookedAt(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		for _, n := range []string{"a", "b", "c"} {
			put(t, dir, n, counter("m", 1, 1))
		}
		w := watch(t, dir, reader.Options{})
		expect := func(what string, want ...string) {
			t.Helper()
			before := w.Looks()
			w.Look()
			if diff := cmp.Diff(want, w.LookedAt(before)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", what, diff)
			}
		}
		expect("at first", "a", "b", "c")
		expect("when nothing happened")
		check0(t, os.Chmod(filepath.Join(dir, "b"), 0o600))
		expect("with another mode", "b")
		put(t, dir, "a", counter("n", 1, 1))
		put(t, dir, "d", counter("n", 1, 1))
		expect("with one replaced and a new one", "a", "d")
		live(t, filepath.Join(dir, "c"))[8]++ // its generation
		expect("with another generation", "c")
		check0(t, os.Remove(filepath.Join(dir, "a")))
		expect("with one removed")
	})
}
