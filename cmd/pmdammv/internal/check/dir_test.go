package check_test

import (
	"flag"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/cmd/pmdammv/internal/check"
	"pmdammv/pkg/exporter"
	img "pmdammv/test/mmvimage"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

// directory makes a directory of these files, readable by everybody.
func directory(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mmv")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if err := img.Write(filepath.Join(dir, name), b); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func options(dir string) check.Options {
	return check.Options{Agent: exporter.Options{Dir: dir, Prefix: "mmv", Domain: 70, PCPVersion: "7.2.1"}}
}

// report checks a directory and gives what is found by file: "" for the
// directory itself.
func report(t testing.TB, o check.Options) (*check.Report, map[string][]string) {
	t.Helper()
	r, err := check.Directory(o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	add := func(name string, found []check.Finding) {
		if len(found) > 0 {
			got[name] = codes(found)
		}
	}
	add("", r.Findings)
	for _, f := range r.Files {
		add(f.Name, f.Findings)
	}
	return r, got
}

func image(cluster, flags int32, metrics ...img.Metric) []byte {
	m := img.New(1).Cluster(cluster).Flags(flags).PID(0)
	for _, x := range metrics {
		m.Metric(x)
	}
	return m.Build()
}

func withInst(name string) []byte {
	m := one("m", 1)
	m.InDom = 3
	return img.New(1).Cluster(9).Flags(img.NoPrefix).InDom(3, "", "", img.Inst{ID: 1, Name: name}).Metric(m).Build()
}

// deadPID is the number of a process that has ended.
func deadPID(t testing.TB) int32 {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return int32(cmd.Process.Pid)
}

var directories = []struct {
	name  string
	files map[string][]byte
	want  map[string][]string
}{
	{"good", map[string][]byte{"a": image(0, 0, one("m", 1)), "b": image(5, 0, one("m", 1))}, map[string][]string{}},
	{"empty", nil, map[string][]string{"": {"empty"}}},
	{
		"one cluster, other metrics",
		map[string][]byte{"a": image(5, 0, one("m", 1)), "b": image(5, 0, one("n", 1))},
		map[string][]string{"b": {"cluster-moved"}},
	},
	{
		"one cluster, some metrics the same",
		map[string][]byte{"a": image(5, 1, one("m", 1), one("n", 2)), "b": image(5, 1, one("m", 1), one("o", 2))},
		map[string][]string{"b": {"pmid-taken"}},
	},
	{
		"one name",
		map[string][]byte{"a": image(5, 1, one("m", 1)), "b": image(6, 1, one("m", 1))},
		map[string][]string{"b": {"name-taken"}},
	},
	{
		"a leaf in the way",
		map[string][]byte{"a": image(5, 1, one("m", 1)), "b": image(6, 1, one("m.n", 1))},
		map[string][]string{"b": {"name-below-leaf"}},
	},
	{
		"names in the way",
		map[string][]byte{"a": image(5, 1, one("m.n", 1)), "b": image(6, 1, one("m", 1), one("o", 2))},
		map[string][]string{"b": {"name-below-leaf"}},
	},
	{
		"two names of an instance",
		map[string][]byte{"a": withInst("one"), "b": withInst("two")},
		map[string][]string{"b": {"instance-names"}},
	},
	{
		"file names",
		map[string][]byte{"client-1": image(0, 0, one("m", 1)), "control": image(0, 0, one("m", 1)), "control.x": image(0, 0, one("m", 1)), ".tmp": image(0, 0, one("m", 1))},
		map[string][]string{"client-1": {"file-name"}, "control": {"file-reserved"}, "control.x": {"file-reserved"}, ".tmp": {"hidden"}},
	},
	{
		"a file with faults",
		map[string][]byte{"a": image(5, 0, one("m", 1), one("a-b", 2))},
		map[string][]string{"a": {"name-characters"}},
	},
}

func TestDirectories(t *testing.T) {
	for _, d := range directories {
		t.Run(d.name, func(t *testing.T) {
			r, got := report(t, options(directory(t, d.files)))
			if diff := cmp.Diff(d.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if want := min(len(d.want), 1); d.name != "a file with faults" && r.Status() != want {
				t.Errorf("status %d, want %d", r.Status(), want)
			}
			for _, f := range r.Files {
				if f.Exported < f.Metrics && len(f.Findings) == 0 {
					t.Errorf("no reason why %s exports %d of %d metrics", f.Name, f.Exported, f.Metrics)
				}
			}
		})
	}
}

// TestStates: what has become of files for reasons outside of them.
func TestStates(t *testing.T) {
	dir := directory(t, map[string][]byte{
		"gone": img.New(1).Flags(img.Process).PID(deadPID(t)).Metric(one("m", 1)).Build(),
		"mine": img.New(1).Flags(img.Process).PID(int32(os.Getppid())).Metric(one("m", 1)).Build(),
		"big":  append(image(0, 0, one("m", 1)), make([]byte, 1<<16)...),
		"half": img.New(1).Generations(5, 0).Metric(one("m", 1)).Build(),
		"text": []byte("#!/bin/sh\n"),
	})
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.Symlink("nowhere", filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	o := options(dir)
	o.Agent.Reader.MaxFileSize = 1 << 15
	r, got := report(t, o)
	want := map[string][]string{
		"gone": {"writer-gone"}, "mine": {"writer-unmapped"}, "big": {"too-big"}, "half": {"in-flux"}, "text": {"not-mmv"},
		"sub": {"not-regular"}, "fifo": {"not-regular"}, "link": {"dangling"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	states := map[string]string{}
	for _, f := range r.Files {
		states[f.Name] = f.State
	}
	wantStates := map[string]string{
		"gone": "dead", "mine": "loaded", "big": "rejected", "half": "pending", "text": "rejected",
		"sub": "skipped", "fifo": "skipped", "link": "skipped",
	}
	if diff := cmp.Diff(wantStates, states); diff != "" {
		t.Errorf("states (-want +got)\n%s", diff)
	}
}

func TestTooMany(t *testing.T) {
	o := options(directory(t, map[string][]byte{"a": image(0, 0, one("m", 1)), "b": image(0, 0, one("m", 1))}))
	o.Agent.Reader.MaxFiles = 1
	_, got := report(t, o)
	if diff := cmp.Diff(map[string][]string{"b": {"too-many"}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestElsewhere: no directory, but files where another one is.
func TestElsewhere(t *testing.T) {
	other := directory(t, map[string][]byte{"a": image(0, 0, one("m", 1)), "b": {}, "c": []byte("text")})
	o := options(filepath.Join(t.TempDir(), "not", "there"))
	o.Other = []string{t.TempDir(), other}
	r, got := report(t, o)
	if diff := cmp.Diff(map[string][]string{"": {"directory"}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.Status() != 2 || !strings.HasSuffix(r.Findings[0].Problem, "; but 1 in "+other) {
		t.Errorf("status %d, %+v", r.Status(), r.Findings)
	}
}

// TestAccess: what another user cannot read.
func TestAccess(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil || nobody.Uid == "0" || nobody.Uid == strings.TrimSpace(string(must(exec.Command("id", "-u").Output()))) {
		t.Skip("needs a user nobody who is another one")
	}
	dir := directory(t, map[string][]byte{"a": image(0, 0, one("m", 1)), "b": image(0, 0, one("m", 1))})
	for path, mode := range map[string]os.FileMode{filepath.Join(dir, "a"): 0o600, filepath.Dir(dir): 0o700} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	var r *check.Report
	for _, name := range []string{"nobody", nobody.Uid, "1234567"} {
		o := options(dir)
		o.User = name
		var got map[string][]string
		r, got = report(t, o)
		if !slices.Contains(got[""], "directory-access") || !slices.Equal(got["a"], []string{"permission"}) || got["b"] != nil {
			t.Errorf("user %s: %v", name, got)
		}
	}
	if f := r.Files[0]; f.State != "rejected" || f.Exported != 0 || f.Reason == "" {
		t.Errorf("%+v", f)
	}
	if f := r.Files[1]; f.State != "loaded" || f.Exported != 1 || f.Root != "mmv.b" || f.PMID == "" {
		t.Errorf("%+v", f)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestAlone: a file outside of the directory is seen as if it were in it.
func TestAlone(t *testing.T) {
	dir := directory(t, map[string][]byte{"a": image(5, 0, one("m", 1)), "b": image(5, 0, one("n", 1), one("n", 2))})
	o := options("/not/there")
	r, err := check.Alone(o, filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	f := r.Files[0]
	if d := cmp.Diff([]string{"name-twice"}, codes(f.Findings)); d != "" || f.PMID != "70.5" || f.Root != "mmv.b" || f.Exported != 1 || f.Metrics != 2 {
		t.Errorf("%s%+v", d, f)
	}
	if r.Status() != 2 {
		t.Errorf("status %d", r.Status())
	}
}

// TestEveryKind: every kind of finding is made somewhere, and no other.
func TestEveryKind(t *testing.T) {
	used := map[string]bool{}
	for _, file := range must(filepath.Glob("*.go")) {
		if strings.HasSuffix(file, "_test.go") || file == "kinds.go" {
			continue
		}
		for _, m := range regexp.MustCompile(`"([a-z]+(?:-[a-z]+)*)"`).FindAllStringSubmatch(string(read(t, file)), -1) {
			used[m[1]] = true
		}
	}
	kinds := regexp.MustCompile(`(?m)^\t\{"([a-z-]+)", (?:Error|Warning), `).FindAllStringSubmatch(string(read(t, "kinds.go")), -1)
	if len(kinds) < 50 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	docs := string(read(t, "../../../../docs/TOOLS.md"))
	for _, k := range kinds {
		if !strings.Contains(docs, "| `"+k[1]+"` |") {
			t.Errorf("docs/TOOLS.md says nothing of %s", k[1])
		}
		if !used[k[1]] {
			t.Errorf("nothing is ever found to be %s", k[1])
		}
	}
}
