package reader_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestKinds puts one of everything that can lie in a directory into one, and
// looks at it: no effect on it, and no waiting for it.
func TestKinds(t *testing.T) {
	good := counter("m", 1, 1).Build()
	write := func(b []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { check0(t, os.WriteFile(path, b, 0o644)) }
	}
	link := func(to string) func(*testing.T, string) {
		return func(t *testing.T, path string) { check0(t, os.Symlink(to, path)) }
	}
	for _, tt := range []struct {
		name string
		make func(*testing.T, string)
		want string // state, "" for nothing
		err  error
	}{
		{"good", write(good), "loaded", nil},
		{"empty", write(nil), "pending", reader.ErrTruncated},
		{"short", write(good[:20]), "pending", reader.ErrTruncated},
		{"zero", write(make([]byte, 500)), "pending", reader.ErrInFlux},
		{"flux", write(counter("m", 1, 1).Generations(3, 0).Build()), "pending", reader.ErrInFlux},
		{"text", write([]byte(strings.Repeat("text\n", 100))), "rejected", reader.ErrTag},
		{"version", write(mmvimage.New(4).Build()), "rejected", reader.ErrVersion},
		{"cut", write(good[:60]), "rejected", reader.ErrBounds},
		{"gone", write(counter("m", 1, 1).Flags(mmvimage.Process).PID(1 << 30).Build()), "dead", reader.ErrGone},
		{"negative", write(counter("m", 1, 1).Flags(mmvimage.Process).PID(-1).Build()), "rejected", reader.ErrRange},
		{".hidden", write(good), "", nil},
		{"directory", func(t *testing.T, path string) { check0(t, os.Mkdir(path, 0o755)) }, "", nil},
		{"fifo", func(t *testing.T, path string) { check0(t, unix.Mkfifo(path, 0o644)) }, "", nil},
		{"socket", func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			check0(t, err)
			t.Cleanup(func() { check0(t, l.Close()) })
		}, "", nil},
		{"to a device", link("/dev/ptmx"), "", nil},
		{"to a directory", link("/"), "", nil},
		{"to a fifo", func(t *testing.T, path string) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			check0(t, unix.Mkfifo(fifo, 0o644))
			check0(t, os.Symlink(fifo, path))
		}, "", nil},
		{"to nothing", link("nowhere"), "", nil},
		{"to itself", link("to itself"), "", nil},
		{"to proc", link("/proc/self/status"), "pending", reader.ErrTruncated}, // its size is 0: not read
		{"to a file", func(t *testing.T, path string) {
			to := filepath.Join(t.TempDir(), "elsewhere")
			check0(t, os.WriteFile(to, good, 0o644))
			check0(t, os.Symlink(to, path))
		}, "loaded", nil},
	} {
		onEach(t, func(t *testing.T, dir string) {
			t.Run(tt.name, func(t *testing.T) {
				path := filepath.Join(dir, tt.name)
				tt.make(t, path)
				for _, blind := range []bool{false, true} {
					w := watch(t, dir, reader.Options{NoInotify: blind})
					for range 3 {
						if tt.want == "" {
							w.look("")
							continue
						}
						w.look(tt.name + " " + tt.want)
						if tt.err != nil {
							if err := w.other(tt.name).Err; !errors.Is(err, tt.err) {
								t.Errorf("error %v, want %v", err, tt.err)
							}
						}
					}
					told := 0
					for _, r := range w.reports {
						if r.Name != "" {
							told++
						}
					}
					if (told == 1) != (tt.want != "") {
						t.Errorf("reports: %+v", w.reports)
					}
					w.Close()
				}
				if strings.Contains(tt.name, "fifo") { // still without a reader
					if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0); err != unix.ENXIO {
						t.Errorf("the FIFO was opened: %d, %v", fd, err)
					}
				}
				check0(t, os.RemoveAll(path))
			})
		})
	}
}

// steps are those of a writer that stores through a mapping, one after the
// other, with the state after each.
var steps = []struct {
	name string
	do   func(t *testing.T, path string, image []byte, m *[]byte)
	want string
}{
	{"create", func(t *testing.T, path string, _ []byte, _ *[]byte) { check0(t, os.WriteFile(path, nil, 0o644)) }, "a pending"},
	{"size", func(t *testing.T, path string, image []byte, m *[]byte) {
		check0(t, os.Truncate(path, int64(len(image))))
		*m = live(t, path)
	}, "a pending"},
	{"tag", func(_ *testing.T, _ string, image []byte, m *[]byte) { copy(*m, image[:8]) }, "a pending"},
	{"generation 1", func(_ *testing.T, _ string, image []byte, m *[]byte) { copy((*m)[8:], image[8:16]) }, "a pending"},
	{"header", func(_ *testing.T, _ string, image []byte, m *[]byte) { copy((*m)[24:], image[24:40]) }, "a pending"},
	{"the rest", func(_ *testing.T, _ string, image []byte, m *[]byte) { copy((*m)[40:], image[40:]) }, "a pending"},
	{"generation 2", func(_ *testing.T, _ string, image []byte, m *[]byte) { copy((*m)[16:], image[16:24]) }, "a loaded"},
	{"rewrite", func(_ *testing.T, _ string, _ []byte, m *[]byte) { mmvimage.PutU64(*m, mmvimage.HdrG2, 0) }, "a held, a pending"},
	{"again", func(_ *testing.T, _ string, image []byte, m *[]byte) { copy((*m)[16:], image[16:24]) }, "a loaded"},
	{"new generation", func(_ *testing.T, _ string, _ []byte, m *[]byte) {
		mmvimage.PutU64(*m, mmvimage.HdrG1, 99)
		mmvimage.PutU64(*m, mmvimage.HdrG2, 99)
	}, "a loaded"},
	{"delete", func(t *testing.T, path string, _ []byte, _ *[]byte) { check0(t, os.Remove(path)) }, ""},
}

// TestSteps looks after every step of a writer, and, in other runs, only after
// some of them. Stores are no file events, so this is what the mapped headers
// are for.
func TestSteps(t *testing.T) {
	image := counter("m", 3, 10).Build()
	onEach(t, func(t *testing.T, dir string) {
		for _, blind := range []bool{false, true} {
			for mask := range 1 << 7 { // which of the first seven to look after
				w := watch(t, dir, reader.Options{NoInotify: blind})
				w.look("")
				var m []byte
				for i, s := range steps {
					s.do(t, filepath.Join(dir, "a"), image, &m)
					if i >= 7 && mask != 0 {
						continue // those only once
					}
					if i >= 6 || mask>>i&1 != 0 {
						w.look(s.want)
					}
				}
				if got := w.Look(); mask != 0 && states(got) != "" {
					t.Fatalf("at the end: %s", states(got))
				}
				w.Close()
			}
		}
	})
}

// TestFirstLook is a Dir opened at every stage of a file.
func TestFirstLook(t *testing.T) {
	image := counter("m", 3, 10).Build()
	onEach(t, func(t *testing.T, dir string) {
		var m []byte
		for _, s := range steps {
			s.do(t, filepath.Join(dir, "a"), image, &m)
			w := watch(t, dir, reader.Options{})
			want := s.want
			if s.name == "rewrite" {
				want = "a pending" // not known from before
			}
			w.look(want)
			w.Close()
		}
	})
}
