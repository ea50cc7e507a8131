package exporter_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// asNobody does something with the rights of a user that has none.
func asNobody(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(65534); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := unix.SetfsuidRetUid(0); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// endedPID is that of a process that has ended.
func endedPID(t testing.TB) int32 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return int32(cmd.Process.Pid)
}

// TestStatuses: why do I not see my metrics? Every state and every reason.
func TestStatuses(t *testing.T) {
	patched := func(img *mmvimage.Image, patch func([]byte, mmvimage.Layout)) []byte {
		b := img.Build()
		patch(b, img.Layout())
		return b
	}
	good := func() *mmvimage.Image { return one(5) }
	gone := endedPID(t)
	tests := []struct {
		name   string
		image  []byte
		opts   func(*exporter.Options)
		status string // "…" stands for anything
		state  string // counted in this control metric
		level  string // of the event
		names  int    // exported all the same
	}{
		{name: "loaded", image: good().Build(), names: 1, state: "files", level: "i"},
		{name: "empty", image: []byte{}, status: "pending: …", state: "pending", level: "i"},
		{name: "short", image: good().Build()[:39], status: "pending: …ends before its header…", state: "pending", level: "i"},
		{name: "sized only", image: make([]byte, 4096), status: "pending: …generation in flux…", state: "pending", level: "i"},
		{name: "not finished", image: good().Generations(7, 0).Build(), status: "pending: …generation in flux: g1=7 g2=0", state: "pending", level: "i"},
		{name: "being rewritten", image: good().Generations(8, 7).Build(), status: "pending: …generation in flux: g1=8 g2=7", state: "pending", level: "i"},
		{name: "not such a file", image: []byte(strings.Repeat("text ", 20)), status: "rejected: …not an MMV file", state: "rejected", level: "w"},
		{name: "version", image: mmvimage.New(4).Metric(metric("m", 1, 1)).Build(), status: "rejected: …unknown version: 4", state: "rejected", level: "w"},
		{name: "no sections", image: patched(good(), func(b []byte, _ mmvimage.Layout) { mmvimage.PutU32(b, mmvimage.HdrTOCs, 0) }), status: "rejected: header toc count at offset 24: bad count…", state: "rejected", level: "w"},
		{name: "cluster", image: good().Cluster(4096).Build(), status: "rejected: header cluster at offset 36: out of range: 4096…", state: "rejected", level: "w"},
		{name: "section outside", image: patched(good(), func(b []byte, l mmvimage.Layout) {
			mmvimage.PutU64(b, l.Section(mmvimage.SecMetrics)+mmvimage.TOCOffset, 1<<40)
		}), status: "rejected: …outside the file…", state: "rejected", level: "w"},
		{name: "process gone", image: good().Flags(mmvimage.Process).PID(gone).Build(), status: "process …gone", level: "i"},
		{name: "negative pid", image: good().Flags(mmvimage.Process).PID(-1).Build(), status: "rejected: header pid at offset 32: out of range: -1", state: "rejected", level: "w"},
		{
			name: "process that does not map it", image: good().Flags(mmvimage.Process).PID(int32(os.Getppid())).Build(),
			status: "loaded: process …does not map it", names: 1, state: "files", level: "w",
		},
		{name: "no check of the process", image: good().Flags(mmvimage.Process).PID(0).Build(), names: 1, state: "files", level: "i"},
		{
			name: "too large", image: append(good().Build(), make([]byte, 4096)...), opts: func(o *exporter.Options) { o.Reader.MaxFileSize = 4096 },
			status: "rejected: too big: … bytes, at most 4096 are taken", state: "rejected", level: "w",
		},
		{
			name: "too many", image: good().Build(), opts: func(o *exporter.Options) { o.Reader.MaxFiles = 1 },
			status: "rejected: too many files: at most 1 are mapped", state: "rejected", level: "w",
		},
		{name: "item", image: good().Metric(metric("n", 1024, 1)).Build(), status: "loaded, 1 metric not exported: metric[1] n: item does not fit a PMID: 1024", names: 1, state: "files", level: "w"},
		{name: "item twice", image: good().Metric(metric("n", 1, 1)).Build(), status: "loaded, 1 metric not exported: metric[1] n: item occurs twice: 1", names: 1, state: "files", level: "w"},
		{name: "type", image: good().Metric(mmvimage.Metric{Name: "n", Item: 2, Type: 7}).Build(), status: "loaded, 1 metric not exported: metric[1] n: unknown type: 7", names: 1, state: "files", level: "w"},
		{name: "name outside", image: patched(mmvimage.New(2).Metric(metric("m", 1, 1)).Metric(metric("n", 2, 1)), func(b []byte, l mmvimage.Layout) {
			mmvimage.PutU64(b, l.Metric(1), 1<<40)
		}), status: "loaded, 1 metric not exported: metric[1] : no name; 1 entry of it not used; metric[1] name at offset …", names: 1, state: "files", level: "w"},
		{name: "value of nothing", image: patched(good().Metric(metric("n", 2, 1)), func(b []byte, l mmvimage.Layout) {
			mmvimage.PutU64(b, l.Value(1)+mmvimage.ValueMetric, 3)
		}), status: "loaded: 1 entry of it not used; value[1] metric at offset …", names: 2, state: "files", level: "w"},
		{name: "no indom", image: good().Metric(many("n", 2, 9, 1)).Build(), status: "loaded: 1 entry of it not used; metric[1] indom at offset …: not the offset of an entry: no indom has the serial 9", names: 2, state: "files", level: "w"},
		{name: "instance without a name", image: good().InDom(1, "", "", insts("0:a", "1:")...).Metric(many("n", 2, 1, 1, 1)).Build(), status: "loaded: 1 entry of it not used; instance[1] name at offset …: no name: …", names: 2, state: "files", level: "w"},
		{name: "no values", image: mmvimage.New(1).Metric(many("m", 1, 0)).Build(), names: 1, state: "files", level: "i"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			if tt.opts != nil {
				tt.opts(&b.opts)
			}
			if tt.name == "too many" {
				b.put("a", one(1))
			}
			b.start()
			b.look()
			b.told()
			b.write("f", tt.image)
			names := 0
			for _, n := range b.names() {
				if strings.HasPrefix(n, "mmv.f.") {
					names++
				}
			}
			equal(t, "names", names, tt.names)
			got := b.statuses()["f"]
			if !like(got, tt.status) {
				t.Errorf("status %q, want %q", got, tt.status)
			}
			if tt.state != "" {
				if n := b.values("mmv.control." + tt.state); n != "1" {
					t.Errorf("%s: %s", tt.state, n)
				}
			}
			want := tt.status
			if want == "" {
				want = "loaded"
			}
			if told := b.told(); len(told) != 1 || !like(told[0], tt.level+" f: "+want) {
				t.Errorf("told %q, want %q", told, want)
			}
			for range 3 {
				b.look()
			}
			if told := b.told(); len(told) != 0 {
				t.Errorf("told again: %q", told)
			}
			if tt.name == "too many" {
				b.remove("a")
			} else {
				b.put("f", one(6))
			}
			if v := b.values("mmv.f.m"); v != "5" && v != "6" {
				t.Errorf("when it is good: %s", v)
			}
			if st := b.statuses(); len(st) != 0 {
				t.Errorf("when it is good: %q", st)
			}
		})
	}
}

// like compares text with a pattern in which "…" stands for anything.
func like(got, want string) bool {
	parts := strings.Split(want, "…")
	if !strings.HasPrefix(got, parts[0]) {
		return false
	}
	got = got[len(parts[0]):]
	for i, p := range parts[1:] {
		n := strings.Index(got, p)
		if i == len(parts)-2 && p != "" {
			n = strings.LastIndex(got, p)
		}
		if n < 0 {
			return false
		}
		got = got[n+len(p):]
	}
	return got == "" || strings.HasSuffix(want, "…")
}

func TestUnreadable(t *testing.T) {
	b := newBox(t)
	b.put("f", one(1))
	must(t, os.Chmod(filepath.Join(b.dir, "f"), 0))
	for dir := b.dir; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755)) //nolint:gosec // a test's
	}
	asNobody(t, func() {
		b.start()
		equal(t, "status", b.statuses()["f"], "rejected: open: permission denied")
	})
	must(t, os.Chmod(filepath.Join(b.dir, "f"), 0o644)) //nolint:gosec // now it may be read
	asNobody(t, func() {
		equal(t, "value", b.values("mmv.f.m"), "1")
		equal(t, "problems", len(b.statuses()), 0)
	})
	b.stop()
}

// A directory that is not there, or goes, is told; also that it is back.
func TestDirectory(t *testing.T) {
	b := newBox(t)
	must(t, os.Remove(b.dir))
	b.start()
	equal(t, "names", len(b.names()), 0)
	told := b.told()
	if len(told) != 2 || !like(told[0], "w : no files: …no such file or directory") {
		t.Errorf("told %q", told)
	}
	must(t, os.Mkdir(b.dir, 0o755)) //nolint:gosec // a test's
	b.put("a", one(1))
	equal(t, "value", b.values("mmv.a.m"), "1")
	equal(t, "told", strings.Join(b.told(), "\n"), "i : directory "+b.dir+" is there\ni a: loaded")
	must(t, os.RemoveAll(b.dir))
	equal(t, "names", len(b.names()), 0)
	told = b.told()
	if len(told) != 2 || !like(told[0], "w : no files: …") || told[1] != "i a: gone" {
		t.Errorf("told %q", told)
	}
	must(t, os.WriteFile(b.dir, nil, 0o600))
	b.look()
	if told = b.told(); len(told) != 1 || !like(told[0], "w : no files: …not a directory") {
		t.Errorf("told %q", told)
	}
}

// One event for each change of state, and bytes of files only in a form that
// harms no terminal.
func TestEvents(t *testing.T) {
	b := newBox(t)
	b.put("a", one(1))
	b.put("x\x1b[2J", one(1))
	b.put("esc", mmvimage.New(2).Metric(metric("a\x1b]0;\a\xff", 1, 1)).Metric(metric("ok", 2, 1)))
	b.start()
	for range 50 {
		b.look()
		b.names()
	}
	equal(t, "at the start", strings.Join(b.told(), "\n"), strings.Join([]string{
		`w esc: loaded, 1 metric not exported: metric[0] a\x1b]0;\a\xff: name "a\x1b]0;\a\xff": bad name component: "a\x1b]0;\a\xff"`,
		"w x\x1b[2J: rejected: file name cannot be part of a metric name: " + `"x\x1b[2J"`,
		`i : 2 files with 2 metrics in ` + b.dir,
	}, "\n"))
	b.put("b", one(1))
	b.look()
	b.put("b", one(2)) // values only
	b.look()
	b.write("b", one(1).Generations(1, 0).Build())
	b.look()
	b.write("b", one(1).Generations(1, 0).Build())
	b.look()
	b.put("b", one(1).Generation(3))
	b.look()
	b.remove("b")
	b.look()
	told := b.told()
	for i, want := range []string{"i b: loaded", "i b: pending: …", "i b: loaded", "i b: gone"} {
		if i >= len(told) || !like(told[i], want) {
			t.Errorf("told %q, not %q", told, want)
		}
	}
	equal(t, "events", len(told), 4)
	if st := b.statuses(); st[`x\x1b[2J`] == "" || strings.Contains(strings.Join(told, ""), "\x1b") || strings.Contains(strings.Join(told, ""), "\xff") {
		t.Errorf("statuses %q", st)
	}
}

// A status is never long, whatever is wrong.
func TestLongStatus(t *testing.T) {
	img := mmvimage.New(2)
	for i := range 3000 {
		img.Metric(metric(strings.Repeat("ü", 120), uint32(i+2000), 1))
	}
	b := newBox(t)
	b.put("f", img)
	b.put("g", worker(5, metric("both", 1023, 1)))
	many := worker(5, metric("both", 1023, 1))
	for i := range 1000 {
		b.put("g", worker(5, metric("both", 1023, 1)))
		many.Metric(metric("b"+strings.Repeat("x", 200), uint32(i), 1))
	}
	b.put("h", many)
	b.start()
	for name, s := range b.statuses() {
		if len(s) > 1010 || !strings.HasPrefix(s, "loaded") {
			t.Errorf("%s: %d bytes: %q", name, len(s), s)
		}
	}
	st := b.statuses()["f"]
	if !strings.HasPrefix(st, "loaded, 3000 metrics not exported: ") || !strings.HasSuffix(st, "…") {
		t.Errorf("status %q", st)
	}
	equal(t, "rejects", b.show(&b.fetch(nil, b.pmid("mmv.control.file.rejects")).Sets[0])[:7], "0=3000 ")
}

// File events that cannot be had are told once.
func TestNoInotify(t *testing.T) {
	b := newBox(t, func(o *exporter.Options) { o.Reader.NoInotify = true })
	b.start()
	for range 3 {
		b.look()
	}
	equal(t, "times", b.toldOf(reader.ErrNoInotify.Error()), 1)
}

// What an agent cannot do it does not: a request for another domain, or with a
// bit more than a number has, finds nothing.
func TestExactNumbers(t *testing.T) {
	b := newBox(t)
	b.put("a", one(1).InDom(1, "", "", insts("0:x")...).Metric(many("n", 2, 1, 1)))
	b.start()
	p, d := b.pmid("mmv.a.n"), b.desc("mmv.a.n").InDom
	for _, bad := range []pcpwire.PMID{p | 1<<31, p + 1<<22, p + 1, p + 1<<10, 0xffffffff, pcpwire.NewPMID(domain, 0, 2) | 1<<31} {
		if set := b.fetch(nil, bad).Sets[0]; set.NumVal != int32(pcpwire.ErrPMID) || set.PMID != bad {
			t.Errorf("fetch %x: %v", uint32(bad), set)
		}
		if got := b.namesOf(bad); len(got) != 0 {
			t.Errorf("names of %x: %q", uint32(bad), got)
		}
		if _, err := b.text(uint32(bad), pcpwire.TextPMID|pcpwire.TextHelp); !errors.Is(err, pcpwire.ErrPMID) {
			t.Errorf("text of %x: %v", uint32(bad), err)
		}
	}
	for _, bad := range []pcpwire.InDom{d | 1<<31, d + 1<<22, d + 1, 0xffffffff} {
		equal(t, "instances", b.instances(bad), pcpwire.ErrInDom.Error())
		equal(t, "labels", b.labels(pcpwire.LabelInDom, uint32(bad), -1), "")
	}
}
