package exporter_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"pmdammv/test/mmvimage"
)

// TestQuietBesideRestless: a file that is written anew again and again has its
// value whenever it is complete, also while others are in the middle of that.
func TestQuietBesideRestless(t *testing.T) {
	b := newBox(t)
	var stop atomic.Bool
	ended := make(chan error, 1)
	b.put("restless", one(1))
	b.start()
	go func() {
		var err error
		for n := int64(2); err == nil && !stop.Load(); n++ {
			err = rewrite(filepath.Join(b.dir, "restless"), one(n).Generation(uint64(n)))
		}
		ended <- err
	}()
	orders, done := make(chan int64), make(chan error)
	go func() {
		for n := range orders {
			done <- rewrite(filepath.Join(b.dir, "quiet"), one(n).Generation(uint64(n)))
		}
	}()
	defer close(orders)
	restless := b.pmid("mmv.restless.m")
	for n := range int64(1000) {
		orders <- n + 1
		for written := false; !written; { // the reply is made while it is written
			b.fetch(nil, restless)
			select {
			case err := <-done:
				must(t, err)
				written = true
			default:
			}
		}
		if set := &b.fetch(nil, b.pmid("mmv.quiet.m"), restless).Sets[0]; set.NumVal != 1 {
			t.Fatalf("round %d: %d values", n, set.NumVal)
		}
	}
	stop.Store(true)
	must(t, <-ended)
}

// rewrite writes a file in place, its second generation last.
func rewrite(path string, img *mmvimage.Image) error {
	image := img.Build()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // what matters is written
	begun := bytes.Clone(image)
	mmvimage.PutU64(begun, mmvimage.HdrG2, 0)
	if _, err := f.Write(begun); err != nil {
		return err
	}
	_, err = f.WriteAt(image[mmvimage.HdrG2:mmvimage.HdrG2+8], mmvimage.HdrG2)
	return err
}
