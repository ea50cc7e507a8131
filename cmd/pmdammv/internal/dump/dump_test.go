package dump_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/dump"
	"pmdammv/pkg/reader"
	img "pmdammv/test/mmvimage"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

const hostile = "../../../../pkg/reader/testdata/hostile"

var now = time.Unix(1_700_000_000, 250_000_000)

func golden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(read(t, file)), got); d != "" {
		t.Errorf("%s (-want +got)\n%s", name, d)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// full is a file with something of everything.
func full(version int32) []byte {
	m := img.New(version).Cluster(42).PID(99).Flags(img.Process|img.Sentinel|16).Generation(1234567890123).
		InDom(3, "one line", "help", img.Inst{ID: 1, Name: "one"}, img.Inst{ID: -7, Name: "two words"}).
		InDom(9, "", "").
		Metric(img.Metric{Name: "a.count", Item: 1, Type: img.U64, Sem: img.Counter, InDom: 3, Units: 1 << 20, Short: "s", Help: "h", Values: []img.Value{img.Uint(math.MaxUint64), img.Int(2)}}).
		Metric(img.Metric{Name: "i32", Item: 2, Type: img.I32, Sem: img.Instant, InDom: -1, Values: []img.Value{img.Int32(-5)}}).
		Metric(img.Metric{Name: "u32", Item: 3, Type: img.U32, Sem: 0, Values: []img.Value{img.Int32(-1)}}).
		Metric(img.Metric{Name: "i64", Item: 4, Type: img.I64, Sem: img.Discrete, Units: 0x1f013000, Values: []img.Value{img.Int(math.MinInt64)}}).
		Metric(img.Metric{Name: "float", Item: 5, Type: img.Float, Sem: img.Instant, Values: []img.Value{img.Float32(1.5e10)}}).
		Metric(img.Metric{Name: "double", Item: 6, Type: img.Double, Sem: img.Instant, InDom: 3, Values: []img.Value{img.Float64(math.Inf(-1)), img.Float64(math.NaN())}}).
		Metric(img.Metric{Name: "text", Item: 7, Type: img.String, Sem: img.Discrete, Values: []img.Value{img.Text("some \"text\"")}}).
		Metric(img.Metric{Name: "elapsed", Item: 8, Type: img.Elapsed, Sem: img.Counter, Values: []img.Value{img.Timed(100, -1_700_000_000_000_000)}}).
		Metric(img.Metric{Name: "late", Item: 9, Type: img.Elapsed, Sem: img.Counter, Values: []img.Value{img.Timed(100, 5)}}).
		Metric(img.Metric{Name: "none", Item: 10, Type: img.NoSupport, Sem: 7, Values: []img.Value{img.Int(1)}}).
		Metric(img.Metric{Name: "empty", Item: 11, Type: img.I64, Sem: img.Instant, InDom: 9})
	if version == 3 {
		m.Label(img.LabelItem, 1, -1, `{"a":1}`).Label(img.LabelInstances|img.LabelOptional, 3, -7, `{"c":true}`)
	}
	return m.Build()
}

func text(t testing.TB, image []byte) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := dump.Text(&b, dump.Decode("FILE", image, now)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func document(t testing.TB, image []byte) string {
	t.Helper()
	b, err := json.MarshalIndent(dump.Decode("FILE", image, now), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func TestGoldens(t *testing.T) {
	for version, name := range []string{1: "v1", 2: "v2", 3: "v3"} {
		if version == 0 {
			continue
		}
		image := full(int32(version))
		golden(t, name+".txt", text(t, image))
		golden(t, name+".json", document(t, image))
	}
}

// TestMalformed: how bad files look.
func TestMalformed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(hostile, "*.mmv"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var b strings.Builder
	for _, file := range files {
		image := read(t, file)
		if strings.Contains(file, "ok_") || len(image) < reader.HeaderSize {
			continue
		}
		name := filepath.Base(file)
		b.WriteString("### " + name + "\n" + strings.ReplaceAll(text(t, image), "FILE", name))
	}
	golden(t, "malformed.txt", b.String())
}

// TestOtherOrder: a file of a machine of the other byte order can be read.
func TestOtherOrder(t *testing.T) {
	m := img.New(2).Cluster(42).Metric(img.Metric{Name: "m", Item: 1, Type: img.I64, Sem: img.Instant, Values: []img.Value{img.Int(77)}})
	want := text(t, m.Build())
	got := text(t, m.ByteOrder(other()).Build())
	if want = strings.Replace(want, "\n", "\nByte order = not this host's\n", 1); got != want {
		t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
	}
}

func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	e := &cli.Env{Program: "pmdammv", Stdout: &out, Err: &errs, Conf: func(name string) string { return map[string]string{"PCP_TMP_DIR": "testdata/tmp"}[name] }}
	status = dump.NewCommand(e).Run(args)
	return status, out.String(), errs.String()
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	path := func(name string, data []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good, broken := path("good", full(1)), path("bad", img.New(1).Generations(1, 2).Build())
	for _, c := range []struct {
		name      string
		args      []string
		status    int
		out, errs string // a part of it; "-": nothing
	}{
		{"good", []string{path("simple", img.New(1).Metric(img.Metric{Name: "m", Item: 1}).Build())}, 0, "MMV file   = ", "-"},
		{"bad", []string{broken}, 1, "Mismatched generation numbers (1/2)\n", "-"},
		{"two", []string{broken, good}, 1, "\n\nMMV file   = " + good, "-"},
		{"no file", nil, 2, "-", "which file?"},
		{"not there", []string{"/not/there"}, 2, "-", "no such file or directory\nHint: "},
		{"a directory", []string{dir}, 2, "-", "not a regular file\nHint: "},
		{"text", []string{path("text", []byte("{}"))}, 2, "-", "text: not an MMV file: it looks like JSON\n"},
		{"short", []string{path("short", []byte("MMV\x00abc"))}, 2, "-", "file ends before its header: 7 bytes\n"},
		{"too big", []string{"--max-file-size=100", good}, 2, "-", "bytes, at most 100 are read\n"},
		{"JSON", []string{"--json", good}, 0, `"generation1": 1234567890123,`, "-"},
		{"help", []string{"--help"}, 0, "Usage: pmdammv dump [options] file...\n", "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errs := run(c.args...)
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			for what, s := range map[string][2]string{"stdout": {c.out, out}, "stderr": {c.errs, errs}} {
				if s[0] == "-" && s[1] != "" || s[0] != "-" && !strings.Contains(s[1], s[0]) {
					t.Errorf("%s: no %q in %q", what, s[0], s[1])
				}
			}
		})
	}
}

// FuzzDump: no panic, output bounded by the file's size, JSON that is JSON.
func FuzzDump(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(hostile, "*.mmv"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(read(f, file))
	}
	for version := int32(1); version <= 3; version++ {
		f.Add(full(version))
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		if len(image) < reader.HeaderSize || len(image) > 1<<16 {
			t.Skip("no header, or too long to be quick")
		}
		if n := len(text(t, image)); n > 1000+100*len(image) {
			t.Errorf("%d bytes of output for %d", n, len(image))
		}
		if doc := document(t, image); !json.Valid([]byte(doc)) {
			t.Errorf("not JSON: %s", doc)
		}
	})
}
