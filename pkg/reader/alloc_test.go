//go:build !race

package reader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// crowd fills a directory with files of every state.
func crowd(t testing.TB, dir string, n int) {
	for i := range n {
		put(t, dir, fmt.Sprintf("good%d", i), counter("m", 2, 1))
	}
	put(t, dir, "flux", counter("m", 2, 1).Generations(1, 0))
	check0(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644)) //nolint:gosec // a directory of the test
	check0(t, os.WriteFile(filepath.Join(dir, "text"), []byte("a text that is longer than the header of a file"), 0o644))
	put(t, dir, "bad", counter("m", 2, 1).Cluster(5000))
	put(t, dir, "dead", of(nobody))
	put(t, dir, "process", of(int32(os.Getpid())))
	check0(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	check0(t, os.Symlink("good0", filepath.Join(dir, "link")))
	check0(t, os.Link(filepath.Join(dir, "good0"), filepath.Join(dir, "hard")))
	check0(t, os.Mkdir(filepath.Join(dir, "directory"), 0o755)) //nolint:gosec // a directory of the test
}

// TestAllocs wants no memory for what happens all the time.
func TestAllocs(t *testing.T) {
	dir := t.TempDir()
	crowd(t, dir, 10)
	w := watch(t, dir, reader.Options{})
	s := w.look("bad rejected, dead dead, empty pending, flux pending, " +
		"good0 loaded, good1 loaded, good2 loaded, good3 loaded, good4 loaded, good5 loaded, good6 loaded, good7 loaded, good8 loaded, good9 loaded, " +
		"hard loaded, link loaded, process loaded, text rejected")
	eventually(t, "no file is so new that it is looked at again", func() bool {
		return testing.AllocsPerRun(1, func() { w.Look() }) == 0
	})
	looks := w.Looks()
	var v reader.Values
	all := make([][]reader.Want, len(s.Files))
	for i, f := range s.Files {
		all[i] = wants(f.Catalog)
	}
	for name, f := range map[string]func(){
		"Look": func() { w.Look() },
		"an answer": func() {
			w.Acquire()
			v.Reset()
			for i, f := range s.Files {
				if !f.Load(all[i], &v) {
					t.Fatal("no values")
				}
			}
			if !w.Still(looks) {
				t.Fatal("not still")
			}
			w.Release()
			w.Reap()
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s takes memory %v times", name, n)
		}
	}
}

// TestLoadAllocs is that of values of each type.
func TestLoadAllocs(t *testing.T) {
	img := mmvimage.New(1).Flags(mmvimage.Sentinel).InDom(1, "", "", mmvimage.Inst{ID: 1, Name: "a"}, mmvimage.Inst{ID: 2, Name: "b"})
	for _, typ := range []int32{mmvimage.I32, mmvimage.U64, mmvimage.Float, mmvimage.Double, mmvimage.String, mmvimage.Elapsed} {
		img.Metric(mmvimage.Metric{Name: fmt.Sprintf("s%d", typ), Type: typ}).Metric(mmvimage.Metric{Name: fmt.Sprintf("x%d", typ), Type: typ, InDom: 1})
	}
	_, f := loadOne(t, img)
	ws := wants(f.Catalog)
	var v reader.Values
	if n := testing.AllocsPerRun(100, func() {
		v.Reset()
		if !f.Load(ws, &v) {
			t.Fatal("no values")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestHalfFileCost looks while a writer's half file lies about: it is not read
// again, by any look.
func TestHalfFileCost(t *testing.T) {
	dir := t.TempDir()
	crowd(t, dir, 1)
	w := watch(t, dir, reader.Options{})
	w.Look()
	eventually(t, "no file is so new that it is looked at again", func() bool {
		return testing.AllocsPerRun(1, func() { w.Look() }) == 0
	})
	before := readBytes(t)
	own := readBytes(t) - before
	for range 100 {
		w.Look()
	}
	if n := readBytes(t) - before; n > 3*own {
		t.Errorf("%d bytes were read", n)
	}
}
