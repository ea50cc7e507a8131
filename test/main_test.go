package test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	// Agents may run as another user.
	if err := os.Chmod(built, 0o755); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// agentPath builds the agent under test.
var agentPath = sync.OnceValues(func() (string, error) {
	if *agentFlag != "" {
		return *agentFlag, nil
	}
	path := filepath.Join(built, "pmdammv")
	return path, build("..", "go", append(append([]string{"build", "-o", path}, buildMode...), "./cmd/pmdammv")...)
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

// limit is how long any program of a test may run: one that hangs fails the test.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
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

// writer is an instrumented program that says "ready" when its file is complete, and counts once more per line.
type writer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *lines
}

// startWriter starts one and waits until its file is complete.
func startWriter(t testing.TB, env []string, name string, args ...string) *writer {
	t.Helper()
	w := &writer{cmd: command(limit(t), name, args...)}
	w.cmd.Env = append(w.cmd.Env, env...)
	w.cmd.Stderr = os.Stderr
	w.in = must[io.WriteCloser](t)(w.cmd.StdinPipe())
	w.out = newLines(must[io.ReadCloser](t)(w.cmd.StdoutPipe()))
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.in.Close() })
	if line := w.out.next(t); line != "ready" {
		t.Fatalf("%s says %q", name, line)
	}
	return w
}

// step lets the program count once more and waits until it has.
func (w *writer) step(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(w.in, "\n"); err != nil {
		t.Fatal(err)
	}
	w.out.next(t)
}

// end lets the program end and waits until it has.
func (w *writer) end(t testing.TB) {
	t.Helper()
	if err := w.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// lines reads a program's output by line.
type lines struct {
	r   io.Reader
	buf []byte
}

func newLines(r io.Reader) *lines { return &lines{r: r} }

// next is the next line without its end.
func (l *lines) next(t testing.TB) string {
	t.Helper()
	return strings.TrimSuffix(l.until(t, "\n"), "\n")
}

// until reads until the output so far ends with that text, which is part of the answer.
func (l *lines) until(t testing.TB, end string) string {
	t.Helper()
	chunk := make([]byte, 1<<16)
	for {
		if i := bytes.Index(l.buf, []byte(end)); i >= 0 {
			text := string(l.buf[:i+len(end)])
			l.buf = l.buf[i+len(end):]
			return text
		}
		n, err := l.r.Read(chunk)
		l.buf = append(l.buf, chunk[:n]...)
		if err != nil && n == 0 {
			t.Fatalf("waiting for %q after %q: %v", end, l.buf, err)
		}
	}
}

// diff compares two texts line by line; "" when they are equal.
func diff(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}
