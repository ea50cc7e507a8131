package reader_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestChurn does at random all that can be done to a few names. Each look must
// find what a new Dir finds, and at the end nothing may be left of it.
func TestChurn(t *testing.T) {
	onEach(t, func(t *testing.T, top string) {
		for seed := range uint64(2) {
			c := &churn{t: t, top: top, dir: filepath.Join(top, "mmv"), far: filepath.Join(top, "far")}
			c.Rand = rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same every time
			c.run(200)
		}
	})
}

type churn struct {
	*rand.Rand
	t             *testing.T
	top, dir, far string
	kids          []*child
	log           []string
}

func (c *churn) run(steps int) {
	check0(c.t, os.Mkdir(c.dir, 0o755))
	check0(c.t, os.Mkdir(c.far, 0o755))
	for range 3 {
		c.kids = append(c.kids, start(c.t, "wait", nil))
	}
	opts := reader.Options{MaxFiles: 5}
	w := watch(c.t, c.dir, opts)
	w.Look()
	watches, entries, polled, processes := w.Watches()
	for range steps {
		c.step()
		if c.IntN(3) == 0 {
			continue
		}
		s := w.Look()
		w.Reap()
		c.compare(s, opts)
	}
	check0(c.t, os.RemoveAll(c.dir))
	check0(c.t, os.Mkdir(c.dir, 0o755))
	w.look("")
	w.Reap()
	if a, b, d, e := w.Watches(); a != watches || b != entries || d != polled || e != processes {
		c.t.Errorf("%d watches, %d entries, %d polled, %d processes are left", a, b, d, e)
	}
	if m := mappings(c.t, c.top); len(m) > 0 {
		c.t.Errorf("still mapped: %v", m)
	}
	w.Close()
	for _, k := range c.kids {
		k.kill()
	}
	check0(c.t, os.RemoveAll(c.dir))
	check0(c.t, os.RemoveAll(c.far))
}

// compare compares with what a Dir sees that knows nothing of before. Which
// files are beyond the most that are loaded, and which are held or dead, depends on
// that.
func (c *churn) compare(s *reader.Snapshot, opts reader.Options) {
	c.t.Helper()
	fresh, err := reader.Open(c.dir, opts)
	check0(c.t, err)
	defer fresh.Close()
	other := fresh.Look()
	got, want := map[string]string{}, map[string]string{}
	for m, s := range map[*map[string]string]*reader.Snapshot{&got: s, &want: other} {
		for _, f := range s.Files {
			if !f.Held {
				(*m)[f.Name] = fmt.Sprint(names(f), all(c.t, f))
			}
		}
		for _, o := range s.Others {
			(*m)[o.Name] = fmt.Sprint(o.State, o.Err)
		}
	}
	full := func(s string) bool { return strings.Contains(s, reader.ErrTooMany.Error()) }
	if len(got) != len(want) {
		c.fail("%d files, want %d", len(got), len(want))
	}
	for name, g := range got {
		if w := want[name]; g != w && !full(g) && !full(w) {
			c.fail("%s is %s, want %s", name, g, w)
		}
	}
}

func (c *churn) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nsteps: %s", fmt.Sprintf(format, args...), strings.Join(c.log[max(0, len(c.log)-10):], "; "))
}

// step does one thing to one name.
func (c *churn) step() {
	name := string(rune('a' + c.IntN(8)))
	path, far := filepath.Join(c.dir, name), filepath.Join(c.far, name)
	img := c.image()
	ops := []struct {
		what string
		do   func() error
	}{
		{"rename over", func() error { return mmvimage.Write(path, img) }},
		{"write", func() error { return writeIn(path, img, os.O_CREATE|os.O_TRUNC) }},
		{"write over", func() error { return writeIn(path, img, os.O_CREATE) }},
		{"truncate", func() error { return os.Truncate(path, int64(c.IntN(500))) }},
		{"remove", func() error { return os.RemoveAll(path) }},
		{"store", func() error {
			m, err := mapShared(path)
			if err == nil && len(m) >= 40 {
				mmvimage.PutU64(m, mmvimage.HdrG2, uint64(c.IntN(2))*mmvimage.DefaultGeneration)
			}
			if err == nil {
				err = unix.Munmap(m)
			}
			return err
		}},
		{"symbolic link", func() error {
			_ = os.Remove(path)
			return os.Symlink(far, path)
		}},
		{"link target", func() error { return mmvimage.Write(far, img) }},
		{"link target written over", func() error { return writeIn(far, img, os.O_CREATE|os.O_TRUNC) }},
		{"link target removed", func() error { return os.Remove(far) }},
		{"hard link", func() error {
			_ = os.Remove(path)
			return os.Link(far, path)
		}},
		{"rename", func() error { return os.Rename(path, filepath.Join(c.dir, string(rune('a'+c.IntN(8))))) }},
		{"mkdir", func() error { return os.Mkdir(path, 0o755) }},
		{"fifo", func() error { return unix.Mkfifo(path, 0o644) }},
		{"mode", func() error { return os.Chmod(path, []os.FileMode{0o600, 0o644}[c.IntN(2)]) }},
	}
	op := ops[c.IntN(len(ops))]
	err := op.do() // which may fail: the name is another kind of thing
	c.log = append(c.log, fmt.Sprintf("%s %s (%v)", op.what, name, err))
}

// writeIn writes into a file, if it is one: opening a FIFO would wait.
func writeIn(path string, b []byte, flags int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|flags, 0o644) //nolint:gosec // a directory of the test
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func (c *churn) image() []byte {
	img := counter(string(rune('m'+c.IntN(3))), 1+c.IntN(4), uint64(c.IntN(100)))
	switch c.IntN(8) {
	case 0:
		img.Generations(1, 0)
	case 1:
		img.Cluster(5000)
	case 2:
		img.Flags(mmvimage.Process).PID(nobody)
	case 3:
		img.Flags(mmvimage.Process).PID(c.kids[c.IntN(len(c.kids))].pid())
	case 4:
		return nil
	}
	return img.Build()
}

// TestNothingIsLeft opens and closes Dirs, and leaves it to the collector to
// find nothing.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		put(t, dir, strconv.Itoa(i), counter("m", 100, 1))
	}
	var before, after runtime.MemStats
	for round := range 60 {
		if round == 10 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		d, err := reader.Open(dir, reader.Options{})
		check0(t, err)
		d.Look()
		d.Close()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes are left after 50 Dirs", grown)
	}
}
