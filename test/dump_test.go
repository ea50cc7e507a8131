package test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// elapsedNow is the value of a section being timed: it depends on the moment.
	elapsedNow = regexp.MustCompile(`= -?\d+ (\(value=)`)
	// emptySection is what PCP 6 says of a section with no entries, which PCP 7 shows.
	emptySection = regexp.MustCompile(`Bad TOC\[(\d+)\]: invalid entry count 0\n`)
)

// TestDump: `pmdammv dump` prints what PCP's mmvdump prints.
func TestDump(t *testing.T) {
	t.Parallel()
	mmvdump := filepath.Join(conf(t, "PCP_PMDASADM_DIR"), "mmv", "mmvdump")
	need(t, mmvdump)
	files := goodImages()
	maps.Copy(files, writtenFiles(t))
	maps.Copy(files, demoFiles(t))
	delete(files, "pending") // of which mmvdump shows the header only
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		write(t, path, files[name])
		want := output(t, mmvdump, path)
		got := output(t, must[string](t)(agentPath()), "dump", path)
		if pcp6 := strings.HasPrefix(conf(t, "PCP_VERSION"), "6."); pcp6 {
			// The lines that differ between 6 and 7 are compared by their places.
			want = emptySection.ReplaceAllString(want, "\nTOC[$1] EMPTY\n")
			got = regexp.MustCompile(`\nTOC\[(\d+)\]: .* \(0 entries\)\n`).ReplaceAllString(got, "\nTOC[$1] EMPTY\n")
			got = emptySection.ReplaceAllString(got, "\nTOC[$1] EMPTY\n")
		}
		if d := diff(elapsedNow.ReplaceAllString(want, "= NOW $1"), elapsedNow.ReplaceAllString(got, "= NOW $1")); d != "" {
			t.Errorf("%s (-mmvdump +dump)\n%s", name, d)
		}
		if lines := strings.Count(got, "\n"); lines < 10 {
			t.Errorf("%s: only %d lines", name, lines)
		}
	}
	t.Logf("%d files", len(files))
}

// demoFiles are those of the demo's programs: PCP's module for Python, and Speed.
func demoFiles(t *testing.T) map[string][]byte {
	t.Helper()
	need(t, python)
	mmv, env := agentDir(t)
	config := filepath.Join(t.TempDir(), "pcp.conf") // Speed looks nowhere else
	if err := os.WriteFile(config, []byte("PCP_TMP_DIR="+filepath.Dir(mmv)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	keep := func(name string, w *writer) {
		w.step(t)
		out[name] = must[[]byte](t)(os.ReadFile(filepath.Join(mmv, name)))
		w.end(t)
	}
	keep("shop", startWriter(t, env, python, must[string](t)(filepath.Abs("demo/shop.py")), "--step"))
	keep("bakery", startWriter(t, []string{"PCP_CONF=" + config}, must[string](t)(bakeryPath()), "-step"))
	return out
}

// output is what a program prints; an exit status of 1 is no error.
func output(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := command(limit(t), name, args...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
