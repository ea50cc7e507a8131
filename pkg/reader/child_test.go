package reader_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// children are the other processes that tests use. Each prints a line when it
// is ready, and ends when its standard input does.
var children = map[string]func(args []string) error{
	"wait":    func([]string) error { return ready("") },
	"exit":    func([]string) error { return nil },
	"map":     mapChild,
	"rewrite": rewriteChild,
	"inner":   innerChild,
	"limited": limitedChild,
	"dropped": droppedChild,
	"noproc":  noProcChild,
	"sandbox": sandboxChild,
}

// say tells the test that has started this process that it is ready, and what
// it has found.
func say(what string) { fmt.Println("ready", what) } //nolint:forbidigo // no agent's output

// ready says so, and waits for the end.
func ready(what string) error {
	say(what)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// mapChild maps a file as a writer does.
func mapChild(args []string) error {
	m, err := mapShared(args[0])
	if err != nil {
		return err
	}
	defer unix.Munmap(m) //nolint:errcheck // at the end
	return ready("")
}

// mapShared maps a whole file to be written to.
func mapShared(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a test's own file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // mapped
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// child is a process that a test has started.
type child struct {
	*exec.Cmd
	t     testing.TB
	stdin io.WriteCloser
	said  string // with its first line, after "ready "
	done  bool
}

// start starts a child and waits until it is ready. The end of the test ends it.
func start(t testing.TB, name string, attr *unix.SysProcAttr, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command("/proc/self/exe", args...), t: t} //nolint:gosec // the test chooses it
	c.Env = append(os.Environ(), childEnv+"="+name)
	c.Stderr = os.Stderr
	c.SysProcAttr = attr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil && name != "exit" {
		t.Fatalf("child %s: %q, %v", name, line, err)
	}
	c.said = strings.TrimSpace(strings.TrimPrefix(line, "ready"))
	return c
}

// stop ends the child and waits for that.
func (c *child) stop() {
	if !c.done {
		c.done = true
		_ = c.stdin.Close()
		if err := c.Wait(); err != nil {
			c.t.Errorf("child: %v", err)
		}
	}
}

// kill ends the child the hard way, and waits for that.
func (c *child) kill() {
	if !c.done {
		c.done = true
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = c.stdin.Close()
	}
}

func (c *child) pid() int32 { return int32(c.Process.Pid) }

// eventually waits for a condition that other processes, or time, bring about.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
