package reader

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestReadAround reads files of which a part is left out, one after the other:
// nothing of one may show in the next.
func TestReadAround(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "f")
	var r imageReader
	defer r.drop()
	for range 2000 {
		size := rnd.IntN(10 * ValueSize)
		start := rnd.IntN(size + 1)
		count := rnd.IntN((size-start)/ValueSize + 1)
		if count == 0 {
			continue
		}
		if rnd.IntN(20) == 0 {
			r.release()
		}
		want := bytes.Repeat([]byte{byte(1 + rnd.IntN(255))}, size)
		shorter := want[:rnd.IntN(size+1)] // than it was when its size was asked for
		if rnd.IntN(4) > 0 {
			shorter = want
		}
		if err := os.WriteFile(path, shorter, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := r.read(int(f.Fd()), int64(size), 1, TOCEntry{Section: SectionValues, Count: int32(count), Offset: uint64(start)})
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		clear(want[start : start+count*ValueSize])
		clear(want[len(shorter):])
		if !bytes.Equal(got, want) {
			t.Fatalf("size %d, %d values at %d: read %x", size, count, start, got)
		}
	}
}
