package watch

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/local"
	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	img "pmdammv/test/mmvimage"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

func golden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got)\n%s", name, d)
	}
}

func TestInterval(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"1": time.Second, "0.25": 250 * time.Millisecond, "2 sec": 2 * time.Second, "500msec": 500 * time.Millisecond,
		"20ms": 20 * time.Millisecond, "3m": 3 * time.Minute, "1hour30min": 90 * time.Minute, "1 day 2 hours": 26 * time.Hour, "10 SECONDS": 10 * time.Second,
	} {
		if got, err := parseInterval(s); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "0", "-1", "1week", "1sec2", "1..2", "sec", "1e99", "0.0001"} {
		if got, err := parseInterval(s); err == nil && s != "1sec2" {
			t.Errorf("%q: %v, want an error", s, got)
		}
	}
}

// TestRateUnits: as pmval says at its start, "converting to …".
func TestRateUnits(t *testing.T) {
	for _, c := range []struct {
		units pcpwire.Units
		text  string
		scale float64
	}{
		{pcpwire.NewUnits(0, 0, 0, 0, 0, 0), "/ sec", 1},
		{pcpwire.NewUnits(0, 0, 1, 0, 0, 0), "count / sec", 1},
		{pcpwire.NewUnits(1, 0, 0, pcpwire.SpaceKByte, 0, 0), "Kbyte / sec", 1},
		{pcpwire.NewUnits(0, 1, 0, 0, pcpwire.TimeUSec, 0), "time utilization", 1e6},
		{pcpwire.NewUnits(0, 1, 0, 0, pcpwire.TimeSec, 0), "time utilization", 1},
		{pcpwire.NewUnits(0, 1, 0, 0, pcpwire.TimeHour, 0), "time utilization", 1. / 3600},
		{pcpwire.NewUnits(0, 1, 1, 0, pcpwire.TimeMSec, 0), "count", 1e3},
		{pcpwire.NewUnits(1, -1, 0, pcpwire.SpaceMByte, pcpwire.TimeMin, 0), "Mbyte / min^2", 1. / 60},
	} {
		text, scale := rateUnits(c.units)
		if text != c.text || math.Abs(scale-c.scale) > c.scale/1e9 {
			t.Errorf("%v: %q, %g, want %q, %g", c.units, text, scale, c.text, c.scale)
		}
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct {
		name        string
		now, before pcpwire.AtomValue
		seconds     float64
		want        string
	}{
		{"ints", pcpwire.AtomU32(30), pcpwire.AtomU32(10), 2, "10.00"},
		{"large ones", pcpwire.AtomU64(math.MaxUint64), pcpwire.AtomU64(math.MaxUint64 - 3), 1, "3.000"},
		{"floats", pcpwire.AtomDouble(1.5), pcpwire.AtomDouble(0.5), 4, "0.2500"},
		{"nothing", pcpwire.AtomI32(7), pcpwire.AtomI32(7), 1, "0"},
		{"set back", pcpwire.AtomI64(3), pcpwire.AtomI64(7), 1, "!"},
		{"no time", pcpwire.AtomI64(8), pcpwire.AtomI64(7), 0, "!"},
		{"a text", pcpwire.AtomString(nil), pcpwire.AtomI64(7), 1, "!"},
		{"little", pcpwire.AtomI64(8), pcpwire.AtomI64(7), 1000, "1.000E-03"},
		{"much", pcpwire.AtomI64(2_000_000), pcpwire.AtomI64(0), 1, "2000000"},
	} {
		got := "!"
		if v, ok := rate(c.now, c.before, c.seconds, 1); ok {
			got = short(v)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	var got []rune
	for b := []byte("qé\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[99x\x1b[\x1b"); len(b) > 0; {
		k, n := decode(b)
		got, b = append(got, k), b[n:]
	}
	want := []rune{'q', 'é', keyUp, keyDown, keyPageUp, keyPageDown, keyHome, keyEnd, keyUnknown, keyUnknown}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if k, n := decode([]byte{0x1b}); k != keyEscape || n != 1 {
		t.Error(k, n)
	}
}

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"abc", 0, ""},
	} {
		if got := cut(c.s, c.n); got != c.want || width(got) > c.n {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
	if got := pad("日", 4) + padLeft("x", 3) + "|"; got != "日    x|" {
		t.Errorf("%q", got)
	}
}

// host is an agent over a directory of files, seen by a sampler.
func host(t testing.TB, files map[string][]byte) (dir string, s *sampler) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range files {
		if err := img.Write(filepath.Join(dir, name), b); err != nil {
			t.Fatal(err)
		}
	}
	ctx, err := local.Open(exporter.Options{Dir: dir, Prefix: "mmv", Domain: 70, PCPVersion: "7.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ctx.Close)
	return dir, &sampler{ctx: ctx, files: true}
}

// shop is a file with counters that have counted to n.
func shop(n int64) []byte {
	metric := func(name string, item uint32, typ, sem int32, units pcpwire.Units, values ...img.Value) img.Metric {
		return img.Metric{Name: name, Item: item, Type: typ, Sem: sem, Units: uint32(units), Values: values}
	}
	sales := metric("sales", 1, img.U64, img.Counter, pcpwire.NewUnits(0, 0, 1, 0, 0, 0), img.Int(n), img.Int(10*n))
	sales.InDom = 3
	return img.New(1).Cluster(42).InDom(3, "", "", img.Inst{ID: 0, Name: "rye"}, img.Inst{ID: 1, Name: "a\tlong\x1bname of bread"}).
		Metric(sales).
		Metric(metric("busy", 2, img.I64, img.Counter, pcpwire.NewUnits(0, 1, 0, 0, pcpwire.TimeMSec, 0), img.Int(100*n))).
		Metric(metric("queue", 3, img.I32, img.Instant, 0, img.Int32(int32(7-n)))).
		Metric(metric("mood", 4, img.String, img.Discrete, 0, img.Text(fmt.Sprintf("\"%d\"\x1b[31m", n/2)))).Build()
}

// at gives the moments at which samples are taken.
func at(sec int) func() time.Time {
	return func() time.Time { return time.Date(2024, 5, 6, 7, 8, 9+sec, 0, time.UTC) }
}

func take(t testing.TB, s *sampler, sec int) *sample {
	t.Helper()
	out, err := s.take(at(sec))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rewrite stores another image into a file, as its program would.
func rewrite(t testing.TB, path string, image []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the write tells
	if _, err := f.WriteAt(image, 0); err != nil {
		t.Fatal(err)
	}
}

func TestPlain(t *testing.T) {
	dir, s := host(t, map[string][]byte{"shop": shop(1)})
	var b bytes.Buffer
	m := &model{}
	p := newPlain(&b, m)
	show := func(sec int, values bool) {
		if err := p.sample(take(t, s, sec), values); err != nil {
			t.Fatal(err)
		}
	}
	show(0, false)
	rewrite(t, filepath.Join(dir, "shop"), shop(5))
	show(2, true)
	rewrite(t, filepath.Join(dir, "shop"), shop(4))
	m.filter = "SALES name"
	show(3, true)
	m.filter, p.raw = "busy", true
	show(4, true)
	if err := img.Write(filepath.Join(dir, "bad-name"), shop(1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "shop")); err != nil {
		t.Fatal(err)
	}
	s.nodes, s.files = []string{"mmv.shop", "mmv.control.rejected"}, false
	m.filter = ""
	show(5, true)
	golden(t, "plain.txt", strings.ReplaceAll(b.String(), dir, "DIR"))
}

// screenshot is the frame as text.
func screenshot(m *model) string {
	return strings.Join(m.frame(), "\n") + "\n"
}

func TestFrames(t *testing.T) {
	dir, s := host(t, map[string][]byte{"shop": shop(1), "bad-name": shop(1)})
	m := &model{dir: "DIR", interval: time.Second, width: 78, height: 16}
	var b strings.Builder
	show := func(what string, keys ...rune) {
		for _, k := range keys {
			if a := m.key(k); a != nothing && a != retime {
				t.Errorf("%s: action %d", what, a)
			}
		}
		text := screenshot(m)
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if w := width(strings.NewReplacer("\x1b[7m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(line)); w > m.width {
				t.Errorf("%s: line %d takes %d columns of %d: %q", what, i, w, m.width, line)
			}
		}
		if n := strings.Count(text, "\n"); n != m.height {
			t.Errorf("%s: %d lines, want %d", what, n, m.height)
		}
		fmt.Fprintf(&b, "=== %s\n%s", what, strings.NewReplacer("\x1b", "␛", dir, "DIR").Replace(text))
	}
	show("before the first sample")
	m.take(take(t, s, 0))
	show("first sample")
	rewrite(t, filepath.Join(dir, "shop"), shop(3))
	m.take(take(t, s, 1))
	show("second sample")
	show("by value", 's')
	show("by change", 's')
	show("raw, events, slower", 's', 'r', 'f', '+')
	show("typing a filter", 'f', 'r', '/', 'r', 'Y', 'x', 0x7f, 'e')
	show("filtered", '\r')
	show("filtered out", '/', ' ', 'z', '\r')
	show("no filter", keyEscape, 'p')
	if err := os.Remove(filepath.Join(dir, "shop")); err != nil {
		t.Fatal(err)
	}
	m.take(take(t, s, 2))
	show("paused: values stay", 'f')
	m.key('p')
	m.take(take(t, s, 3))
	show("the file has gone")
	show("help", '?')
	m.key('x')
	m.width, m.height = 30, 6
	show("small")
	m.width, m.height = 10, 3
	show("too small")
	golden(t, "frames.txt", b.String())
}

func TestScroll(t *testing.T) {
	m := &model{width: 60, height: 13, now: &sample{}}
	for i := range 100 {
		m.now.rows = append(m.now.rows, row{metric: fmt.Sprintf("m%02d", i), value: "1"})
	}
	first := func() string { return strings.Fields(m.frame()[2])[0] }
	for _, c := range []struct {
		key  rune
		want string
	}{
		{keyDown, "m01"},
		{'j', "m02"},
		{keyUp, "m01"},
		{keyPageDown, "m10"},
		{keyPageUp, "m01"},
		{keyPageUp, "m00"},
		{keyEnd, "m90"},
		{keyDown, "m90"},
		{keyHome, "m00"},
		{'G', "m90"},
		{'g', "m00"},
	} {
		m.key(c.key)
		if got := first(); got != c.want {
			t.Errorf("after %d the first row is %s, want %s", c.key, got, c.want)
		}
	}
}

func TestActions(t *testing.T) {
	m := &model{width: 60, height: 13, interval: time.Second}
	for k, want := range map[rune]action{'q': quit, ctrl('C'): quit, ctrl('Z'): suspend, ctrl('L'): redraw, '-': retime, 'x': nothing} {
		if got := m.key(k); got != want {
			t.Errorf("%q: %d, want %d", k, got, want)
		}
	}
	m.key('/')
	if got := m.key('q'); got != nothing || *m.edit != "q" {
		t.Error("q quits while a filter is typed")
	}
	if got := m.key(ctrl('C')); got != quit {
		t.Error("Ctrl-C does not")
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	if err := img.Write(filepath.Join(dir, "shop"), shop(1)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		args      []string
		status    int
		lines     int // of values
		out, errs string
	}{
		{"counters take two samples", []string{"-s", "2", "-t", "10msec", "mmv.shop.sales"}, 0, 4, "\tmmv.shop.sales\trye\t0\tcount / sec\n", ""},
		{"raw", []string{"-r", "-s", "1", "-t", "1hour"}, 0, 5, "\tmmv.shop.busy\t\t100\tmillisec\n", ""},
		{"no counters", []string{"-s1", "-t1h", "mmv.shop.queue"}, 0, 1, "\tmmv.shop.queue\t\t6\t\n", ""},
		{"filter", []string{"-rs1", "-t1h", "--filter=rye"}, 0, 1, "\tmmv.shop.sales\trye\t1\tcount\n", ""},
		{"sorted", []string{"-rs1", "-t1h", "--sort=value"}, 0, 5, "", ""},
		{"not there", []string{"-s1", "-t1h", "mmv.nix"}, 0, 0, " mmv.nix: Unknown metric name\n", ""},
		{"bad interval", []string{"-t", "soon"}, 2, 0, "", "is not an interval"},
		{"bad samples", []string{"-s", "-1"}, 2, 0, "", "must be positive"},
		{"bad order", []string{"--sort=size"}, 2, 0, "", "none of name, value, change"},
		{"help", []string{"-?"}, 0, 0, "Usage: pmdammv watch [options] [metricname]...\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			e := &cli.Env{Program: "pmdammv", Stdout: &out, Err: &errs, Conf: func(string) string { return "" }}
			status := NewCommand(e).Run(append([]string{"--dir", dir}, c.args...))
			if status != c.status || strings.Count(out.String(), "\t") != 4*c.lines || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("status %d\n%s%s", status, out.String(), errs.String())
			}
		})
	}
}
