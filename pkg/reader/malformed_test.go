package reader_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// field is one field of an image, and the rule of what follows when it holds v.
type field struct {
	name  string
	off   uint64
	width int
	rule  func(v uint64) outcome
}

// outcome is what Parse must make of an image in which one field was changed:
// a fatal error, or the view of the image as it was, edited.
type outcome struct {
	fatal *remark
	edit  func(*view)
	loose bool // the field now leads into the middle of other data: anything consistent
}

func fatal(s reader.Section, index int, name string, off uint64, err error) outcome {
	return outcome{fatal: &remark{s, index, name, off, err}}
}

func edit(f func(*view)) outcome { return outcome{edit: f} }

var (
	same  = edit(func(*view) {})
	loose = outcome{loose: true}
)

// values32 and values64 are what every field is set to: limits, off by one,
// the ends of the file, and what wraps when something is added.
func values32(old uint32, size uint64) []uint64 {
	out := make([]uint64, 0, 17)
	for _, v := range []uint32{
		0, 1, 2, 3, 7, 99, old - 1, old + 1, uint32(size), math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32, math.MaxUint32 - 1,
		1 << 24, (1 << 32) / mmvimage.ValueSize, 4095, 4096,
	} {
		out = append(out, uint64(v))
	}
	return out
}

func values64(old, size uint64) []uint64 {
	return []uint64{
		0, 1, 39, 40, old - 1, old + 1, old + 8, size - 256, size - 1, size, size + 1, math.MaxInt32, math.MaxUint32, 1<<32 + old,
		math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64, math.MaxUint64 - 31, math.MaxUint64 - 255,
	}
}

// TestMalformed sets every field of well-formed images to each of those
// values. The expected outcome of each follows from the field's rule.
func TestMalformed(t *testing.T) {
	n := 0
	for version := int32(1); version <= 3; version++ {
		img := sample(version)
		l := img.Layout()
		g := &rules{version: version, l: l, image: img.Build(), base: sampleView(version)}
		for _, f := range g.fields() {
			old := mmvimage.GetU64(append(bytes.Clone(g.image), make([]byte, 8)...), f.off)
			vals := values64(old, l.Size)
			if f.width == 4 {
				old = uint64(mmvimage.GetU32(g.image, f.off))
				vals = values32(uint32(old), l.Size)
			}
			done := map[uint64]bool{old: true}
			for _, v := range vals {
				if done[v] {
					continue
				}
				done[v] = true
				n++
				b := bytes.Clone(g.image)
				if f.width == 4 {
					mmvimage.PutU32(b, f.off, uint32(v))
				} else {
					mmvimage.PutU64(b, f.off, v)
				}
				name := fmt.Sprintf("v%d %s = %#x", version, f.name, v)
				if msg := check(t, b, f.rule(v), sampleView(version)); msg != "" {
					t.Errorf("%s: %s", name, msg)
				}
			}
		}
	}
	t.Logf("%d images", n)
	if n < 200 {
		t.Errorf("only %d images", n)
	}
}

func check(t *testing.T, image []byte, want outcome, base view) string {
	c, err := reader.Parse(image)
	if (c == nil) == (err == nil) {
		return fmt.Sprintf("catalog %v and error %v", c, err)
	}
	if c != nil {
		walk(t, c, len(image))
	}
	switch {
	case want.loose:
		return ""
	case want.fatal != nil && err == nil:
		return fmt.Sprintf("no error, want %+v", *want.fatal)
	case want.fatal != nil:
		return cmp.Diff(*want.fatal, remarkOf(formatError(t, err)), sentinels)
	case err != nil:
		return err.Error()
	}
	want.edit(&base)
	return cmp.Diff(base, viewOf(c), sentinels)
}

var sentinels = cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })

// TestNegativeProcess: a negative pid makes no sense where the pid counts.
func TestNegativeProcess(t *testing.T) {
	for _, pid := range []int32{-1, -4321, math.MinInt32} {
		_, err := reader.Parse(sample(1).Flags(mmvimage.Process).PID(pid).Build())
		want := remark{reader.SectionHeader, -1, "pid", mmvimage.HdrPID, reader.ErrRange}
		if diff := cmp.Diff(want, remarkOf(formatError(t, err)), sentinels); diff != "" {
			t.Errorf("pid %d: (-want +got)\n%s", pid, diff)
		}
	}
}
