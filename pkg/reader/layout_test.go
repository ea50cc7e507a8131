package reader

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/test/mmvimage"
)

// largeImage has so many values that they are not looked at when it is loaded.
// Value i of metric k is k*100000 + i; some are out of order, some refer to
// nothing.
func largeImage(version int32) ([]byte, *mmvimage.Image) {
	insts := make([]mmvimage.Inst, 3000)
	for i := range insts {
		insts[i] = mmvimage.Inst{ID: int32(2 * i), Name: fmt.Sprintf("instance %d", i)}
	}
	insts[17].Name = "" // left out
	img := mmvimage.New(version).Cluster(5).InDom(1, "short", "long", insts...)
	for k := range 3 {
		m := mmvimage.Metric{Name: fmt.Sprintf("m%d", k), Item: uint32(k + 1), Type: mmvimage.U64, Sem: mmvimage.Instant, InDom: 1}
		for i := range insts {
			m.Values = append(m.Values, mmvimage.Int(int64(k*100000+i)))
		}
		img = img.Metric(m)
	}
	img = img.Metric(mmvimage.Metric{Name: "s", Item: 9, Type: mmvimage.String, Sem: mmvimage.Instant, Values: []mmvimage.Value{mmvimage.Text("hello")}})
	b := img.Build()
	v := int(img.Layout().Values)
	x, y := v+mmvimage.ValueSize*10, v+mmvimage.ValueSize*20
	for i := range mmvimage.ValueSize { // swap two
		b[x+i], b[y+i] = b[y+i], b[x+i]
	}
	mmvimage.PutU64(b, uint64(v)+mmvimage.ValueSize*30+mmvimage.ValueMetric, 1<<60)
	mmvimage.PutU64(b, uint64(v)+mmvimage.ValueSize*40+mmvimage.ValueInst, 1<<60)
	return b, img
}

func loadLarge(t *testing.T, b []byte) (*Dir, *File) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), b, 0o644); err != nil { //nolint:gosec // a directory of the test
		t.Fatal(err)
	}
	d, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	s := d.Look()
	if len(s.Files) != 1 {
		t.Fatalf("not loaded: %v", s.Others)
	}
	return d, s.Files[0]
}

// TestLayoutLater checks that values found when one is asked for are those
// that Parse finds at once.
func TestLayoutLater(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		b, _ := largeImage(version)
		want, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		_, f := loadLarge(t, b)
		if f.Catalog.lazy == nil || len(f.Catalog.values) > 0 {
			t.Fatal("the values were looked at when the file was loaded")
		}
		if version == 1 && f.head == f.m {
			t.Error("all of the file is mapped")
		}
		l := f.Layout()
		if l == nil || l != f.Layout() {
			t.Fatal("no layout, or two")
		}
		wants := make([]Want, 0, len(want.Metrics))
		for i := range want.Metrics {
			refs, got := want.Values(&want.Metrics[i]), l.Refs(uint32(i))
			if !slices.Equal(slices.Collect(got.All()), slices.Collect(refs.All())) {
				t.Errorf("version %d: metric %d has other values", version, i)
			}
			wants = append(wants, Want{want.Metrics[i].Type, got})
		}
		if l.c.RemarkCount != want.RemarkCount {
			t.Errorf("%d remarks, want %d", l.c.RemarkCount, want.RemarkCount)
		}
		var v Values
		if !f.Load(wants, &v) {
			t.Fatal("cannot be read")
		}
		for k := range 3 {
			from, to := 0, v.End[k]
			if k > 0 {
				from = v.End[k-1]
			}
			if n := to - from; k > 0 && n != 2999 || k == 0 && n != 2997 {
				t.Errorf("metric %d has %d values", k, n)
			}
			for i := from; i < to; i++ {
				n := int(v.Insts[i]) / 2
				if k == 0 && (n == 10 || n == 20) { // swapped as a whole: instance and value
					continue
				}
				if v.Bits[i] != uint64(k*100000+n) {
					t.Fatalf("metric %d instance %d: %d", k, n, v.Bits[i])
				}
			}
		}
		if s := string(v.String(v.Bits[v.End[3]-1])); s != "hello" {
			t.Errorf("string %q", s)
		}
	}
}

// TestLayoutRewritten checks that a file whose value references are written
// anew, and nothing else, gets a new layout.
func TestLayoutRewritten(t *testing.T) {
	for _, before := range []bool{true, false} {
		b, img := largeImage(2)
		d, f := loadLarge(t, b)
		if before && f.Layout() == nil {
			t.Fatal("no layout")
		}
		v := int(img.Layout().Values) + mmvimage.ValueSize*50
		f2, err := os.OpenFile(filepath.Join(d.Path(), "a"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		mmvimage.PutU64(b, uint64(v)+mmvimage.ValueMetric, 1<<60) // instance 50 of the first metric is no more
		if _, err := f2.WriteAt(b[v:v+mmvimage.ValueSize], int64(v)); err != nil {
			t.Fatal(err)
		}
		_ = f2.Close()
		s := d.Look()
		l := s.Files[0].Layout()
		if l == nil {
			t.Fatal("no layout")
		}
		refs := l.Refs(0)
		if slices.ContainsFunc(slices.Collect(refs.All()), func(r ValueRef) bool { return r.Inst == 100 }) {
			t.Errorf("laid out before %v: the old layout is used", before)
		}
	}
}

// TestLayoutTruncated checks that a file that becomes shorter before its
// values are looked at has none.
func TestLayoutTruncated(t *testing.T) {
	b, img := largeImage(1)
	d, f := loadLarge(t, b)
	if err := os.Truncate(filepath.Join(d.Path(), "a"), int64(img.Layout().Values)); err != nil {
		t.Fatal(err)
	}
	if f.Layout() != nil {
		t.Error("a layout of what is not there")
	}
	if s := d.Look(); len(s.Files) == 1 && !s.Files[0].Held {
		t.Error("still loaded")
	}
}

// TestOutline checks that the first Look leaves out the instances of a file of many
// values if it is to, and that Complete brings them.
func TestOutline(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		b, _ := largeImage(version)
		dir := t.TempDir()
		put := func(name string) {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil { //nolint:gosec // a directory of the test
				t.Fatal(err)
			}
		}
		put("a")
		d, err := Open(dir, Options{Outline: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		want, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		f := d.Look().Files[0]
		if c := f.Catalog; !c.Outline || len(c.instances) > 0 || len(c.Metrics) != len(want.Metrics) || f.Layout() != nil {
			t.Fatalf("version %d: outline %v, %d instances, %d metrics, a layout: %v", version, c.Outline, len(c.instances), len(c.Metrics), f.Layout() != nil)
		}
		put("b")
		s := d.Look()
		if len(s.Files) != 2 || s.Files[0] != f || s.Files[1].Catalog.Outline {
			t.Fatal("the second look is like the first")
		}
		d.Complete()
		s = d.Look()
		if len(s.Files) != 2 || s.Files[0] == f {
			t.Fatal("not another file")
		}
		for _, f := range s.Files {
			if f.Catalog.Outline || !slices.Equal(f.Catalog.instances, want.instances) || f.Layout() == nil {
				t.Errorf("version %d: %s: outline %v, %d instances, want %d", version, f.Name, f.Catalog.Outline, len(f.Catalog.instances), len(want.instances))
			}
		}
	}
}

// The writer is making the same file again through its mapping, with the same
// generation, when its values are first asked for: what is found of them, if
// anything, is that of the whole file.
func TestLayoutInFlux(t *testing.T) {
	image, img := largeImage(2)
	from, n := img.Layout().Values, uint64(img.Layout().NumValues)*mmvimage.ValueSize
	want, err := Parse(image)
	if err != nil {
		t.Fatal(err)
	}
	all := want.Values(&want.Metrics[1])
	for i := range 200 {
		d, file := loadLarge(t, image)
		m := mapFileOf(t, d, file)
		mmvimage.PutU64(m, mmvimage.HdrG2, 0)
		clear(m[from : from+n])
		var wg sync.WaitGroup
		wg.Go(func() {
			for end := time.Now().Add(time.Duration(i) * 2 * time.Microsecond); time.Now().Before(end); { // as long as a read may take
				runtime.Gosched()
			}
			copy(m[from:], image[from:from+n])
			copy(m[mmvimage.HdrG2:], image[mmvimage.HdrG2:mmvimage.HdrG2+8])
		})
		l := file.Layout()
		wg.Wait()
		if l != nil {
			if got := l.c.Values(&l.c.Metrics[1]); got.Len() != all.Len() {
				t.Fatalf("%d values of %d", got.Len(), all.Len())
			}
		}
		if err := unix.Munmap(m); err != nil {
			t.Fatal(err)
		}
		d.Close() // a user may have 128 instances of inotify
	}
}

// mapFileOf maps a file as its writer does.
func mapFileOf(t *testing.T, d *Dir, file *File) []byte {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(d.Path(), file.Name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // mapped
	m, err := unix.Mmap(int(f.Fd()), 0, int(file.id.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
