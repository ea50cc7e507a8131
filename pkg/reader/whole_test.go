package reader

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pmdammv/test/mmvimage"
)

// largeImage has so many values that neither they nor the instances are looked at
// when it is loaded.
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

// TestWholeLater checks that instances and values found when they are asked for
// are those that Parse finds at once.
func TestWholeLater(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		b, _ := largeImage(version)
		want, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		_, f := loadLarge(t, b)
		if f.Catalog.rest == nil || len(f.Catalog.values) > 0 || len(f.Catalog.instances) > 0 {
			t.Fatal("values or instances were looked at when the file was loaded")
		}
		if f.Known() != f.Catalog {
			t.Error("more is known than was read")
		}
		if version == 1 && f.head == f.m {
			t.Error("all of the file is mapped")
		}
		c := f.Whole()
		if c == nil || c != f.Whole() || c != f.Known() {
			t.Fatal("not found, or twice")
		}
		if f.Catalog.rest == nil || len(f.Catalog.instances) > 0 {
			t.Error("the Catalog has changed")
		}
		insts, want0 := c.Instances(&c.InDoms[0]), want.Instances(&want.InDoms[0])
		if len(insts) != len(want0) {
			t.Fatalf("%d instances, want %d", len(insts), len(want0))
		}
		for i := range insts {
			if insts[i].Internal != want0[i].Internal || !bytes.Equal(c.Text(insts[i].External), want.Text(want0[i].External)) {
				t.Fatalf("instance %d is %d %q", i, insts[i].Internal, c.Text(insts[i].External))
			}
		}
		wants := make([]Want, 0, len(want.Metrics))
		for i := range want.Metrics {
			refs, got := want.Values(&want.Metrics[i]), c.Values(&c.Metrics[i])
			if !slices.Equal(slices.Collect(got.All()), slices.Collect(refs.All())) {
				t.Errorf("version %d: metric %d has other values", version, i)
			}
			wants = append(wants, Want{want.Metrics[i].Type, got})
		}
		if c.RemarkCount != want.RemarkCount {
			t.Errorf("%d remarks, want %d", c.RemarkCount, want.RemarkCount)
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

// TestWholeRewritten checks that a file of which value references or instances
// are written anew, and nothing else, is found to be another.
func TestWholeRewritten(t *testing.T) {
	for _, before := range []bool{true, false} {
		for _, what := range []string{"value", "instance"} {
			b, img := largeImage(2)
			d, f := loadLarge(t, b)
			if before && f.Whole() == nil {
				t.Fatal("not found")
			}
			at := img.Layout().Values + mmvimage.ValueSize*50 + mmvimage.ValueMetric
			if what == "instance" {
				at = img.Layout().Instance(50) + mmvimage.InstName
			}
			mmvimage.PutU64(b, at, 1<<60) // instance 50 of the first metric is no more
			f2, err := os.OpenFile(filepath.Join(d.Path(), "a"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f2.WriteAt(b[at:at+8], int64(at)); err != nil {
				t.Fatal(err)
			}
			_ = f2.Close()
			c := d.Look().Files[0].Whole()
			if c == nil {
				t.Fatal("not found")
			}
			refs := c.Values(&c.Metrics[0])
			if slices.ContainsFunc(slices.Collect(refs.All()), func(r ValueRef) bool { return r.Inst == 100 }) {
				t.Errorf("%s, read before %v: the old one is used", what, before)
			}
		}
	}
}

// TestWholeMoved checks that a file of which an indom says that it has other
// instances, and nothing else, is found to be another.
func TestWholeMoved(t *testing.T) {
	for _, before := range []bool{true, false} {
		for what, change := range map[string]func(b []byte, l mmvimage.Layout){
			"count": func(b []byte, l mmvimage.Layout) {
				mmvimage.PutU32(b, l.InDom(0)+mmvimage.InDomCount, 2000)
			},
			"offset": func(b []byte, l mmvimage.Layout) {
				mmvimage.PutU32(b, l.InDom(0)+mmvimage.InDomCount, 2999)
				mmvimage.PutU64(b, l.InDom(0)+mmvimage.InDomOffset, l.Instance(1))
			},
		} {
			b, img := largeImage(2)
			d, f := loadLarge(t, b)
			if before && f.Whole() == nil {
				t.Fatal("not found")
			}
			l := img.Layout()
			change(b, l)
			want, err := Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			f2, err := os.OpenFile(filepath.Join(d.Path(), "a"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f2.WriteAt(b[l.InDom(0):l.InDom(1)], int64(l.InDom(0))); err != nil {
				t.Fatal(err)
			}
			_ = f2.Close()
			c := d.Look().Files[0].Whole()
			if c == nil {
				t.Fatal("not found")
			}
			got, all := c.Instances(&c.InDoms[0]), want.Instances(&want.InDoms[0])
			if len(got) != len(all) || got[0].Internal != all[0].Internal {
				t.Errorf("%s, read before %v: %d instances from %d on, want %d from %d on", what, before, len(got), got[0].Internal, len(all), all[0].Internal)
			}
			refs, wantRefs := c.Values(&c.Metrics[0]), want.Values(&want.Metrics[0])
			if refs.Len() != wantRefs.Len() {
				t.Errorf("%s, read before %v: %d values, want %d", what, before, refs.Len(), wantRefs.Len())
			}
		}
	}
}

// TestWholeOnce checks that what could not be read of a file is not looked for
// again, whatever has become of it meanwhile, but that the next Look makes it
// another.
func TestWholeOnce(t *testing.T) {
	b, _ := largeImage(1)
	d, f := loadLarge(t, b)
	name := filepath.Join(d.Path(), "a")
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	rename(name, name+".old")
	if f.Whole() != nil {
		t.Error("read")
	}
	rename(name+".old", name)
	if f.Whole() != nil {
		t.Error("read when it was there again")
	}
	s := d.Look()
	if len(s.Files) != 1 || s.Files[0] == f || s.Files[0].Whole() == nil {
		t.Error("not read anew")
	}
}

// TestWholeHeld checks that the instances of a file that is being rewritten are
// those from before, if they were known.
func TestWholeHeld(t *testing.T) {
	for _, before := range []bool{true, false} {
		b, _ := largeImage(1)
		d, f := loadLarge(t, b)
		var known *Catalog
		if before {
			known = f.Whole()
		}
		f2, err := os.OpenFile(filepath.Join(d.Path(), "a"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f2.WriteAt(make([]byte, 8), offGeneration2); err != nil {
			t.Fatal(err)
		}
		_ = f2.Close()
		if f.Whole() != known {
			t.Errorf("known before %v: read while it is written", before)
		}
		held := d.Look().Files[0]
		if !held.Held || held.Whole() != known {
			t.Errorf("known before %v: held %v, another Catalog", before, held.Held)
		}
	}
}

// TestWholeElsewhere checks that what is left of a file is not read from
// another that has its name now, nor from none.
func TestWholeElsewhere(t *testing.T) {
	for _, there := range []bool{true, false} {
		b, _ := largeImage(1)
		d, f := loadLarge(t, b)
		name := filepath.Join(d.Path(), "a")
		if err := os.Rename(name, name+".old"); err != nil {
			t.Fatal(err)
		}
		if there {
			if err := os.WriteFile(name, b, 0o644); err != nil { //nolint:gosec // a directory of the test
				t.Fatal(err)
			}
		}
		if f.Whole() != nil {
			t.Errorf("another file there %v: read", there)
		}
	}
}

// TestWholeOverlap checks that names that use more of a file than it has, when
// they are found later, cost it its instances, and nothing else.
func TestWholeOverlap(t *testing.T) {
	const n, strs = 6000, 8000
	m := mmvimage.Metric{Name: "m", Item: 1, Type: mmvimage.U64, Sem: mmvimage.Instant, InDom: 1}
	insts := make([]mmvimage.Inst, n)
	for i := range insts {
		insts[i] = mmvimage.Inst{ID: int32(i), Name: "x"}
		m.Values = append(m.Values, mmvimage.Int(int64(i)))
	}
	single := mmvimage.Metric{Name: "s", Item: 2, Type: mmvimage.U64, Sem: mmvimage.Instant, Values: []mmvimage.Value{mmvimage.Int(7)}}
	img := mmvimage.New(2).Cluster(5).InDom(1, "", "", insts...).Metric(m).Metric(single)
	b, l := img.Build(), img.Layout()
	b = b[:l.Strings+strs]
	for i := l.Strings; i < l.Strings+strs; i++ {
		b[i] = 'x'
	}
	for i := range n { // each a byte further in one string
		mmvimage.PutU64(b, l.Instance(i)+mmvimage.InstName, l.Strings+uint64(i))
	}
	mmvimage.PutU32(b, l.Section(mmvimage.SecStrings)+mmvimage.TOCCount, strs/StringSize)
	_, f := loadLarge(t, b)
	c := f.Whole()
	if c == nil {
		t.Fatal("not found")
	}
	if k := len(c.Instances(&c.InDoms[0])); k != 0 || c.Memory() > 2*len(b) {
		t.Errorf("%d instances, %d bytes for %d", k, c.Memory(), len(b))
	}
	if !slices.ContainsFunc(c.Remarks, func(e *FormatError) bool { return errors.Is(e, ErrSections) }) {
		t.Errorf("not told: %v", c.Remarks)
	}
	many, one := c.Values(&c.Metrics[0]), c.Values(&c.Metrics[1])
	var v Values
	if many.Len() != 0 || !f.Load([]Want{{TypeU64, one}}, &v) || v.Bits[0] != 7 {
		t.Errorf("%d values of the instances, %v of none", many.Len(), v.Bits)
	}
}

// TestWholeTruncated checks that a file that becomes shorter before its
// values are looked at has none.
func TestWholeTruncated(t *testing.T) {
	b, img := largeImage(1)
	d, f := loadLarge(t, b)
	if err := os.Truncate(filepath.Join(d.Path(), "a"), int64(img.Layout().Values)); err != nil {
		t.Fatal(err)
	}
	if f.Whole() != nil {
		t.Error("values that are not there")
	}
	if s := d.Look(); len(s.Files) == 1 && !s.Files[0].Held {
		t.Error("still loaded")
	}
}
