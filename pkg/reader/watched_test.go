package reader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// onEach runs a test on the file system of the temporary directory, and on
// tmpfs where that is another.
func onEach(t *testing.T, f func(t *testing.T, dir string)) {
	t.Helper()
	t.Run("normal", func(t *testing.T) { f(t, t.TempDir()) })
	const shm = "/dev/shm"
	var st unix.Statfs_t
	if err := unix.Statfs(shm, &st); err != nil || st.Type != unix.TMPFS_MAGIC {
		t.Logf("no tmpfs at %s: %v", shm, err)
		return
	}
	t.Run("tmpfs", func(t *testing.T) {
		dir, err := os.MkdirTemp(shm, "reader-test-") //nolint:usetesting // there
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { check0(t, os.RemoveAll(dir)) })
		f(t, dir)
	})
}

// watched is a Dir with what it has reported.
type watched struct {
	*reader.Dir
	t       testing.TB
	reports []reader.Report
}

// watch opens a Dir. At the end of the test it is closed, and nothing of it
// may be left.
func watch(t testing.TB, path string, opts reader.Options) *watched {
	t.Helper()
	w := &watched{t: t}
	opened := openedSince(t)
	opts.Report = func(r reader.Report) { w.reports = append(w.reports, r) }
	d, err := reader.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	w.Dir = d
	t.Cleanup(func() {
		d.Close()
		if left := opened(); len(left) > 0 {
			t.Errorf("still open: %s", strings.Join(left, ", "))
		}
		if m := mappings(t, path); len(m) > 0 {
			t.Errorf("still mapped:\n%s", strings.Join(m, "\n"))
		}
	})
	return w
}

// openedSince returns a function that lists what has been opened since, and is
// open still.
func openedSince(t testing.TB) func() []string {
	t.Helper()
	before := descriptors(t)
	return func() []string {
		return slices.DeleteFunc(descriptors(t), func(fd string) bool { return slices.Contains(before, fd) })
	}
}

// descriptors lists what this process has open.
func descriptors(t testing.TB) (out []string) {
	t.Helper()
	dirs, err := os.ReadDir("/proc/self/fd")
	check0(t, err)
	for _, d := range dirs {
		if to, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil { // not that of the listing itself
			out = append(out, d.Name()+" "+to)
		}
	}
	return out
}

// mappings lists what this process maps to be read of the files under path.
func mappings(t testing.TB, path string) (out []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	check0(t, err)
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, " r--s ") && strings.Contains(line, path+"/") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func check0(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// states describes a Snapshot: the files' names with their states, in order.
func states(s *reader.Snapshot) string {
	var out []string
	for _, f := range s.Files {
		if f.Held {
			out = append(out, f.Name+" held")
		} else {
			out = append(out, f.Name+" loaded")
		}
	}
	for _, e := range s.Others {
		out = append(out, e.Name+" "+e.State.String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// look looks and expects those states.
func (w *watched) look(want string) *reader.Snapshot {
	w.t.Helper()
	s := w.Look()
	if got := states(s); got != want {
		errs := make([]string, 0, len(s.Others))
		for _, e := range s.Others {
			errs = append(errs, fmt.Sprintf("%s: %v", e.Name, e.Err))
		}
		w.t.Fatalf("a look finds %q, want %q (%s; directory %v)", got, want, strings.Join(errs, ", "), s.Err)
	}
	return s
}

// file is the loaded file of that name.
func (w *watched) file(name string) *reader.File {
	w.t.Helper()
	for _, f := range w.Look().Files {
		if f.Name == name {
			return f
		}
	}
	w.t.Fatalf("no file %s: %s", name, states(w.Look()))
	return nil
}

// other is the Entry of a file that is not loaded.
func (w *watched) other(name string) reader.Entry {
	w.t.Helper()
	for _, e := range w.Look().Others {
		if e.Name == name {
			return e
		}
	}
	w.t.Fatalf("%s is not among the others: %s", name, states(w.Look()))
	return reader.Entry{}
}

// all loads all values of a file that must be readable.
func all(t testing.TB, f *reader.File) (out []uint64) {
	t.Helper()
	var v reader.Values
	if !f.Load(wants(f.Catalog), &v) {
		t.Fatalf("%s: no values", f.Name)
	}
	return v.Bits
}

func wants(c *reader.Catalog) (out []reader.Want) {
	for i := range c.Metrics {
		m := &c.Metrics[i]
		out = append(out, reader.Want{Type: m.Type, Refs: c.Values(m)})
	}
	return out
}

// counter is an image of n metrics, called prefix followed by their number,
// whose values are base plus that.
func counter(prefix string, n int, base uint64) *mmvimage.Image {
	img := mmvimage.New(1)
	for i := range n {
		img.Metric(mmvimage.Metric{
			Name: fmt.Sprintf("%s%d", prefix, i), Item: uint32(i), Type: mmvimage.U64, Sem: mmvimage.Counter, InDom: -1,
			Values: []mmvimage.Value{mmvimage.Uint(base + uint64(i))},
		})
	}
	return img
}

// names are the names of a file's metrics.
func names(f *reader.File) (out []string) {
	for i := range f.Catalog.Metrics {
		out = append(out, string(f.Catalog.Text(f.Catalog.Metrics[i].Name)))
	}
	return out
}

// put puts an image into the directory, complete at once, as another file.
func put(t testing.TB, dir, name string, img *mmvimage.Image) {
	t.Helper()
	check0(t, mmvimage.Write(filepath.Join(dir, name), img.Build()))
}

// overwrite writes over a file in place, as write(2) does.
func overwrite(t testing.TB, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	check0(t, err)
	_, err = f.WriteAt(b, 0)
	check0(t, err)
	check0(t, f.Close())
}

// live maps a file to be stored to, until the end of the test.
func live(t testing.TB, path string) []byte {
	t.Helper()
	m, err := mapShared(path)
	check0(t, err)
	t.Cleanup(func() { check0(t, unix.Munmap(m)) })
	return m
}
