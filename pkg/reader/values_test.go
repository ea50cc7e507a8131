package reader_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// loadOne puts the image into a directory of its own and loads it.
func loadOne(t testing.TB, img *mmvimage.Image) (*watched, *reader.File) {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "a", img)
	w := watch(t, dir, reader.Options{})
	return w, w.file("a")
}

// values are those of one metric, as text.
func values(v *reader.Values, i int, typ reader.Type) string {
	from := 0
	if i > 0 {
		from = v.End[i-1]
	}
	var out []string
	for k := from; k < v.End[i]; k++ {
		s := fmt.Sprintf("%#x", v.Bits[k])
		if typ == reader.TypeString {
			s = fmt.Sprintf("%q", v.String(v.Bits[k]))
		}
		if v.Insts[k] != -1 {
			s = fmt.Sprintf("%d:%s", v.Insts[k], s)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

const none = ^uint64(0) // the sentinel of integers

// TestTypes loads every type, at every alignment, with and without sentinels.
func TestTypes(t *testing.T) {
	type want struct{ plain, sentinel string }
	nan64, nan32 := math.Float64bits(math.NaN()), uint64(0x7fc00001)
	metrics := []struct {
		name   string
		typ    int32
		values []mmvimage.Value
		want   want
	}{
		{"i32", mmvimage.I32, []mmvimage.Value{mmvimage.Int32(-5)}, want{"0xfffffffb", "0xfffffffb"}},
		{"i32, four bytes of sentinel", mmvimage.I32, []mmvimage.Value{mmvimage.Int32(-1)}, want{"0xffffffff", "0xffffffff"}},
		{"i32 sentinel", mmvimage.I32, []mmvimage.Value{mmvimage.Uint(none)}, want{"0xffffffff", ""}},
		{"u32", mmvimage.U32, []mmvimage.Value{mmvimage.Int32(0x12345678)}, want{"0x12345678", "0x12345678"}},
		{"u32 sentinel", mmvimage.U32, []mmvimage.Value{mmvimage.Uint(none)}, want{"0xffffffff", ""}},
		{"i64", mmvimage.I64, []mmvimage.Value{mmvimage.Int(math.MinInt64)}, want{"0x8000000000000000", "0x8000000000000000"}},
		{"i64 sentinel", mmvimage.I64, []mmvimage.Value{mmvimage.Int(-1)}, want{"0xffffffffffffffff", ""}},
		{"u64", mmvimage.U64, []mmvimage.Value{mmvimage.Uint(none - 1)}, want{"0xfffffffffffffffe", "0xfffffffffffffffe"}},
		{"u64 sentinel", mmvimage.U64, []mmvimage.Value{mmvimage.Uint(none)}, want{"0xffffffffffffffff", ""}},
		{"float", mmvimage.Float, []mmvimage.Value{mmvimage.Float32(1.5)}, want{"0x3fc00000", "0x3fc00000"}},
		{"float inf", mmvimage.Float, []mmvimage.Value{mmvimage.Float32(float32(math.Inf(-1)))}, want{"0xff800000", "0xff800000"}},
		{"float nan", mmvimage.Float, []mmvimage.Value{mmvimage.Float32(math.Float32frombits(uint32(nan32)))}, want{"0x7fc00001", ""}},
		{"double", mmvimage.Double, []mmvimage.Value{mmvimage.Float64(0.5)}, want{"0x3fe0000000000000", "0x3fe0000000000000"}},
		{"double inf", mmvimage.Double, []mmvimage.Value{mmvimage.Float64(math.Inf(1))}, want{"0x7ff0000000000000", "0x7ff0000000000000"}},
		{"double nan", mmvimage.Double, []mmvimage.Value{mmvimage.Float64(math.NaN())}, want{fmt.Sprintf("%#x", nan64), ""}},
		{"double negative nan", mmvimage.Double, []mmvimage.Value{mmvimage.Uint(none)}, want{"0xffffffffffffffff", ""}},
		{"string", mmvimage.String, []mmvimage.Value{mmvimage.Text("text")}, want{`"text"`, `"text"`}},
		{"string empty", mmvimage.String, []mmvimage.Value{mmvimage.Text("")}, want{`""`, ""}},
		{"string long", mmvimage.String, []mmvimage.Value{mmvimage.Text(strings.Repeat("y", 300))}, want{`"` + strings.Repeat("y", 255) + `"`, `"` + strings.Repeat("y", 255) + `"`}},
		{"string of none", mmvimage.String, []mmvimage.Value{mmvimage.Timed(0, 0)}, want{"", ""}},
		{"string in the header", mmvimage.String, []mmvimage.Value{mmvimage.Timed(0, 39)}, want{"", ""}},
		{"string beyond the end", mmvimage.String, []mmvimage.Value{mmvimage.Timed(0, 1<<20)}, want{"", ""}},
		{"string wrapping", mmvimage.String, []mmvimage.Value{mmvimage.Timed(0, -256)}, want{"", ""}},
		{"string wrapping 32 bits", mmvimage.String, []mmvimage.Value{mmvimage.Timed(0, 1<<32+64)}, want{"", ""}},
		{"elapsed", mmvimage.Elapsed, []mmvimage.Value{mmvimage.Timed(77, 0)}, want{"0x4d", "0x4d"}},
		{"elapsed positive extra", mmvimage.Elapsed, []mmvimage.Value{mmvimage.Timed(77, 5)}, want{"0x4d", "0x4d"}},
		{"elapsed sentinel", mmvimage.Elapsed, []mmvimage.Value{mmvimage.Timed(-1, 0)}, want{"0xffffffffffffffff", ""}},
		{"no support", mmvimage.NoSupport, []mmvimage.Value{mmvimage.Int(1)}, want{"", ""}},
		{"aggregate", 7, []mmvimage.Value{mmvimage.Int(1)}, want{"", ""}},
		{"unknown", 99, []mmvimage.Value{mmvimage.Int(1)}, want{"", ""}},
		{"no value", mmvimage.U64, mmvimage.NoValues(), want{"", ""}},
	}
	for _, sentinel := range []bool{false, true} {
		for _, gap := range []int{0, 4, 1, 7, 2} {
			t.Run(fmt.Sprintf("sentinel %v gap %d", sentinel, gap), func(t *testing.T) {
				img := mmvimage.New(1).Gap(gap)
				if sentinel {
					img.Flags(mmvimage.Sentinel)
				}
				for i, m := range metrics {
					img.Metric(mmvimage.Metric{Name: m.name, Item: uint32(i), Type: m.typ, Values: m.values})
				}
				_, f := loadOne(t, img)
				var v reader.Values
				for round := range 2 { // the second appends
					if !f.Load(wants(f.Catalog), &v) {
						t.Fatal("no values")
					}
					for i, m := range metrics {
						want := m.want.plain
						if sentinel {
							want = m.want.sentinel
						}
						if got := values(&v, round*len(metrics)+i, reader.Type(m.typ)); got != want {
							t.Errorf("round %d: %s: %s, want %s", round, m.name, got, want)
						}
					}
				}
				v.Reset()
				if len(v.Insts)+len(v.Bits)+len(v.End) != 0 {
					t.Error("values after Reset")
				}
			})
		}
	}
}

// TestOrders loads instances of every type whose slots are in the order of their
// indom, and in others.
func TestOrders(t *testing.T) {
	types := []struct {
		typ    int32
		values []mmvimage.Value
		want   [3]string
	}{
		{mmvimage.I32, []mmvimage.Value{mmvimage.Int32(-1), mmvimage.Int32(2), mmvimage.Int32(3)}, [3]string{"0xffffffff", "0x2", "0x3"}},
		{mmvimage.U32, []mmvimage.Value{mmvimage.Int32(1), mmvimage.Int32(2), mmvimage.Int32(3)}, [3]string{"0x1", "0x2", "0x3"}},
		{mmvimage.I64, []mmvimage.Value{mmvimage.Int(-3), mmvimage.Int(2), mmvimage.Int(3)}, [3]string{"0xfffffffffffffffd", "0x2", "0x3"}},
		{mmvimage.U64, []mmvimage.Value{mmvimage.Int(1), mmvimage.Int(2), mmvimage.Int(3)}, [3]string{"0x1", "0x2", "0x3"}},
		{mmvimage.Float, []mmvimage.Value{mmvimage.Float32(1), mmvimage.Float32(2), mmvimage.Float32(3)}, [3]string{"0x3f800000", "0x40000000", "0x40400000"}},
		{mmvimage.Double, []mmvimage.Value{mmvimage.Uint(1), mmvimage.Uint(2), mmvimage.Uint(3)}, [3]string{"0x1", "0x2", "0x3"}},
		{mmvimage.String, []mmvimage.Value{mmvimage.Text("a"), mmvimage.Text("b"), mmvimage.Text("c")}, [3]string{`"a"`, `"b"`, `"c"`}},
		{mmvimage.Elapsed, []mmvimage.Value{mmvimage.Timed(1, 0), mmvimage.Timed(2, 0), mmvimage.Timed(3, 0)}, [3]string{"0x1", "0x2", "0x3"}},
	}
	ids := [3]int32{4, -2, 7}
	for _, sentinel := range []bool{false, true} {
		for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}} {
			t.Run(fmt.Sprintf("sentinel %v order %v", sentinel, order), func(t *testing.T) {
				img := mmvimage.New(2).InDom(1, "", "", mmvimage.Inst{ID: ids[0], Name: "a"}, mmvimage.Inst{ID: ids[1], Name: "b"}, mmvimage.Inst{ID: ids[2], Name: "c"})
				if sentinel {
					img.Flags(mmvimage.Sentinel)
				}
				for i, typ := range types {
					img.Metric(mmvimage.Metric{Name: fmt.Sprintf("m%d", i), Item: uint32(i), Type: typ.typ, InDom: 1, Values: typ.values})
				}
				b, l := img.Build(), img.Layout()
				want := make([]string, len(types))
				for i, typ := range types {
					var parts [3]string
					for k, inst := range order { // slot k is of that instance
						mmvimage.PutU64(b, l.Value(3*i+k)+mmvimage.ValueInst, l.Instance(inst))
						parts[inst] = fmt.Sprintf("%d:%s", ids[inst], typ.want[k])
					}
					want[i] = strings.Join(parts[:], " ")
				}
				dir := t.TempDir()
				check0(t, mmvimage.Write(filepath.Join(dir, "a"), b))
				f := watch(t, dir, reader.Options{}).file("a")
				var v reader.Values
				if !f.Load(wants(f.Catalog), &v) {
					t.Fatal("no values")
				}
				got := make([]string, len(types))
				for i := range types {
					got[i] = values(&v, i, f.Catalog.Metrics[i].Type)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

// TestInstances leaves those out that have the sentinel, of each type.
func TestInstances(t *testing.T) {
	img := mmvimage.New(2).Flags(mmvimage.Sentinel).
		InDom(1, "", "", mmvimage.Inst{ID: 4, Name: "a"}, mmvimage.Inst{ID: 2, Name: "b"}, mmvimage.Inst{ID: 7, Name: "c"}, mmvimage.Inst{ID: 9, Name: "d"})
	add := func(typ int32, vals ...mmvimage.Value) {
		img.Metric(mmvimage.Metric{Name: fmt.Sprintf("m%d", typ), Type: typ, InDom: 1, Values: vals})
	}
	add(mmvimage.U64, mmvimage.Int(1), mmvimage.Uint(none), mmvimage.Int(3), mmvimage.Uint(none))
	add(mmvimage.I32, mmvimage.Uint(none), mmvimage.Int32(2), mmvimage.None(), mmvimage.Int32(-4))
	add(mmvimage.Double, mmvimage.Float64(math.NaN()), mmvimage.Uint(5), mmvimage.Uint(6), mmvimage.Float64(math.NaN()))
	add(mmvimage.String, mmvimage.Text("x"), mmvimage.Text(""), mmvimage.Text("zz"), mmvimage.Timed(0, -1))
	add(mmvimage.Elapsed, mmvimage.Timed(-1, 0), mmvimage.Timed(8, 0), mmvimage.None(), mmvimage.Timed(9, 0))
	add(mmvimage.U64, mmvimage.Uint(none), mmvimage.Uint(none), mmvimage.Uint(none), mmvimage.Uint(none))
	_, f := loadOne(t, img)
	var v reader.Values
	if !f.Load(wants(f.Catalog), &v) {
		t.Fatal("no values")
	}
	got := make([]string, 0, len(f.Catalog.Metrics))
	for i := range f.Catalog.Metrics {
		got = append(got, values(&v, i, f.Catalog.Metrics[i].Type))
	}
	want := []string{"4:0x1 7:0x3", "2:0x2 9:0xfffffffc", "2:0x5 7:0x6", `4:"x" 7:"zz"`, "2:0x8 9:0x9", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestElapsed adds the time of a section that is being timed.
func TestElapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().UnixMicro()
		_, f := loadOne(t, mmvimage.New(1).Metric(mmvimage.Metric{Name: "t", Type: mmvimage.Elapsed, Values: []mmvimage.Value{mmvimage.Timed(1000, -begin)}}))
		if got := all(t, f)[0]; got != 1000 {
			t.Errorf("at first %d", got)
		}
		time.Sleep(2500 * time.Microsecond)
		if got := all(t, f)[0]; got != 3500 {
			t.Errorf("2.5 ms later %d", got)
		}
	})
}

// TestLive sees stores at once, those of strings too.
func TestLive(t *testing.T) {
	img := mmvimage.New(1).Metric(mmvimage.Metric{Name: "n", Type: mmvimage.U64}).
		Metric(mmvimage.Metric{Name: "s", Type: mmvimage.String, Values: []mmvimage.Value{mmvimage.Text("one")}})
	w, f := loadOne(t, img)
	l := img.Layout()
	m := live(t, filepath.Join(w.Path(), "a"))
	mmvimage.PutU64(m, l.Value(0), 42)
	copy(m[l.String(0):], "three")
	var v reader.Values
	if !f.Load(wants(f.Catalog), &v) || v.Bits[0] != 42 || string(v.String(v.Bits[1])) != "three" {
		t.Errorf("values %v", v)
	}
	mmvimage.PutU64(m, l.Value(1)+mmvimage.ValueExtra, l.String(0)+2) // another string
	v.Reset()
	if !f.Load(wants(f.Catalog), &v) || string(v.String(v.Bits[1])) != "ree" {
		t.Errorf("values %v", v)
	}
}

// big is an image of more than 100 KiB, whose values lie behind that.
func big() *mmvimage.Image { return counter("m", 1500, 1) }

// TestFaults shortens files in every way under a File that is in use. It has
// no values, others have, and a look finds out.
func TestFaults(t *testing.T) {
	img := big()
	l := img.Layout()
	onEach(t, func(t *testing.T, dir string) {
		for name, size := range map[string]int64{
			"nothing": 0, "header": 40, "a page": 4096, "up to the values": int64(l.Values), "some values": int64(l.Value(700)),
		} {
			put(t, dir, "a", img)
			put(t, dir, "b", img)
			w := watch(t, dir, reader.Options{})
			s := w.look("a loaded, b loaded")
			path := filepath.Join(dir, "a")
			check0(t, os.Truncate(path, size))
			w.Acquire()
			var v reader.Values
			v.Insts, v.Bits, v.End = append(v.Insts, 1), append(v.Bits, 2), append(v.End, 1) // of another file before
			if s.Files[0].Load(wants(s.Files[0].Catalog), &v) {
				t.Errorf("%s: there are values", name)
			}
			if len(v.Insts) != 1 || len(v.Bits) != 1 || len(v.End) != 1501 || v.End[1500] != 1 {
				t.Errorf("%s: %d instances, %d values, %d ends", name, len(v.Insts), len(v.Bits), len(v.End))
			}
			if got := all(t, s.Files[1]); len(got) != 1500 || got[1499] != 1500 {
				t.Errorf("%s: the other file has %d values", name, len(got))
			}
			w.Release()
			if w.Faults() == 0 {
				t.Errorf("%s: no fault is counted", name)
			}
			if s := w.Look(); len(s.Files) == 2 && !s.Files[0].Held {
				t.Errorf("%s: still %s", name, states(s))
			}
			put(t, dir, "a", img)
			w.look("a loaded, b loaded")
			w.Close()
		}
	})
}

// TestSuspect looks again at a file that had no values, though nothing else
// tells of it.
func TestSuspect(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	put(t, dir, "a", big())
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, dir, reader.Options{NoInotify: true})
		f := w.file("a")
		check0(t, os.Truncate(path, 4096)) // its header is as it was
		w.look("a loaded")
		var v reader.Values
		if f.Load(wants(f.Catalog), &v) {
			t.Error("values that are not there")
		}
		w.look("a rejected")
	})
}

// TestGeneration has no values of another generation.
func TestGeneration(t *testing.T) {
	w, f := loadOne(t, counter("m", 1, 1))
	m := live(t, filepath.Join(w.Path(), "a"))
	for _, off := range []uint64{mmvimage.HdrG1, mmvimage.HdrG2} {
		mmvimage.PutU64(m, off, 5)
		var v reader.Values
		if f.Load(wants(f.Catalog), &v) {
			t.Error("values of another generation")
		}
		mmvimage.PutU64(m, off, mmvimage.DefaultGeneration)
		if diff := cmp.Diff([]uint64{1}, all(t, f)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestLoadSlots gives what Load does, apart from sentinels.
func TestLoadSlots(t *testing.T) {
	img := mmvimage.New(1).Flags(mmvimage.Sentinel)
	numbers := []struct {
		typ   int32
		value mmvimage.Value
		none  bool
	}{
		{mmvimage.I32, mmvimage.Int32(-7), false},
		{mmvimage.U32, mmvimage.Uint(none), true},
		{mmvimage.U64, mmvimage.Uint(none - 1), false},
		{mmvimage.I64, mmvimage.Int(-1), true},
		{mmvimage.Float, mmvimage.Float32(0.5), false},
		{mmvimage.Float, mmvimage.Float32(float32(math.NaN())), true},
		{mmvimage.Double, mmvimage.Float64(-0.5), false},
		{mmvimage.Double, mmvimage.Float64(math.NaN()), true},
	}
	for _, n := range numbers {
		img.Metric(mmvimage.Metric{Name: "m", Type: n.typ, Values: []mmvimage.Value{n.value}})
	}
	w, f := loadOne(t, img)
	l := f.Layout()
	offs := make([]uint32, len(numbers))
	for i := range numbers {
		refs := l.Refs(uint32(i))
		offs[i] = refs.At(0).Off
	}
	bits := make([]uint64, len(offs))
	if !f.LoadSlots(offs, bits) {
		t.Fatal("no values")
	}
	var v reader.Values
	f.Load(wants(f.Catalog), &v)
	k := 0
	for i, n := range numbers {
		typ := reader.Type(n.typ)
		if got := reader.SentinelOf(typ, bits[i]); got != n.none {
			t.Errorf("%d: sentinel %v", i, got)
		}
		if n.none {
			continue
		}
		got := bits[i]
		if n.typ == mmvimage.I32 || n.typ == mmvimage.Float {
			got = uint64(reader.Narrow(got))
		}
		if got != v.Bits[k] {
			t.Errorf("%d: %#x, want %#x", i, got, v.Bits[k])
		}
		k++
	}
	check0(t, os.Truncate(filepath.Join(w.Path(), "a"), 0))
	if f.LoadSlots(offs, bits) {
		t.Error("values that are not there")
	}
	w.Look()
	w.Reap()
	if f.LoadSlots(offs, bits) {
		t.Error("values of a File that is unmapped")
	}
}

func TestKnown(t *testing.T) {
	for typ, want := range map[reader.Type]bool{-2: false, -1: true, 0: true, 6: true, 7: false, 8: false, 9: true, 10: false, 255: false} {
		if got := typ.Known(); got != want {
			t.Errorf("%d: %v", typ, got)
		}
	}
}

// TestReap keeps what an answer in progress uses.
func TestReap(t *testing.T) {
	w, f := loadOne(t, counter("m", 3, 1))
	w.Acquire()
	put(t, w.Path(), "a", counter("n", 3, 7))
	next := w.file("a")
	if w.Reap() {
		t.Error("nothing is left")
	}
	if n := len(mappings(t, w.Path())); n != 2 {
		t.Errorf("%d mappings", n)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3}, all(t, f)); diff != "" {
		t.Error(diff)
	}
	w.Release()
	if !w.Reap() {
		t.Error("something is left")
	}
	if n := len(mappings(t, w.Path())); n != 1 {
		t.Errorf("%d mappings", n)
	}
	var v reader.Values
	if f.Load(wants(f.Catalog), &v) {
		t.Error("a File that is unmapped has values")
	}
	if diff := cmp.Diff([]uint64{7, 8, 9}, all(t, next)); diff != "" {
		t.Error(diff)
	}
}

// TestReapAtLast does not let mappings pile up behind answers that overlap.
func TestReapAtLast(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir, reader.Options{})
	put(t, dir, "a", counter("m", 1, 1))
	w.look("a loaded")
	path := filepath.Join(dir, "a")
	one, two := counter("m", 1, 1).Generation(1).Build(), counter("m", 1, 1).Generation(2).Build()
	w.Acquire()
	for i := range 1023 {
		overwrite(t, path, [][]byte{one, two}[i%2])
		w.Look()
		w.Reap()
	}
	if n := len(mappings(t, dir)); n != 1024 {
		t.Errorf("%d mappings", n)
	}
	overwrite(t, path, two)
	w.Look()
	overwrite(t, path, one)
	w.Look()
	reaped := make(chan struct{})
	go func() { w.Reap(); close(reaped) }()
	select {
	case <-reaped:
		t.Error("Reap does not wait for the answer in progress")
	case <-time.After(50 * time.Millisecond):
	}
	w.Release()
	<-reaped
	if n := len(mappings(t, dir)); n != 1 {
		t.Errorf("%d mappings are left", n)
	}
}
