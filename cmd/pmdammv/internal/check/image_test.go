package check_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/cmd/pmdammv/internal/check"
	"pmdammv/pkg/reader"
	img "pmdammv/test/mmvimage"
)

const hostile = "../../../../pkg/reader/testdata/hostile"

func codes(found []check.Finding) []string {
	out := make([]string, 0, len(found))
	for _, f := range found {
		out = append(out, string(f.Code))
	}
	return out
}

// TestHostile: the actual defect of each bad file, and nothing else.
func TestHostile(t *testing.T) {
	table := read(t, "testdata/hostile.tsv")
	want := map[string][]string{}
	for line := range strings.Lines(string(table)) {
		if name, list, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok && name[0] != '#' {
			want[name] = strings.Fields(list)
		}
	}
	files, err := filepath.Glob(filepath.Join(hostile, "*.mmv"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, %d in the table, %v", len(files), len(want), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		found, omitted := check.Image(read(t, file), 0)
		if omitted != 0 {
			t.Errorf("%s: %d omitted", name, omitted)
		}
		if d := cmp.Diff(want[name], codes(found)); want[name] == nil || d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sample is a file with something of everything, with which nothing is wrong.
func sample(version int32) *img.Image {
	m := img.New(version).Cluster(7).
		InDom(3, "one line", "help", img.Inst{ID: 1, Name: "one"}, img.Inst{ID: 2, Name: "two"}).
		Metric(img.Metric{Name: "a.count", Item: 1, Type: img.U64, Sem: img.Counter, InDom: 3, Short: "s", Help: "h"}).
		Metric(img.Metric{Name: "a.text", Item: 2, Type: img.String, Sem: img.Discrete, Values: []img.Value{img.Text("text")}})
	if version == 3 {
		m.Label(img.LabelItem, 1, -1, `{"a":1}`).Label(img.LabelInDom, 3, -1, `{"b":"x"}`).
			Label(img.LabelInstances, 3, 2, `{"c":true}`).Label(img.LabelCluster|img.LabelOptional, 7, -1, `{"d":null}`)
	}
	return m
}

func TestNothingWrong(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		if found, _ := check.Image(sample(version).Build(), 0); len(found) > 0 {
			t.Errorf("version %d: %+v", version, found)
		}
	}
}

// broken is a file with one thing wrong, and where.
type broken struct {
	name  string
	image func() []byte
	want  string // code, where
}

// patched is a sample with a field changed.
func patched(version int32, f func(b []byte, l img.Layout)) func() []byte {
	return func() []byte {
		m := sample(version)
		b := m.Build()
		f(b, m.Layout())
		return b
	}
}

func put32(off func(img.Layout) uint64, v uint32) func([]byte, img.Layout) {
	return func(b []byte, l img.Layout) { img.PutU32(b, off(l), v) }
}

func put64(off func(img.Layout) uint64, v uint64) func([]byte, img.Layout) {
	return func(b []byte, l img.Layout) { img.PutU64(b, off(l), v) }
}

func at(off uint64) func(img.Layout) uint64 { return func(img.Layout) uint64 { return off } }

func metric(i int, field uint64) func(img.Layout) uint64 {
	return func(l img.Layout) uint64 { return l.MetricFields(i) + field }
}

func build(f func(*img.Image)) func() []byte {
	return func() []byte {
		m := img.New(2).Cluster(7)
		f(m)
		return m.Build()
	}
}

func one(name string, item uint32) img.Metric {
	return img.Metric{Name: name, Item: item, Type: img.I64, Sem: img.Instant}
}

var brokenFiles = []broken{
	{"tag", func() []byte { return []byte("GIF89a") }, "not-mmv header tag at offset 0"},
	{"zero", func() []byte { return make([]byte, 500) }, "in-flux header tag at offset 0"},
	{"short", func() []byte { return []byte("MM") }, "truncated header at offset 0"},
	{"version", patched(1, put32(at(img.HdrVersion), 4)), "version header version at offset 4"},
	{"other order", func() []byte { return sample(2).ByteOrder(otherOrder()).Build() }, "byte-order header version at offset 4"},
	{"generation", patched(1, put64(at(img.HdrG1), 0)), "in-flux header generation at offset 8"},
	{"flags", patched(1, put32(at(img.HdrFlags), 8)), "flags-unknown header flags at offset 28"},
	{"pid", patched(1, func(b []byte, _ img.Layout) {
		img.PutU32(b, img.HdrFlags, uint32(img.Process))
		img.PutU32(b, img.HdrPID, 0xffffffff)
	}), "pid-range header pid at offset 32"},
	{"toc beyond", patched(1, put32(at(img.HdrTOCs), 1<<30)), "toc-count header toc count at offset 24"},
	{"labels in version 2", patched(2, put32(at(56), img.SecLabels)), "section-version toc[1] type at offset 56"},
	{"second section", patched(1, put32(at(56), img.SecInDoms)), "section-twice toc[1] type at offset 56"},
	{"no values", patched(1, func(b []byte, l img.Layout) { img.PutU32(b, l.TOC(3), 9) }), "section-missing toc at offset 40"},
	{"overlap", patched(1, func(b []byte, l img.Layout) {
		img.PutU64(b, l.TOC(4)+img.TOCOffset, l.Values)
	}), "section-overlap toc[4] offset at offset 112"},
	{"over the header", patched(1, func(b []byte, l img.Layout) { img.PutU64(b, l.TOC(4)+img.TOCOffset, 8) }), "section-overlap toc[4] offset at offset 112"},
	{"unaligned", func() []byte { return sample(1).Gap(3).Build() }, "values-unaligned toc[3] offset at offset 96"},
	{"indom twice", build(func(m *img.Image) {
		m.InDom(3, "", "", img.Inst{ID: 1, Name: "a"}).InDom(3, "", "", img.Inst{ID: 1, Name: "b"}).Metric(one("m", 1))
	}), "indom-twice indom[1] serial at offset 152"},
	{"indom 0", build(func(m *img.Image) { m.InDom(0, "", "").Metric(one("m", 1)) }), "indom-zero indom[0] serial at offset 104"},
	{"indom outside", patched(1, func(b []byte, l img.Layout) { img.PutU32(b, l.InDom(0)+img.InDomCount, 1000) }), "indom-outside indom[0] offset at offset 128"},
	{"instance -1", build(func(m *img.Image) { m.InDom(3, "", "", img.Inst{ID: -1, Name: "a"}).Metric(one("m", 1)) }), "instance-id instance[0] internal at offset 164"},
	{"instance twice", build(func(m *img.Image) {
		m.InDom(3, "", "", img.Inst{ID: 1, Name: "a"}, img.Inst{ID: 1, Name: "b"}).Metric(one("m", 1))
	}), "instance-twice instance[1] internal at offset 188"},
	{"instances alike", build(func(m *img.Image) {
		m.InDom(3, "", "", img.Inst{ID: 1, Name: "disk 1"}, img.Inst{ID: 2, Name: "disk 2"}).Metric(one("m", 1))
	}), "instance-alike instance[1] name at offset 192"},
	{"instance of another", patched(1, func(b []byte, l img.Layout) { img.PutU64(b, l.Instance(1), 1) }), "instance-indom instance[1] indom at offset 232"},
	{"no name", patched(2, func(b []byte, l img.Layout) { img.PutU64(b, l.Metric(0), 0) }), "name-missing metric[0] name at offset 200"},
	{"name outside", patched(2, func(b []byte, l img.Layout) { img.PutU64(b, l.Metric(0), 1<<40) }), "name-missing metric[0] name at offset 200"},
	{"own name", build(func(m *img.Image) { m.Flags(img.NoPrefix).Metric(one("control.x", 1)) }), "name-reserved metric[0] name at offset 88"},
	{"name twice", build(func(m *img.Image) { m.Metric(one("m", 1)).Metric(one("m", 2)) }), "name-twice metric[1] name at offset 136"},
	{"non-leaf", build(func(m *img.Image) { m.Metric(one("m.n", 1)).Metric(one("m", 2)) }), "name-below-leaf metric[1] name at offset 136"},
	{"elapsed", patched(1, func(b []byte, l img.Layout) {
		img.PutU32(b, l.MetricFields(1)+img.MetricType, uint32(img.Elapsed))
		img.PutU32(b, l.MetricFields(1)+img.MetricSem, uint32(img.Counter))
		img.PutU32(b, l.MetricFields(1)+img.MetricUnits, 1<<24|1<<12)
	}), "elapsed-running value[2] extra at offset 592"},
	{"semantics", patched(1, put32(metric(0, img.MetricSem), 9)), "semantics metric[0] semantics at offset 384"},
	{"text outside", patched(1, put64(metric(1, img.MetricHelp), 1<<40)), "text-outside metric[1] helptext at offset 512"},
	{"no value", build(func(m *img.Image) {
		m.Metric(img.Metric{Name: "m", Item: 1, Type: img.I64, Sem: img.Instant, Values: img.NoValues()})
	}), "no-value metric[0] at offset 88"},
	{"value twice", patched(1, func(b []byte, l img.Layout) {
		img.PutU64(b, l.Value(1)+img.ValueInst, l.Instance(0))
	}), "value-twice metric[0] at offset 312"},
	{"value's instance", patched(1, func(b []byte, l img.Layout) { img.PutU64(b, l.Value(1)+img.ValueInst, 3) }), "value-instance value[1] instance at offset 576"},
	{"label flags", patched(3, func(b []byte, l img.Layout) { img.PutU32(b, l.Label(0), 0) }), "label-flags label[0] flags at offset 2712"},
	{"label of nothing", patched(3, func(b []byte, l img.Layout) { img.PutU32(b, l.Label(0)+img.LabelIdentity, 9) }), "label-of-nothing label[0] identity at offset 2716"},
	{"label text", patched(3, func(b []byte, l img.Layout) { b[l.Label(1)+img.LabelPayload] = '[' }), "label-json label[1] payload at offset 2980"},
	{"instances twice", func() []byte {
		m := img.New(1).Cluster(7)
		for i := range uint32(9) {
			m.InDom(i+1, "", "")
		}
		m.InDom(20, "", "", make([]img.Inst, 9)...).Metric(one("m", 1))
		b, l := m.Build(), m.Layout()
		for i := range 10 {
			img.PutU32(b, l.InDom(i)+img.InDomCount, 9)
			img.PutU64(b, l.InDom(i)+img.InDomOffset, l.Instances)
		}
		return b
	}, "instances-twice indom[1] count at offset 140"},
}

func otherOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func TestFindings(t *testing.T) {
	for _, b := range brokenFiles {
		t.Run(b.name, func(t *testing.T) {
			image := b.image()
			found, _ := check.Image(image, 0)
			var got []string
			for _, f := range found {
				got = append(got, string(f.Code)+" "+f.Where())
				if f.Problem == "" || f.Agent == "" || f.Writer == "" || strings.ContainsAny(f.Problem, "\x00\n") {
					t.Errorf("%+v", f)
				}
			}
			if !slices.Contains(got, b.want) {
				t.Errorf("no %q in %q", b.want, got)
			}
			if len(got) > 3 && b.name != "instances twice" {
				t.Errorf("one thing is wrong, and that makes %q", got)
			}
		})
	}
}

// TestBounds: a file full of faults does not fill the screen, unless asked to.
func TestBounds(t *testing.T) {
	m := img.New(1).Cluster(7)
	for i := range 500 {
		m.Metric(one("a-b", uint32(i)))
	}
	found, omitted := check.Image(m.Build(), 20)
	if len(found) != 20 || omitted != 480 {
		t.Errorf("%d findings, %d omitted", len(found), omitted)
	}
	if found, omitted = check.Image(m.Build(), 0); len(found) != 500 || omitted != 0 {
		t.Errorf("of all: %d findings, %d omitted", len(found), omitted)
	}
}

// FuzzImage: whatever the agent's parser complains of is found here as well,
// with an explanation, and what it has no complaint about is no error.
func FuzzImage(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(hostile, "*.mmv"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(read(f, file))
	}
	for version := int32(1); version <= 3; version++ {
		f.Add(sample(version).Build())
	}
	for _, b := range brokenFiles {
		f.Add(b.image())
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		if len(image) > 1<<16 {
			t.Skip("too long to be quick")
		}
		if msg := agrees(image); msg != "" {
			t.Error(msg)
		}
	})
}

// agrees says in what the findings fail to explain what the agent does.
func agrees(image []byte) string {
	found, omitted := check.Image(image, 5)
	for _, x := range found {
		if x.Offset < -1 || x.Offset > int64(len(image)) || len(x.Problem) > 2000 {
			return fmt.Sprintf("out of bounds: %+v", x)
		}
		unexplained := x.Code == "rejected" || x.Code == "entry-unused"
		if unexplained && !strings.Contains(x.Problem, "overlap") {
			return fmt.Sprintf("not explained: %+v", x)
		}
	}
	has := func(off uint64, fatal bool) bool {
		return omitted > 0 || slices.ContainsFunc(found, func(x check.Finding) bool {
			return x.Offset == int64(off) && (x.Severity == check.Error || !fatal)
		})
	}
	c, err := reader.Parse(image)
	if fe, ok := errors.AsType[*reader.FormatError](err); ok {
		if !has(fe.Off, true) {
			return fmt.Sprintf("no error for %v", fe)
		}
		return ""
	}
	for _, r := range c.Remarks {
		if !has(r.Off, false) {
			return fmt.Sprintf("no finding for %v", r)
		}
	}
	return ""
}

// TestEveryWord sets every word of good files to values that make trouble.
func TestEveryWord(t *testing.T) {
	n := 0
	for version := int32(1); version <= 3; version++ {
		image := sample(version).Build()
		size := uint64(len(image))
		for off := uint64(0); off+8 <= size; off += 4 {
			old := img.GetU64(image, off)
			for _, v := range []uint64{
				0, 1, 8, old + 1, old - 1, size - 255, 1 << 31, 1<<64 - 1, 1<<64 - 256,
			} {
				n++
				b := slices.Clone(image)
				img.PutU32(b, off, uint32(v))
				if msg := agrees(b); msg != "" {
					t.Fatalf("version %d, %d at %d, 4 bytes: %s", version, v, off, msg)
				}
				if img.PutU64(b, off, v); off%8 != 0 {
					continue
				}
				if msg := agrees(b); msg != "" {
					t.Fatalf("version %d, %d at %d, 8 bytes: %s", version, v, off, msg)
				}
			}
		}
	}
	t.Logf("%d images", n)
}
