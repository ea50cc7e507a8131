package test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// TestStopWhileUnread: SIGTERM ends an agent on a pipe whose pmcd does not read the reply.
func TestStopWhileUnread(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "mmv")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // a test's own
		t.Fatal(err)
	}
	for i := range 10 { // with all names more than a pipe can hold
		img := mmvimage.New(2)
		for k := range uint32(1000) {
			img.Metric(mmvimage.Metric{Name: fmt.Sprint(strings.Repeat("m", 200), k), Item: k, Type: mmvimage.U64, Values: []mmvimage.Value{mmvimage.Uint(1)}})
		}
		if err := mmvimage.Write(filepath.Join(dir, fmt.Sprint("f", i)), img.Build()); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(limit(t), must[string](t)(agentPath()), "-l", "-", "--identities", "none", "-U", me(t)) //nolint:gosec // the one that is tested
	cmd.Env = append(os.Environ(), "PCP_TMP_DIR="+top)
	in := must[io.WriteCloser](t)(cmd.StdinPipe())
	out := must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := pcpwire.NewConn(out, in)
	if _, _, err := c.ReadPDU(); err != nil {
		t.Fatal(err)
	}
	for _, pdu := range []pcpwire.PDU{pcpwire.NewCreds(0), &pcpwire.Traverse{Name: []byte("mmv")}} {
		if err := c.WritePDU(0, pdu); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(out, make([]byte, pcpwire.HeaderSize)); err != nil { // it has begun to write
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestExitStatus: wrong options are told from other failures, for systemd not to try them again and again.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	agent := must[string](t)(agentPath())
	for _, c := range []struct {
		args string
		code int
		out  string // some of what it prints
	}{
		{"--help", 0, "Usage: pmdammv [options]"},
		{"-h", 0, "Usage: pmdammv [options]"},
		{"-?", 0, "Usage: pmdammv [options]"},
		{"--version", 0, "pmdammv version "},
		{"help --help", 0, "COMMAND [options]"},
		{"--no-such-option", 64, "Try 'pmdammv --help'."},
		{"--file-metrics=some", 64, "is none of off, problems, all"},
		{"--max-files=0", 64, "--max-files=0 is less than 1"},
		{"--max-file-size=10", 64, "--max-file-size=10 is less than 40"},
		{"-i 0", 64, "port 0"},
		{"help nothing", 2, `no command "nothing"`},
		{"-l /not/there/log", 1, "/not/there/log"},
	} {
		cmd := command(limit(t), agent, strings.Fields(c.args)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.out) {
			t.Errorf("%s: status %d, want %d, and %q in\n%s", c.args, code, c.code, c.out, out)
		}
	}
}

// TestLogPlaces: an earlier log is kept; what is no log stays where it is.
func TestLogPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(path("log"), []byte("earlier"), 0o600), os.Mkdir(path("dir"), 0o700), syscall.Mkfifo(path("fifo"), 0o600),
		os.WriteFile(path("other"), []byte("other"), 0o600), os.Symlink("other", path("link"))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kept bool
		mode os.FileMode
	}{"log": {true, 0}, "link": {true, 0}, "dir": {false, os.ModeDir}, "fifo": {false, os.ModeNamedPipe}} {
		cmd := command(limit(t), must[string](t)(agentPath()), "-l", path(name), "--identities", "none", "-U", me(t))
		cmd.Env = append(os.Environ(), "PCP_TMP_DIR="+dir)
		_ = cmd.Run() // there is no pmcd
		st, err := os.Lstat(path(name))
		_, err1 := os.Lstat(path(name + ".prev"))
		if err != nil || st.Mode().Type() != c.mode || (err1 == nil) != c.kept {
			t.Errorf("%s: %v, %v; kept: %v", name, st, err, err1)
		}
	}
	if b, err := os.ReadFile(path("other")); err != nil || string(b) != "other" {
		t.Errorf("what a link leads to: %q, %v", b, err)
	}
}
