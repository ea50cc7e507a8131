package reader_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
)

// TestLinks changes what symbolic and hard links lead to, in every way, and
// looks.
func TestLinks(t *testing.T) {
	one, two := counter("one", 1, 1).Build(), counter("two", 1, 2).Build()
	join := filepath.Join
	for _, tt := range []struct {
		name   string
		make   func(t *testing.T, dir, far string) // "a" in dir, leading to image one in far
		change func(t *testing.T, dir, far string) // to image two
	}{
		{
			"target written over",
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "x"), one, 0o644))
				check0(t, os.Symlink(join(far, "x"), join(dir, "a")))
			},
			func(t *testing.T, _, far string) { overwrite(t, join(far, "x"), two) },
		},
		{
			"target truncated and written",
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "x"), one, 0o644))
				check0(t, os.Symlink(join(far, "x"), join(dir, "a")))
			},
			func(t *testing.T, _, far string) { check0(t, os.WriteFile(join(far, "x"), two, 0o644)) },
		},
		{
			"target replaced",
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "x"), one, 0o644))
				check0(t, os.Symlink(join(far, "x"), join(dir, "a")))
			},
			func(t *testing.T, _, far string) { put(t, far, "x", counter("two", 1, 2)) },
		},
		{
			"link replaced",
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "x"), one, 0o644))
				check0(t, os.Symlink(join(far, "x"), join(dir, "a")))
			},
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "y"), two, 0o644))
				check0(t, os.Symlink(join(far, "y"), join(dir, ".new")))
				check0(t, os.Rename(join(dir, ".new"), join(dir, "a")))
			},
		},
		{
			"link on the way replaced",
			func(t *testing.T, dir, far string) {
				check0(t, os.MkdirAll(join(far, "v1"), 0o755))
				check0(t, os.WriteFile(join(far, "v1", "x"), one, 0o644))
				check0(t, os.Symlink("v1", join(far, "current")))
				check0(t, os.Symlink(join(far, "current", "x"), join(dir, "a")))
			},
			func(t *testing.T, _, far string) {
				check0(t, os.Mkdir(join(far, "v2"), 0o755))
				check0(t, os.WriteFile(join(far, "v2", "x"), two, 0o644))
				check0(t, os.Symlink("v2", join(far, ".new")))
				check0(t, os.Rename(join(far, ".new"), join(far, "current")))
			},
		},
		{
			"directory on the way replaced",
			func(t *testing.T, dir, far string) {
				check0(t, os.MkdirAll(join(far, "sub"), 0o755))
				check0(t, os.WriteFile(join(far, "sub", "x"), one, 0o644))
				check0(t, os.Symlink(join(far, "sub", "x"), join(dir, "a")))
			},
			func(t *testing.T, _, far string) {
				check0(t, os.Rename(join(far, "sub"), join(far, "was")))
				check0(t, os.Mkdir(join(far, "sub"), 0o755))
				check0(t, os.WriteFile(join(far, "sub", "x"), two, 0o644))
			},
		},
		{
			"link becomes a file",
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "x"), one, 0o644))
				check0(t, os.Symlink(join(far, "x"), join(dir, "a")))
			},
			func(t *testing.T, dir, _ string) { put(t, dir, "a", counter("two", 1, 2)) },
		},
		{
			"to a hidden file beside it",
			func(t *testing.T, dir, _ string) {
				check0(t, os.WriteFile(join(dir, ".x"), one, 0o644))
				check0(t, os.Symlink(".x", join(dir, "a")))
			},
			func(t *testing.T, dir, _ string) { overwrite(t, join(dir, ".x"), two) },
		},
		{
			"hard link written over elsewhere",
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "x"), one, 0o644))
				check0(t, os.Link(join(far, "x"), join(dir, "a")))
			},
			func(t *testing.T, _, far string) { overwrite(t, join(far, "x"), two) },
		},
		{
			"hard link replaced",
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "x"), one, 0o644))
				check0(t, os.Link(join(far, "x"), join(dir, "a")))
			},
			func(t *testing.T, dir, far string) {
				check0(t, os.WriteFile(join(far, "y"), two, 0o644))
				check0(t, os.Link(join(far, "y"), join(dir, ".new")))
				check0(t, os.Rename(join(dir, ".new"), join(dir, "a")))
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, top string) {
				dir, far := join(top, "mmv"), join(top, "far")
				check0(t, os.Mkdir(dir, 0o755))
				check0(t, os.Mkdir(far, 0o755))
				tt.make(t, dir, far)
				w := watch(t, dir, reader.Options{})
				if got := names(w.file("a")); got[0] != "one0" {
					t.Fatalf("at first %v", got)
				}
				tt.change(t, dir, far)
				f := w.file("a")
				if got := names(f); got[0] != "two0" {
					t.Fatalf("after it %v", got)
				}
				if diff := cmp.Diff([]uint64{2}, all(t, f)); diff != "" {
					t.Error(diff)
				}
				overwriteAll := counter("six", 1, 6).Build() // and once more, to see that it is still watched
				overwrite(t, join(dir, "a"), overwriteAll)
				if got := names(w.file("a")); got[0] != "six0" {
					t.Errorf("after another change %v", got)
				}
				check0(t, os.Remove(join(dir, "a")))
				w.look("")
				if watches, entries, polled, _ := w.Watches(); watches != 1 || entries > 1 || polled != 0 {
					t.Errorf("%d watches, %d entries, %d polled are left", watches, entries, polled)
				}
			})
		})
	}
}

// TestDangling lets links lead to something, and to nothing again.
func TestDangling(t *testing.T) {
	onEach(t, func(t *testing.T, top string) {
		dir := filepath.Join(top, "mmv")
		check0(t, os.Mkdir(dir, 0o755))
		check0(t, os.Symlink("../far/x", filepath.Join(dir, "a")))
		check0(t, os.Symlink("loop", filepath.Join(dir, "loop")))
		for _, blind := range []bool{false, true} {
			w := watch(t, dir, reader.Options{NoInotify: blind})
			for range 3 {
				w.look("")
				far := filepath.Join(top, "far")
				check0(t, os.Mkdir(far, 0o755))
				w.look("")
				check0(t, os.WriteFile(filepath.Join(far, "x"), nil, 0o644))
				w.look("a pending")
				put(t, far, "x", counter("m", 1, 1))
				w.look("a loaded")
				check0(t, os.Remove(filepath.Join(far, "x")))
				w.look("")
				check0(t, os.Mkdir(filepath.Join(far, "x"), 0o755))
				w.look("")
				check0(t, os.Remove(filepath.Join(far, "x")))
				put(t, far, "x", counter("m", 1, 1))
				w.look("a loaded")
				check0(t, os.RemoveAll(far))
				w.look("")
				check0(t, os.Remove(filepath.Join(dir, "loop")))
				put(t, dir, "loop", counter("m", 1, 1))
				w.look("loop loaded")
				check0(t, os.Remove(filepath.Join(dir, "loop")))
				check0(t, os.Symlink("loop", filepath.Join(dir, "loop")))
			}
			w.Close()
		}
	})
}

// TestLaterLink gives a file another name when it is loaded already.
func TestLaterLink(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		check0(t, os.WriteFile(a, counter("one", 1, 1).Build(), 0o644))
		w := watch(t, dir, reader.Options{})
		w.look("a loaded")
		check0(t, os.Link(a, b))
		w.look("a loaded, b loaded")
		overwrite(t, b, counter("two", 1, 1).Build())
		for _, f := range w.look("a loaded, b loaded").Files {
			if got := names(f); got[0] != "two0" {
				t.Errorf("%s is %v", f.Name, got)
			}
		}
		check0(t, os.Remove(b))
		w.look("a loaded")
		overwrite(t, a, counter("six", 1, 1).Build())
		if got := names(w.file("a")); got[0] != "six0" {
			t.Errorf("a is %v", got)
		}
	})
}

// TestTwoLinks are two names of one file, which both follow it, and of which
// either may go.
func TestTwoLinks(t *testing.T) {
	for _, kind := range []string{"hard", "symbolic"} {
		t.Run(kind, func(t *testing.T) {
			onEach(t, func(t *testing.T, dir string) {
				a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
				check0(t, os.WriteFile(a, counter("one", 1, 1).Build(), 0o644))
				if kind == "hard" {
					check0(t, os.Link(a, b))
				} else {
					check0(t, os.Symlink("a", b))
				}
				w := watch(t, dir, reader.Options{})
				w.look("a loaded, b loaded")
				for i, name := range []string{"two", "six"} {
					overwrite(t, []string{a, b}[i], counter(name, 1, 1).Build())
					s := w.look("a loaded, b loaded")
					for _, f := range s.Files {
						if got := names(f); got[0] != name+"0" {
							t.Errorf("%s is %v, want %s", f.Name, got, name)
						}
					}
				}
				if kind == "hard" {
					if _, _, polled, _ := w.Watches(); polled != 0 {
						t.Errorf("%d polled", polled)
					}
					check0(t, os.Remove(a))
					w.look("b loaded")
					overwrite(t, b, counter("ten", 1, 1).Build())
					if got := names(w.file("b")); got[0] != "ten0" {
						t.Errorf("b is %v", got)
					}
				} else {
					check0(t, os.Remove(a))
					w.look("")
				}
			})
		})
	}
}
