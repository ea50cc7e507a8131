package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestBegan: a file that a request sees with another layout than the one before
// has been looked at after the one before began, also while others look.
func TestBegan(t *testing.T) {
	dir := t.TempDir()
	var images [2][]byte
	for i := range images {
		img := mmvimage.New(1)
		for k := range uint32(200) {
			img.Metric(mmvimage.Metric{Name: fmt.Sprintf("m%d.%d", i, k), Item: k, Type: mmvimage.U64, InDom: -1, Values: []mmvimage.Value{mmvimage.Uint(1)}})
		}
		images[i] = img.Build()
	}
	path := filepath.Join(dir, "a")
	put := func(n int) {
		if err := os.WriteFile(path, images[n%2], 0o600); err != nil {
			t.Error(err)
		}
	}
	put(0)
	e, err := New(Options{Dir: dir, Domain: 70})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	repeat := func(f func(n int)) {
		wg.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
					f(n)
				}
			}
		})
	}
	repeat(put)
	for range 3 {
		repeat(func(int) { e.Refresh() })
	}
	s := e.Open().(*session) //nolint:forcetypeassert // it is
	a := func() *reader.File {
		if i := slices.IndexFunc(s.t.snap.Files, func(f *reader.File) bool { return f.Name == "a" }); i >= 0 {
			return s.t.snap.Files[i]
		}
		return nil
	}
	missed, changes := 0, 0
	for changes < 1000 {
		s.Begin()
		was, began := a(), s.began
		s.End()
		s.Begin()
		if a() != was {
			changes++
			if len(e.dir.LookedAt(began)) == 0 {
				missed++
			}
		}
		s.End()
		s.After()
	}
	close(stop)
	wg.Wait()
	s.Close()
	if missed > 0 {
		t.Errorf("%d of %d changes are not told", missed, changes)
	}
}
