package reader_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestMaxFiles takes the first files until there is room for more.
func TestMaxFiles(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		for _, n := range []string{"a", "b", "c", "d"} {
			put(t, dir, n, counter("m", 1, 1))
		}
		put(t, dir, "p", counter("m", 1, 1).Generations(1, 0))
		put(t, dir, "x", counter("m", 1, 1).Cluster(5000))
		w := watch(t, dir, reader.Options{MaxFiles: 2})
		const full = "a loaded, b loaded, c rejected, d rejected, p pending, x rejected"
		w.look(full)
		if err := w.other("c").Err; !errors.Is(err, reader.ErrTooMany) {
			t.Errorf("error %v", err)
		}
		put(t, dir, "a", counter("n", 1, 1)) // keeps its place
		w.look(full)
		if got := names(w.file("a")); got[0] != "n0" {
			t.Errorf("a is %v", got)
		}
		check0(t, os.Remove(filepath.Join(dir, "b")))
		w.look("a loaded, c loaded, d rejected, p pending, x rejected")
		put(t, dir, "b", counter("m", 1, 1)) // too late
		w.look("a loaded, b rejected, c loaded, d rejected, p pending, x rejected")
		put(t, dir, "c", counter("m", 1, 1).Cluster(5000)) // its place is free
		w.look("a loaded, b loaded, c rejected, d rejected, p pending, x rejected")
		put(t, dir, "c", counter("m", 1, 1))
		w.look(full)
	})
}

func TestMaxFileSize(t *testing.T) {
	dir := t.TempDir()
	small, large := counter("m", 1, 1), counter("m", 10, 1)
	put(t, dir, "a", small)
	put(t, dir, "b", large)
	w := watch(t, dir, reader.Options{MaxFileSize: int64(small.Layout().Size)})
	w.look("a loaded, b rejected")
	if err := w.other("b").Err; !errors.Is(err, reader.ErrTooBig) {
		t.Errorf("error %v", err)
	}
	put(t, dir, "a", large)
	put(t, dir, "b", small)
	w.look("a rejected, b loaded")
}

// cost is how much memory a look at the only file in the directory takes, and
// how much is left of it.
func cost(t *testing.T, dir string, opts reader.Options) (taken, kept uint64, s *reader.Snapshot) {
	t.Helper()
	w := watch(t, dir, opts)
	var before, after, later runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s = w.Look()
	runtime.ReadMemStats(&after)
	runtime.GC()
	runtime.ReadMemStats(&later)
	runtime.KeepAlive(s)
	return after.TotalAlloc - before.TotalAlloc, max(later.HeapAlloc, before.HeapAlloc) - before.HeapAlloc, s
}

// TestMemory looks at files that ask for much memory, or much time, with few
// bytes.
func TestMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
		err  error
	}{
		{"400,000 empty indoms", func(t *testing.T, path string) {
			img := mmvimage.New(1)
			for i := range 400000 {
				img.InDom(uint32(i), "", "")
			}
			check0(t, os.WriteFile(path, img.Build(), 0o644))
		}, "a loaded", nil},
		{"20 million instances in a hole", func(t *testing.T, path string) {
			const n = 20e6
			img := mmvimage.New(2).InDom(1, "", "", mmvimage.Inst{ID: 1, Name: "x"}).Metric(mmvimage.Metric{Name: "m", InDom: 1})
			b, l := img.Build(), img.Layout()
			end := uint64(len(b))
			mmvimage.PutU32(b, l.InDom(0)+mmvimage.InDomCount, n)
			mmvimage.PutU64(b, l.InDom(0)+mmvimage.InDomOffset, end)
			mmvimage.PutU32(b, l.Section(mmvimage.SecInstances)+mmvimage.TOCCount, n)
			mmvimage.PutU64(b, l.Section(mmvimage.SecInstances)+mmvimage.TOCOffset, end)
			check0(t, os.WriteFile(path, b, 0o644))
			check0(t, os.Truncate(path, int64(end)+n*24))
		}, "a rejected", reader.ErrCount},
		{"8 million metrics in a hole", sparse(mmvimage.SecMetrics, 8e6, 48), "a rejected", reader.ErrCount},
		{"8 million values in a hole", sparse(mmvimage.SecValues, 8e6, 32), "a rejected", reader.ErrCount},
		{"8 million indoms in a hole", sparse(mmvimage.SecInDoms, 8e6, 32), "a rejected", reader.ErrCount},
		{"a million labels in a hole", sparse(mmvimage.SecLabels, 1e6, 256), "a loaded", nil},
		{"a million strings in a hole", sparse(mmvimage.SecStrings, 1e6, 256), "a loaded", nil},
		{"8 million TOC entries in a hole", func(t *testing.T, path string) {
			b := mmvimage.New(1).Build()
			mmvimage.PutU32(b, mmvimage.HdrTOCs, 8e6)
			check0(t, os.WriteFile(path, b, 0o644))
			check0(t, os.Truncate(path, 40+8e6*16))
		}, "a rejected", reader.ErrCount},
		{"nothing but a hole", func(t *testing.T, path string) {
			check0(t, os.WriteFile(path, nil, 0o644))
			check0(t, os.Truncate(path, 200<<20))
		}, "a pending", reader.ErrInFlux},
		{"one string for all, from each of its bytes", func(t *testing.T, path string) {
			img := mmvimage.New(2)
			for range 5000 {
				img.Metric(mmvimage.Metric{Values: mmvimage.NoValues()})
			}
			b, l := img.Build(), img.Layout()
			for i := l.Strings; i < l.Size; i++ {
				b[i] = 'x'
			}
			for i := range 5000 {
				mmvimage.PutU64(b, l.Metric(i), l.Strings+uint64(i))
				mmvimage.PutU64(b, l.MetricFields(i)+mmvimage.MetricShort, l.Strings+5000+uint64(i))
				mmvimage.PutU64(b, l.MetricFields(i)+mmvimage.MetricHelp, l.Strings+10000+uint64(i))
			}
			check0(t, os.WriteFile(path, b[:l.Strings+16000], 0o644))
			mmvimage.PutU32(b, l.Section(mmvimage.SecStrings)+mmvimage.TOCCount, 60)
			check0(t, os.WriteFile(path, b[:l.Strings+16000], 0o644))
		}, "a rejected", reader.ErrSections},
		{"16,000 indoms with the same 20,000 instances", func(t *testing.T, path string) {
			img := mmvimage.New(2)
			insts := make([]mmvimage.Inst, 20000)
			for i := range insts {
				insts[i] = mmvimage.Inst{ID: int32(i), Name: "x"}
			}
			img.InDom(0, "", "", insts...)
			for i := range 16000 {
				img.InDom(uint32(i+1), "", "")
			}
			b, l := img.Build(), img.Layout()
			for i := range 16001 {
				mmvimage.PutU32(b, l.InDom(i)+mmvimage.InDomCount, 20000)
				mmvimage.PutU64(b, l.InDom(i)+mmvimage.InDomOffset, l.Instances)
			}
			check0(t, os.WriteFile(path, b, 0o644))
		}, "a rejected", reader.ErrCount},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, dir string) {
				path := filepath.Join(dir, "a")
				tt.make(t, path)
				var st unix.Stat_t
				check0(t, unix.Stat(path, &st))
				taken, kept, s := cost(t, dir, reader.Options{MaxFileSize: 1 << 30})
				if got := states(s); got != tt.want {
					t.Errorf("%s, want %s: %v", got, tt.want, s.Others)
				}
				if tt.err != nil && !errors.Is(s.Others[0].Err, tt.err) {
					t.Errorf("error %v, want %v", s.Others[0].Err, tt.err)
				}
				// garbage included; the image itself may be read into 1 MiB
				if limit := uint64(st.Blocks*512)*6 + 2<<20; taken > limit {
					t.Errorf("%d bytes taken for a file that takes %d", taken, st.Blocks*512)
				}
				if limit := uint64(st.Blocks*512)*2 + 2<<20; kept > limit {
					t.Errorf("%d bytes kept for a file that takes %d", kept, st.Blocks*512)
				}
				t.Logf("%d bytes on disk, %d taken, %d kept", st.Blocks*512, taken, kept)
			})
		})
	}
}

// sparse makes a file with a section of n entries that lies in a hole.
func sparse(section uint32, n, elem uint64) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		img := mmvimage.New(3).InDom(1, "", "", mmvimage.Inst{ID: 1, Name: "x"}).
			Metric(mmvimage.Metric{Name: "m", InDom: 1}).Label(mmvimage.LabelItem, 1, -1, "{}")
		b, l := img.Build(), img.Layout()
		mmvimage.PutU32(b, l.Section(section)+mmvimage.TOCCount, uint32(n))
		mmvimage.PutU64(b, l.Section(section)+mmvimage.TOCOffset, l.Size)
		check0(t, os.WriteFile(path, b, 0o644))
		check0(t, os.Truncate(path, int64(l.Size+n*elem)))
	}
}

// TestMaxMappings leaves some to the rest of the process.
func TestMaxMappings(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a", "b", "c"} {
		put(t, dir, n, counter("m", 1, 1))
	}
	put(t, dir, "d", counter("m", 1, 1).Generations(1, 0))
	w := watch(t, dir, reader.Options{})
	w.SetMaxMappings(4) // two each: a file's, and its header to be compared
	for range 3 {
		w.look("a loaded, b loaded, c pending, d pending")
	}
	if err := w.other("c").Err; !errors.Is(err, unix.ENOMEM) {
		t.Errorf("error %v", err)
	}
	put(t, dir, "d", counter("m", 1, 1))
	w.look("a loaded, b loaded, c pending, d pending")
	put(t, dir, "b", counter("n", 1, 1)) // no room for both of its mappings at once
	w.look("a loaded, b held, b pending, c pending, d pending")
	w.Reap()
	w.look("a loaded, b loaded, c pending, d pending")
	check0(t, os.Remove(filepath.Join(dir, "a")))
	w.Look()
	w.Reap()
	w.look("b loaded, c loaded, d pending")
}

// TestDescriptors runs out of them. What is loaded stays; what changes is
// held until there are some again.
func TestDescriptors(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		for _, n := range []string{"a", "b"} {
			put(t, dir, n, counter("m", 1, 1))
		}
		w := watch(t, dir, reader.Options{})
		first := w.look("a loaded, b loaded")
		var old unix.Rlimit
		check0(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
		limit := func(n uint64) { check0(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: old.Max})) }
		t.Cleanup(func() { limit(old.Cur) })

		limit(0) // those that are open stay
		if got := w.Look(); got != first {
			t.Errorf("another Snapshot: %s", states(got))
		}
		limit(old.Cur)
		put(t, dir, "b", counter("n", 1, 1))
		put(t, dir, "c", counter("n", 1, 1))
		limit(0)
		for range 3 {
			s := w.Look()
			if got := states(s); got != "a loaded, b held, b pending, c pending" {
				t.Errorf("without descriptors: %s", got)
			}
			for _, e := range s.Others {
				if !errors.Is(e.Err, unix.EMFILE) {
					t.Errorf("%s: error %v", e.Name, e.Err)
				}
			}
		}
		s := w.Rescan() // cannot list the directory: what there is stays
		if len(s.Files) != 2 || !errors.Is(s.Err, unix.EMFILE) {
			t.Errorf("without descriptors: %s, %v", states(s), s.Err)
		}
		all(t, s.Files[0])
		limit(old.Cur)
		if s := w.look("a loaded, b loaded, c loaded"); s.Err != nil {
			t.Error(s.Err)
		}
	})
}

// TestSpareDescriptors watches more processes than it may have pidfds for.
func TestSpareDescriptors(t *testing.T) {
	dir := t.TempDir()
	var old unix.Rlimit
	check0(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	limit := func(n uint64) { check0(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: old.Max})) }
	t.Cleanup(func() { limit(old.Cur) })
	kids := make([]*child, 5)
	for i := range kids {
		kids[i] = start(t, "wait", nil)
		put(t, dir, fmt.Sprintf("f%d", i), of(kids[i].pid()))
	}
	limit(64 + 2) // at most two pidfds
	w := watch(t, dir, reader.Options{})
	limit(old.Cur)
	before := len(descriptors(t))
	w.look("f0 loaded, f1 loaded, f2 loaded, f3 loaded, f4 loaded")
	if n := len(descriptors(t)) - before; n != 2 {
		t.Errorf("%d pidfds, want 2", n)
	}
	for _, c := range kids {
		c.kill()
	}
	eventually(t, "the end of all", func() bool { return len(w.Look().Files) == 0 })
}
