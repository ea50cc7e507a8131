package reader_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// seeds are the images that fuzzing starts from.
func seeds(f *testing.F) (out [][]byte) {
	f.Helper()
	files, err := filepath.Glob("testdata/hostile/*.mmv")
	check0(f, err)
	for _, name := range files {
		b, err := os.ReadFile(name)
		check0(f, err)
		out = append(out, b)
	}
	for version := int32(1); version <= 3; version++ {
		img := sample(version)
		b, l := img.Build(), img.Layout()
		out = append(out, b, sample(version).Gap(1).Build())
		for i := range l.NumTOC { // lengths and places that wrap
			for _, v := range []uint64{math.MaxUint64, math.MaxUint64 - 255, uint64(len(b)), math.MaxInt32} {
				c := bytes.Clone(b)
				mmvimage.PutU64(c, l.TOC(i)+mmvimage.TOCOffset, v)
				mmvimage.PutU32(c, l.TOC(i)+mmvimage.TOCCount, uint32(v))
				out = append(out, c)
			}
		}
	}
	return out
}

// FuzzParse wants an error or a Catalog that holds what any must, takes no more
// memory than its image, and is the same when the image is read in parts.
func FuzzParse(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b, uint32(0))
	}
	f.Add(sample(2).Build(), uint32(600))
	f.Fuzz(func(t *testing.T, b []byte, holes uint32) {
		c, err := reader.Parse(b)
		if (c == nil) == (err == nil) {
			t.Fatalf("catalog %v, error %v", c, err)
		}
		if c != nil {
			walk(t, c, len(b))
			if again, err := reader.Parse(b); err != nil || !c.Equal(again) {
				t.Fatalf("another result: %v", err)
			}
		} else {
			wantFormatError(t, err)
			if err.Error() == "" {
				t.Fatal("no text")
			}
		}
		wantSameInParts(t, b, c, err)
		filled := uint64(len(b)) - min(uint64(holes), uint64(len(b)))
		if c, _ = reader.ParseSparse(b, filled); c != nil && uint64(c.Memory()) > 3*filled+8192 {
			t.Fatalf("%d bytes for %d", c.Memory(), filled)
		}
	})
}

// wantSameInParts compares what Parse said of an image with what it says when
// that is read in parts.
func wantSameInParts(t *testing.T, b []byte, c *reader.Catalog, err error) {
	t.Helper()
	if len(b) < reader.HeaderSize {
		return // never is
	}
	got, err2 := reader.ParseParts(b)
	switch {
	case err != nil || err2 != nil:
		if err == nil || err2 == nil || err.Error() != err2.Error() {
			t.Fatalf("in parts: %v, else: %v", err2, err)
		}
	case !reader.SameNow(c, got):
		t.Fatal("another result in parts")
	}
}

// FuzzLive changes a file under a Dir as the input says, 4 bytes a step: what,
// where (2), and with what. Looks and loads go on meanwhile; a steady file
// beside it must have its values every time.
func FuzzLive(f *testing.F) {
	f.Add([]byte{0, 16, 0, 0, 1, 0, 0, 0, 0, 16, 0, 0x87, 1, 0, 0, 0})
	f.Add([]byte{2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0})
	f.Add([]byte{2, 100, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 255, 3, 0, 5, 0, 0, 0, 4, 0, 0, 0})
	f.Add([]byte{0, 47, 0, 255, 5, 0, 0, 0, 0, 130, 0, 255, 5, 0, 0, 0, 1, 0, 0, 0})
	image := sample(3).Build()
	steady := counter("s", 5, 100)
	top := "/dev/shm"
	if _, err := os.Stat(top); err != nil {
		top = f.TempDir()
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		dir, err := os.MkdirTemp(top, "reader-fuzz-") //nolint:usetesting // there
		check0(t, err)
		defer func() { check0(t, os.RemoveAll(dir)) }()
		put(t, dir, "steady", steady)
		path := filepath.Join(dir, "wild")
		check0(t, os.WriteFile(path, image, 0o644))
		m, err := mapShared(path)
		check0(t, err)
		defer func() { check0(t, unix.Munmap(m)) }()
		d, err := reader.Open(dir, reader.Options{})
		check0(t, err)
		defer d.Close()
		s := d.Look()
		size := len(image) // of the file now: storing beyond its end is a fault here, too
		for ; len(steps) >= 4; steps = steps[4:] {
			at := int(binary.LittleEndian.Uint16(steps[1:]))
			switch steps[0] % 6 {
			case 0: // store
				if at < size {
					m[at] = steps[3]
				}
			case 1:
				s = d.Look()
			case 2: // truncate, or make longer
				size = at % (len(image) + 1)
				check0(t, os.Truncate(path, int64(size)))
			case 3: // write all of it
				overwrite(t, path, image)
				size = len(image)
			case 4:
				d.Reap()
			case 5:
				s = d.Rescan()
			}
			loadBoth(t, d, s)
		}
	})
}

func loadBoth(t *testing.T, d *reader.Dir, s *reader.Snapshot) {
	d.Acquire()
	defer d.Release()
	for _, f := range s.Files {
		var v reader.Values
		ok := f.Load(wants(f.Catalog), &v)
		if len(v.End) != len(f.Catalog.Metrics) || v.End[len(v.End)-1] != len(v.Bits) || len(v.Insts) != len(v.Bits) {
			t.Fatalf("%s: %d ends, %d values", f.Name, len(v.End), len(v.Bits))
		}
		if f.Name != "steady" {
			continue
		}
		if !ok || len(v.Bits) != 5 {
			t.Fatalf("steady: %v", v)
		}
		for i, b := range v.Bits {
			if b != uint64(100+i) {
				t.Fatalf("steady value %d is %d", i, b)
			}
		}
	}
}
