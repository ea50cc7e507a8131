package image_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pmdammv/cmd/pmdammv/internal/image"
	img "pmdammv/test/mmvimage"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("file"), []byte("some bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("file", path("link")), syscall.Mkfifo(path("fifo"), 0o600), os.Symlink("fifo", path("link2"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"file": nil, "link": nil, "fifo": image.ErrNotRegular, "link2": image.ErrNotRegular, ".": image.ErrNotRegular, "nix": fs.ErrNotExist,
	} {
		b, err := image.Read(path(name), 100)
		if !errors.Is(err, want) || err == nil && string(b) != "some bytes" {
			t.Errorf("%s: %q, %v, want %v", name, b, err, want)
		}
	}
	if _, err := image.Read(path("file"), 9); !errors.Is(err, image.ErrTooBig) {
		t.Errorf("%v", err)
	}
	if _, err := image.Read("/dev/null", 100); !errors.Is(err, image.ErrNotRegular) {
		t.Errorf("%v", err)
	}
}

// TestOrder: the byte order is told by the version, or by the number of TOC
// entries where only the version is wrong.
func TestOrder(t *testing.T) {
	b := img.New(2).Cluster(5).Metric(img.Metric{Name: "m", Item: 1}).Build()
	if m := image.New(b); m.Other || m.Header.Version != 2 || m.Header.Cluster != 5 || len(m.TOC()) != 3 {
		t.Errorf("%+v", m.Header)
	}
	img.PutU32(b, img.HdrVersion, 2<<24)
	if m := image.New(b); !m.Other || m.Header.Version != 2 || m.Header.Cluster != 5 || len(m.TOC()) != 3 {
		t.Errorf("only the version: %+v", m.Header)
	}
}

func TestGuess(t *testing.T) {
	for data, want := range map[string]string{"\x1f\x8b\x08": "gzip data: unpack it first", "#!/bin/sh": "a script", "MMV": "", "": ""} {
		if got := image.Guess([]byte(data)); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}
