package reader_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestParse reads all of a small image, wherever its sections lie.
func TestParse(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		for _, gap := range []int{0, 1, 4, 8, 100} {
			t.Run(fmt.Sprintf("v%d gap %d", version, gap), func(t *testing.T) {
				img := sample(version).Gap(gap)
				got := viewOf(parse(t, img.Build()))
				want := sampleView(version)
				moveView(&want, sample(version).Layout(), img.Layout())
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

// moveView makes a view of an image one of the same image laid out otherwise.
func moveView(v *view, from, to mmvimage.Layout) {
	v.Size = to.Size
	for i := range v.TOC {
		v.TOC[i].Offset = mmvimage.GetU64(sectionOffsets(to), uint64(v.TOC[i].Section)*8)
	}
	for i := range v.Metrics {
		for k := range v.Metrics[i].Values {
			v.Metrics[i].Values[k].Off += uint32(to.Values - from.Values)
		}
	}
}

func sectionOffsets(l mmvimage.Layout) []byte {
	b := make([]byte, 7*8)
	for i, off := range []uint64{0, l.InDoms, l.Instances, l.Metrics, l.Values, l.Strings, l.Labels} {
		mmvimage.PutU64(b, uint64(i)*8, off)
	}
	return b
}

// TestParseKeepsNothing overwrites the image after Parse.
func TestParseKeepsNothing(t *testing.T) {
	image := sample(3).Build()
	c := parse(t, image)
	before := viewOf(c)
	clear(image)
	if diff := cmp.Diff(before, viewOf(c)); diff != "" {
		t.Error(diff)
	}
}

// TestTOCOrder permutes the TOC: sections may come in any order.
func TestTOCOrder(t *testing.T) {
	image := sample(2).Build()
	l := sample(2).Layout()
	want := viewOf(parse(t, image))
	toc := slices.Clone(image[l.TOC(0):l.TOC(l.NumTOC)])
	for i := range l.NumTOC {
		copy(image[l.TOC(l.NumTOC-1-i):], toc[i*mmvimage.TOCSize:(i+1)*mmvimage.TOCSize])
	}
	slices.Reverse(want.TOC)
	if diff := cmp.Diff(want, viewOf(parse(t, image))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSpare is what a file may have that means nothing.
func TestSpare(t *testing.T) {
	base := viewOf(parse(t, sample(1).Build()))
	l := sample(1).Layout()
	for _, tt := range []struct {
		name string
		f    func([]byte) []byte
	}{
		{"bytes behind the last section", func(b []byte) []byte { return append(b, 1, 2, 3) }},
		{"an indom field of an instance", func(b []byte) []byte {
			mmvimage.PutU64(b, l.Instance(0)+mmvimage.InstInDom, ^uint64(0))
			return b
		}},
		{"padding of an instance", func(b []byte) []byte { mmvimage.PutU32(b, l.Instance(0)+mmvimage.InstPadding, 77); return b }},
		{"padding of a metric", func(b []byte) []byte {
			mmvimage.PutU32(b, l.MetricFields(0)+mmvimage.MetricPadding, 77)
			return b
		}},
		{"text behind the NUL of a name", func(b []byte) []byte { copy(b[l.Metric(0)+40:], "left over"); return b }},
		{"text behind the NUL of a string", func(b []byte) []byte { copy(b[l.String(0)+40:], "left over"); return b }},
		{"an instance of a singular metric", func(b []byte) []byte {
			mmvimage.PutU64(b, l.Value(3)+mmvimage.ValueInst, 12345)
			return b
		}},
		{"the extra of a value", func(b []byte) []byte { mmvimage.PutU64(b, l.Value(0)+mmvimage.ValueExtra, ^uint64(0)); return b }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			image := tt.f(sample(1).Build())
			want := base
			want.Size = uint64(len(image))
			if diff := cmp.Diff(want, viewOf(parse(t, image))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestEmptySections may lie anywhere.
func TestEmptySections(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		img := mmvimage.New(version)
		b, l := img.Build(), img.Layout()
		for _, off := range []uint64{0, 1, l.Size, l.Size + 1, ^uint64(0)} {
			mmvimage.PutU64(b, l.Section(mmvimage.SecMetrics)+mmvimage.TOCOffset, off)
			mmvimage.PutU64(b, l.Section(mmvimage.SecValues)+mmvimage.TOCOffset, off)
			if c := parse(t, b); len(c.Metrics) != 0 || c.RemarkCount != 0 {
				t.Errorf("v%d, offset %d: %d metrics, %d remarks", version, off, len(c.Metrics), c.RemarkCount)
			}
		}
	}
}

// TestTexts cuts what has no NUL, and keeps what several share once.
func TestTexts(t *testing.T) {
	long := strings.Repeat("x", 300)
	img := mmvimage.New(2).Metric(mmvimage.Metric{Name: long, Short: "short", Help: long, Values: mmvimage.NoValues()})
	b, l := img.Build(), img.Layout()
	mmvimage.PutU64(b, l.MetricFields(0)+mmvimage.MetricHelp, l.String(0)+10) // in the middle, runs into the next
	v := viewOf(parse(t, b))
	if got := v.Metrics[0].Name; got != long[:255] {
		t.Errorf("a string without a NUL has %d bytes, want 255", len(got))
	}
	if got, want := v.Metrics[0].Help, long[:246]+"short"; got != want {
		t.Errorf("a string in the middle of another is %q, want %q", got, want)
	}

	for _, n := range []int{62, 63, 64} { // names in version 1 records
		img := mmvimage.New(1).InDom(1, "", "", mmvimage.Inst{ID: 4, Name: long[:n]}).
			Metric(mmvimage.Metric{Name: long[:n], InDom: 1})
		v := viewOf(parse(t, img.Build()))
		want := long[:min(n, 63)]
		if v.Metrics[0].Name != want || v.InDoms[0].Instances[0].Name != want {
			t.Errorf("names of %d bytes: %q and %q", n, v.Metrics[0].Name, v.InDoms[0].Instances[0].Name)
		}
	}

	img3 := mmvimage.New(3).Label(mmvimage.LabelItem, 1, -1, long)
	if got := viewOf(parse(t, img3.Build())).Labels[0].Payload; got != long[:243] {
		t.Errorf("a label without a NUL has %d bytes, want 243", len(got))
	}

	// the last string ends with the file: with a NUL it counts, without it does not
	img = mmvimage.New(2).Metric(mmvimage.Metric{Name: "m", Values: mmvimage.NoValues()})
	b = append(img.Build(), "end"...)
	mmvimage.PutU64(b, img.Layout().MetricFields(0)+mmvimage.MetricShort, img.Layout().Size)
	if c := parse(t, b); c.RemarkCount != 1 || !errors.Is(c.Remarks[0], reader.ErrBounds) {
		t.Errorf("a string that runs out of the file: %v", c.Remarks)
	}
	if c := parse(t, append(b, 0)); string(c.Text(c.Metrics[0].Short)) != "end" {
		t.Errorf("a string at the end of the file is %q, want end", c.Text(c.Metrics[0].Short))
	}
}

// TestText tells no text from an empty one.
func TestText(t *testing.T) {
	img := mmvimage.New(2).Metric(mmvimage.Metric{Name: "", Values: mmvimage.NoValues()})
	c := parse(t, img.Build())
	m := &c.Metrics[0]
	if m.Name == 0 || c.Text(m.Name) == nil || len(c.Text(m.Name)) != 0 {
		t.Errorf("an empty name is Text %d, %q", m.Name, c.Text(m.Name))
	}
	if m.Help != 0 || c.Text(m.Help) != nil {
		t.Errorf("no help is Text %d, %q", m.Help, c.Text(m.Help))
	}
}

// TestValues brings values into the order of their indom, one each.
func TestValues(t *testing.T) {
	insts := []mmvimage.Inst{{ID: 7, Name: "a"}, {ID: 3, Name: "b"}, {ID: 5, Name: "c"}}
	three := []mmvimage.Value{mmvimage.Int(0), mmvimage.Int(1), mmvimage.Int(2)}
	img := mmvimage.New(1).InDom(1, "", "", insts...).
		Metric(mmvimage.Metric{Name: "m", InDom: 1, Values: three}).
		Metric(mmvimage.Metric{Name: "n", InDom: 1, Values: []mmvimage.Value{mmvimage.None(), mmvimage.Int(1)}}).
		Metric(mmvimage.Metric{Name: "o", Values: mmvimage.NoValues()}).
		Metric(mmvimage.Metric{Name: "p", Values: []mmvimage.Value{mmvimage.Int(1), mmvimage.Int(2)}})
	l := img.Layout()
	for _, tt := range []struct {
		name string
		inst [3]int   // instance of the first three values, counted in the file
		want []uint64 // metric m's values, by their index and in order
		rem  int
	}{
		{"in order", [3]int{0, 1, 2}, []uint64{0, 1, 2}, 1},
		{"backwards", [3]int{2, 1, 0}, []uint64{2, 1, 0}, 1},
		{"twisted", [3]int{1, 2, 0}, []uint64{2, 0, 1}, 1},
		{"one twice", [3]int{1, 0, 1}, []uint64{1, 0}, 2},
		{"all the same", [3]int{2, 2, 2}, []uint64{0}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := img.Build()
			for i, k := range tt.inst {
				mmvimage.PutU64(b, l.Value(i)+mmvimage.ValueInst, l.Instance(k))
			}
			c := parse(t, b)
			var want []reader.ValueRef
			for _, i := range tt.want {
				want = append(want, reader.ValueRef{Inst: insts[tt.inst[i]].ID, Off: uint32(l.Value(int(i)))})
			}
			if diff := cmp.Diff(want, valuesOf(c, 0)); diff != "" {
				t.Errorf("m: (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff([]reader.ValueRef{{Inst: 3, Off: uint32(l.Value(3))}}, valuesOf(c, 1)); diff != "" {
				t.Errorf("n: (-want +got)\n%s", diff)
			}
			if got := valuesOf(c, 2); len(got) != 0 {
				t.Errorf("o has values: %v", got)
			}
			if diff := cmp.Diff([]reader.ValueRef{{Inst: -1, Off: uint32(l.Value(4))}}, valuesOf(c, 3)); diff != "" {
				t.Errorf("p: (-want +got)\n%s", diff) // the first of two counts
			}
			if c.RemarkCount != tt.rem {
				t.Errorf("%d remarks, want %d: %v", c.RemarkCount, tt.rem, c.Remarks)
			}
		})
	}
}

// TestSameInstanceTwice keeps the first of two instances with one id, and of
// their values.
func TestSameInstanceTwice(t *testing.T) {
	img := mmvimage.New(2).InDom(1, "", "", mmvimage.Inst{ID: 4, Name: "a"}, mmvimage.Inst{ID: 2, Name: "b"}, mmvimage.Inst{ID: 4, Name: "c"}).
		Metric(mmvimage.Metric{Name: "m", InDom: 1, Values: []mmvimage.Value{mmvimage.Int(0), mmvimage.Int(1), mmvimage.Int(2)}}).
		Metric(mmvimage.Metric{Name: "n", InDom: 1, Values: []mmvimage.Value{mmvimage.None(), mmvimage.None(), mmvimage.Int(2)}})
	l := img.Layout()
	v := viewOf(parse(t, img.Build()))
	if diff := cmp.Diff([]instanceView{{4, "a"}, {2, "b"}}, v.InDoms[0].Instances); diff != "" {
		t.Errorf("instances (-want +got)\n%s", diff)
	}
	want := []reader.ValueRef{{Inst: 4, Off: uint32(l.Value(0))}, {Inst: 2, Off: uint32(l.Value(1))}}
	if diff := cmp.Diff(want, v.Metrics[0].Values); diff != "" {
		t.Errorf("values (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]reader.ValueRef{{Inst: 4, Off: uint32(l.Value(3))}}, v.Metrics[1].Values); diff != "" {
		t.Errorf("values of n (-want +got)\n%s", diff)
	}
}

// TestInstanceLabels finds labels by indom and instance, in file order.
func TestInstanceLabels(t *testing.T) {
	img := mmvimage.New(3)
	add := func(serial uint32, inst int32, text string) {
		img.Label(mmvimage.LabelInstances, serial, inst, text)
	}
	add(9, 1, "d")
	add(5, 3, "b")
	add(5, -7, "a")
	img.Label(mmvimage.LabelInDom, 5, 3, "not an instance's")
	add(5, 3, "c")
	add(0xffffffff, 3, "e")
	c := parse(t, img.Build())
	for _, tt := range []struct {
		serial uint32
		inst   int32
		want   []string
	}{
		{5, -7, []string{"a"}},
		{5, 3, []string{"b", "c"}},
		{9, 1, []string{"d"}},
		{0xffffffff, 3, []string{"e"}},
		{5, 4, nil},
		{6, 3, nil},
	} {
		var got []string
		c.InstanceLabels(tt.serial, tt.inst, func(l *reader.Label) { got = append(got, string(c.Text(l.Payload))) })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("indom %d instance %d: (-want +got)\n%s", tt.serial, tt.inst, diff)
		}
	}
}

// TestEqual changes one thing at a time.
func TestEqual(t *testing.T) {
	a := parse(t, sample(3).Build())
	if !a.Equal(parse(t, sample(3).Build())) {
		t.Error("a catalog does not equal that of the same image")
	}
	l := sample(3).Layout()
	live := sample(3).Build()
	mmvimage.PutU64(live, l.Value(0), 999)
	if !a.Equal(parse(t, live)) {
		t.Error("a live value makes a difference")
	}
	for name, off := range map[string]uint64{
		"flags": mmvimage.HdrFlags, "pid": mmvimage.HdrPID, "cluster": mmvimage.HdrCluster,
		"serial": l.InDom(0), "id": l.Instance(0) + mmvimage.InstInternal, "item": l.MetricFields(0), "units": l.MetricFields(0) + mmvimage.MetricUnits,
		"text": l.String(0), "a label's text": l.Label(0) + mmvimage.LabelPayload, "a label's identity": l.Label(0) + mmvimage.LabelIdentity,
	} {
		b := sample(3).Build()
		mmvimage.PutU32(b, off, mmvimage.GetU32(b, off)^0x40)
		if a.Equal(parse(t, b)) {
			t.Errorf("%s: makes no difference", name)
		}
	}
	if a.Equal(parse(t, sample(3).Generation(1).Build())) {
		t.Error("the generation makes no difference")
	}
	if a.Equal(parse(t, append(sample(3).Build(), 0))) {
		t.Error("the size makes no difference")
	}
}

// TestRemarksAreCounted keeps a bounded number of them.
func TestRemarksAreCounted(t *testing.T) {
	img := mmvimage.New(1)
	for range 100 {
		img.Metric(mmvimage.Metric{Name: "m", InDom: 3, Values: mmvimage.NoValues()})
	}
	c := parse(t, img.Build())
	if c.RemarkCount != 100 || len(c.Remarks) != reader.MaxRemarks {
		t.Errorf("%d remarks, %d kept, want 100 and %d", c.RemarkCount, len(c.Remarks), reader.MaxRemarks)
	}
}

// TestErrorText names section, index, field, offset and numbers.
func TestErrorText(t *testing.T) {
	img := sample(1)
	b, l := img.Build(), img.Layout()
	mmvimage.PutU64(b, l.Value(2)+mmvimage.ValueMetric, 77)
	got := parse(t, b).Remarks[0].Error()
	want := fmt.Sprintf("value[2] metric at offset %d: not the offset of an entry: metric at 77", l.Value(2)+16)
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	_, err := reader.Parse(b[:20])
	if want := "header at offset 0: file ends before its header: 20 bytes of 40"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestUnfinished tells files that may become good from those that will not.
func TestUnfinished(t *testing.T) {
	good := sample(1).Build()
	for _, tt := range []struct {
		name  string
		image []byte
		want  bool
	}{
		{"empty", nil, true},
		{"three bytes of the tag", good[:3], true},
		{"39 bytes", good[:39], true},
		{"39 zero bytes", make([]byte, 39), true},
		{"zeros", make([]byte, 400), true},
		{"g2 zero", sample(1).Generations(5, 0).Build(), true},
		{"both zero", sample(1).Generations(0, 0).Build(), true},
		{"g1 ahead", sample(1).Generations(6, 5).Build(), true},
		{"another format", []byte("#!/bin/sh\n"), false},
		{"another format, long", []byte(strings.Repeat("#!/bin/sh\n", 10)), false},
		{"header only", good[:40], false},
		{"cut", good[:len(good)-1600], false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := reader.Parse(tt.image)
			if err == nil {
				t.Fatal("no error")
			}
			wantFormatError(t, err)
			if got := reader.Unfinished(err); got != tt.want {
				t.Errorf("Unfinished(%v) is %v", err, got)
			}
		})
	}
}

// TestEveryLength parses every prefix of an image: error or result, and no
// more than the prefix says.
func TestEveryLength(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		image := sample(version).Build()
		for n := range image {
			c, err := reader.Parse(image[:n:n])
			if (c == nil) == (err == nil) {
				t.Fatalf("v%d, %d bytes: catalog %v and error %v", version, n, c, err)
			}
			if c != nil {
				walk(t, c, n)
			}
		}
	}
}
