package test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	update    = flag.Bool("update", false, "write the goldens in testdata anew")
	agentFlag = flag.String("agent", "", "test this agent, not the one of this module")
)

// built is where the programs that the tests start are built, once.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	built, err = os.MkdirTemp("", "pmdammv-test.")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(built)) }()
	if err := os.Chmod(built, 0o755); err != nil { //nolint:gosec // agents may run as another user
		return 1, err
	}
	return m.Run(), nil
}

// agentPath builds the agent under test.
var agentPath = sync.OnceValues(func() (string, error) {
	// Other programs read these files, so go test has to be shown that they matter: it would go on reporting an earlier
	// result after they have changed.
	for _, dir := range []string{"../go.mod", "../go.sum", "../cmd", "../pkg", "."} {
		if err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			return "", err
		}
	}
	if *agentFlag != "" {
		return *agentFlag, nil
	}
	path := filepath.Join(built, "pmdammv")
	return path, build("..", "env", append(slices.Clone(agentBuild), "-o", path, "./cmd/pmdammv")...)
})

// bakeryPath builds the demo's program that uses Speed.
var bakeryPath = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "bakery")
	return path, build("demo/speed", "go", "build", "-o", path, ".")
})

// writerPath builds the program that uses libpcp_mmv.
var writerPath = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "writer")
	return path, build("writers", "gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-o", path, "writer.c", "-lpcp_mmv", "-lpcp")
})

func build(dir, name string, args ...string) error {
	cmd := command(context.Background(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// must is for what only a broken tree or machine makes fail.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// need skips the test, or fails it in CI, when the machine lacks one of these files; `make setup` installs them.
func need(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing, and this is CI", p)
		}
		t.Skipf("needs %s: run make setup", p)
	}
}

// Files of PCP and of its development packages that tests use.
const (
	pcpConf   = "/etc/pcp.conf"
	pminfo    = "/usr/bin/pminfo"
	dbpmdaBin = "/usr/bin/dbpmda"
	mmvHeader = "/usr/include/pcp/mmv_stats.h"
	python    = "/usr/bin/python3" // PCP's module is for the system's Python
)

// conf is a setting of the installed pcp.conf.
func conf(t testing.TB, name string) string {
	t.Helper()
	need(t, pcpConf)
	text := must[[]byte](t)(os.ReadFile(pcpConf))
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("no %s in %s", name, pcpConf)
	return ""
}

// pcpAgent is PCP's own agent.
func pcpAgent(t testing.TB) string {
	t.Helper()
	path := filepath.Join(conf(t, "PCP_PMDASADM_DIR"), "mmv", "pmdammv")
	need(t, path)
	return path
}

// me is the user's name, for -U. Without that option PCP's agent becomes PCP's user, which only root can.
func me(t testing.TB) string {
	t.Helper()
	return must[*user.User](t)(user.Current()).Username
}

// limit is how long any program of a test may run: one that hangs fails the test. It ends after the clean-ups that are
// registered later, as those look at the programs once more.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// command is where all programs are started: with English messages, and nothing of PCP's environment but what env says.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // tests name the programs that they start
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PCP_") && !strings.HasPrefix(v, "PMCD_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8", "TZ=UTC")
	return cmd
}

// waitUntil waits for a condition.
func waitUntil(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// processes are those that run with that text in their command line.
func processes(t testing.TB, text string) []int {
	t.Helper()
	var out []int
	for _, file := range must[[]string](t)(filepath.Glob("/proc/[0-9]*/cmdline")) {
		line, err := os.ReadFile(file)
		if err != nil || len(line) == 0 || !bytes.Contains(line, []byte(text)) { // gone, a zombie, or another
			continue
		}
		out = append(out, must[int](t)(strconv.Atoi(filepath.Base(filepath.Dir(file)))))
	}
	return out
}

// diff compares two texts line by line; "" when they are equal.
func diff(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}
