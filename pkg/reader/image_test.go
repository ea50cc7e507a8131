package reader

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestImage reads files in all kinds of steps, one file after the other with the
// same windows: whatever the order, what is there must come, zeros where the file
// has become shorter, and nothing of the file before.
func TestImage(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "f")
	var r imageReader
	for range 300 {
		size := 1 + rnd.IntN(4*windowSize)
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(1 + rnd.IntN(255))
		}
		there := size // and no longer than it was when its size was asked for
		if rnd.IntN(4) == 0 {
			there = rnd.IntN(size)
		}
		if err := os.WriteFile(path, want[:there], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.open(int(f.Fd()), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		if m.data != nil {
			if !bytes.Equal(m.data, want[:there]) {
				t.Fatalf("size %d, %d there: read %d bytes", size, there, len(m.data))
			}
			size = there
		}
		clear(want[there:])
		off := 0
		for range 200 {
			if size == 0 {
				break
			}
			if rnd.IntN(5) == 0 || off >= size {
				off = rnd.IntN(size)
			}
			n := 1 + rnd.IntN(min(leastWindow, size-off))
			ahead := 0
			if rnd.IntN(2) == 0 {
				ahead = rnd.IntN(size - off + 1)
			}
			got := m.at(stream(rnd.IntN(int(streams))), uint64(off), uint64(n), uint64(ahead))
			if len(got) < n || !bytes.Equal(got, want[off:off+len(got)]) {
				t.Fatalf("size %d, %d there, %d from %d: read %d others", size, there, n, off, len(got))
			}
			off += n
		}
		if m.err != nil {
			t.Fatal(m.err)
		}
		_ = f.Close()
	}
}

// TestEntriesStay: what was asked for of entries and instances stays as it is
// while strings are read.
func TestEntriesStay(t *testing.T) {
	data := make([]byte, 8*windowSize)
	for i := range data {
		data[i] = byte(i / leastWindow)
	}
	var windows [streams]window
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		m := image{size: uint64(len(data)), src: memory(data), windows: &windows}
		forget(&windows)
		off := uint64(rnd.IntN(len(data) - leastWindow))
		got := m.at(stream(rnd.IntN(int(atStrings))), off, leastWindow, 0)
		for range 5 {
			m.at(atStrings, uint64(rnd.IntN(len(data)-leastWindow)), leastWindow, 0)
		}
		if !bytes.Equal(got, data[off:int(off)+len(got)]) {
			t.Fatalf("those at %d have changed", off)
		}
	}
}

// TestReadError: a file that cannot be read is not taken for one that is wrong.
func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	good := make([]byte, HeaderSize)
	copy(good, Tag)
	native.PutUint32(good[offVersion:], 1)
	native.PutUint64(good[offGeneration1:], 1)
	native.PutUint64(good[offGeneration2:], 1)
	native.PutUint32(good[offTOCCount:], 2)
	p := &parser{image: image{data: good, size: 1 << 20}, c: &Catalog{}}
	if err := p.header(); err != nil {
		t.Fatal(err)
	}
	p.image = image{size: 1 << 20, src: unreadable{broken}, windows: &[streams]window{}}
	if _, err := p.parse(p.size, &scratch{}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type unreadable struct{ err error }

func (u unreadable) readAt([]byte, uint64) (int, error) { return 0, u.err }
func (u unreadable) readAll() ([]byte, error)           { return nil, u.err }
