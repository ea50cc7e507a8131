package test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const prompt = "dbpmda> "

// dbpmda is PCP's tool that plays pmcd to one agent, here over a pipe, without a pmcd.
type dbpmda struct {
	in  io.WriteCloser
	out *lines
	cmd *exec.Cmd
	log string // the agent's, and so in its command line

	ended bool
}

// agentDir makes a directory with an mmv directory in it, and an environment in which agents use it.
func agentDir(t testing.TB) (mmv string, env []string) {
	t.Helper()
	dir := shared(t)
	mmv = filepath.Join(dir, "tmp", "mmv")
	for _, d := range []string{mmv, filepath.Join(dir, "log"), filepath.Join(dir, "var", "config", "pmda")} {
		if err := os.MkdirAll(d, 0o777); err != nil { //nolint:gosec // an agent that drops to another user writes here
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777); err != nil { //nolint:gosec // the same
			t.Fatal(err)
		}
	}
	return mmv, []string{
		"PCP_TMP_DIR=" + filepath.Join(dir, "tmp"),
		"PCP_LOG_DIR=" + filepath.Join(dir, "log"),
		"PCP_VAR_DIR=" + filepath.Join(dir, "var"),
		"GORACE=halt_on_error=1",
	}
}

// startDbpmda starts an agent, with -d 70 and a log, in dbpmda.
func startDbpmda(t testing.TB, env []string, agent string, options ...string) *dbpmda {
	t.Helper()
	need(t, pcpConf, dbpmdaBin)
	dir := shared(t)
	root := filepath.Join(dir, "root")
	if err := os.WriteFile(root, []byte("root {\n    mmv 70:*:*\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// In order, as a terminal would show it: errors come on the standard error output.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(limit(t), dbpmdaBin, "-i", "-f", "-n", root)
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = w, w
	d := &dbpmda{in: must[io.WriteCloser](t)(cmd.StdinPipe()), out: newLines(r), cmd: cmd}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.end(t)
		_ = r.Close()
	})
	d.out.until(t, prompt)
	d.log = filepath.Join(dir, "agent.log")
	d.ask(t, strings.Join(append([]string{"open pipe", agent, "-d 70 -l", d.log}, options...), " "))
	return d
}

var (
	ownLog  = regexp.MustCompile(`(?m)^\[.*\] dbpmda.*\n`)
	address = regexp.MustCompile(`dump from 0x[0-9a-f]+ timestamp: .* numpmid`)
	usec    = regexp.MustCompile(`value 1[7-9]\d{14}\b`) // microseconds of a section timed since 1970
)

// ask gives one command and returns what is printed, without what differs from run to run.
func (d *dbpmda) ask(t testing.TB, command string) string {
	t.Helper()
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	text := strings.TrimSuffix(d.out.until(t, prompt), prompt)
	if strings.Contains(text, "syntax error") {
		t.Fatalf("dbpmda does not understand %q:\n%s", command, text)
	}
	text = ownLog.ReplaceAllString(text, "")
	text = address.ReplaceAllString(text, "dump from ADDRESS timestamp: TIME numpmid")
	return usec.ReplaceAllString(text, "value USEC")
}

// end ends the session, and so the agent, and waits for both: the agent may still write its numbers.
func (d *dbpmda) end(t testing.TB) {
	t.Helper()
	if d.ended {
		return
	}
	d.ended = true
	_ = d.in.Close()
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("dbpmda: %v", err)
	}
	waitUntil(t, "the agent ends with its connection", func() bool { return len(processes(t, d.log)) == 0 })
}

// traverse lists the metrics below a node: none when the agent knows no such node.
func (d *dbpmda) traverse(t testing.TB, node string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(d.ask(t, "traverse "+node)) {
		if name, ok := strings.CutPrefix(line, "   "); ok {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}
