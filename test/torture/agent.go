package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// agent is a process under test.
type agent struct {
	r    *report
	name string
	pid  int
	log  string // file
	mmv  string // directory

	stopping atomic.Bool   // its end is wanted
	done     chan struct{} // closed at its end
	fatal    func()        // called when it ends by itself
	in, out  *os.File      // of an agent on a pipe
	sock     string        // of one that listens
	usual    usage         // after the warm-up
	dumped   atomic.Bool
	slowest  atomic.Int64 // answer
	starved  *starvation
}

// environment is that of a program that shall find nothing of the machine's own PCP settings.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PCP_") && !strings.HasPrefix(v, "PMCD_") {
			env = append(env, v)
		}
	}
	return append(append(env, "LC_ALL=C.UTF-8", "TZ=UTC", "GORACE=halt_on_error=1"), more...)
}

// command prepares a program, in a process group of its own so that Ctrl-C is for this process alone.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), name, args...) //nolint:gosec // programs under test
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// startAgent starts an agent for the directory dir/tmp/mmv: on a socket, or on a pipe. wrap prepares its process, nil for
// nothing.
func startAgent(r *report, fatal func(), dir, name string, socket bool, wrap func(*exec.Cmd) error, path string, options ...string) (*agent, error) {
	a := &agent{r: r, name: name, mmv: filepath.Join(dir, "tmp", "mmv"), done: make(chan struct{}), fatal: fatal}
	home := filepath.Join(dir, name)
	for _, d := range []string{home, filepath.Join(home, "config", "pmda")} {
		if err := mkdir(d, 0o777); err != nil {
			return nil, err
		}
	}
	a.log = filepath.Join(home, "log")
	args := append([]string{"-d", "70", "-l", a.log, "--file-metrics=all"}, options...)
	if socket {
		a.sock = filepath.Join(home, "socket")
		args = append(args, "-u", a.sock)
	}
	cmd := command(path, args...)
	cmd.Env = append(cmd.Env, "PCP_TMP_DIR="+filepath.Join(dir, "tmp"), "PCP_VAR_DIR="+home, "PCP_LOG_DIR="+home)
	cmd.Dir = home
	cmd.Stderr = os.Stderr
	if wrap != nil {
		if err := wrap(cmd); err != nil {
			return nil, err
		}
	}
	if !socket {
		if err := a.pipe(cmd); err != nil {
			return nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	closeFiles(cmd)
	a.pid = cmd.Process.Pid
	a.starved = newStarvation(a.pid, a.done)
	go a.wait(cmd)
	return a, nil
}

// mkdir makes a directory, and those above it, for agents that run as another user.
func mkdir(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func (a *agent) pipe(cmd *exec.Cmd) error {
	r1, w1, err := os.Pipe()
	if err != nil {
		return err
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout = r1, w2
	a.in, a.out = w1, r2
	return nil
}

// closeFiles closes the ends of pipes that are the agent's.
func closeFiles(cmd *exec.Cmd) {
	for _, f := range []any{cmd.Stdin, cmd.Stdout} {
		if f, ok := f.(*os.File); ok && f != nil {
			_ = f.Close()
		}
	}
}

func (a *agent) wait(cmd *exec.Cmd) {
	err := cmd.Wait()
	if !a.stopping.Load() {
		a.r.fail(death, "%s, process %d, ended: %v\n%s", a.name, a.pid, err, a.tail())
		a.fatal()
	}
	close(a.done)
}

// tail is the end of the log.
func (a *agent) tail() string {
	b, err := os.ReadFile(a.log)
	if err != nil {
		return err.Error()
	}
	if i := bytes.Index(b, []byte("goroutine ")); i >= 0 { // what the runtime says at the end
		b = b[max(0, i-1000):]
		return string(b[:min(len(b), 100_000)])
	}
	return string(b[max(0, len(b)-3000):])
}

// dial connects to the agent, which may not listen yet.
func (a *agent) dial() (net.Conn, error) {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("unix", a.sock) //nolint:noctx // a local socket answers at once
		if err == nil || time.Now().After(deadline) {
			return c, err
		}
	}
}

// stop ends the agent.
func (a *agent) stop() {
	if a == nil {
		return
	}
	a.stopping.Store(true)
	if a.in != nil {
		_ = a.in.Close()
	} else {
		_ = syscall.Kill(a.pid, syscall.SIGTERM)
	}
	select {
	case <-a.done:
	case <-time.After(time.Minute):
		a.r.fail(death, "%s, process %d, does not end\n%s", a.name, a.pid, a.tail())
		_ = syscall.Kill(a.pid, syscall.SIGKILL)
		<-a.done
	}
	if a.out != nil {
		_ = a.out.Close()
	}
}

// dump makes an agent that hangs say where.
func (a *agent) dump() string {
	if a.dumped.Swap(true) {
		return ""
	}
	a.stopping.Store(true)
	_ = syscall.Kill(a.pid, syscall.SIGQUIT)
	select {
	case <-a.done:
	case <-time.After(5 * time.Second):
	}
	return a.tail()
}

// usage is what a process has of what must not grow.
type usage struct {
	memory int // kB of anonymous memory
	fds    int
	maps   int // all mappings
	files  int // mappings of MMV files
}

func (u usage) String() string {
	return fmt.Sprintf("%.1f MB, %d descriptors, %d mappings (%d of files)", float64(u.memory)/1024, u.fds, u.maps, u.files)
}

// measure looks at the process.
func (a *agent) measure() (usage, error) {
	var u usage
	proc := "/proc/" + strconv.Itoa(a.pid)
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			_, err = fmt.Sscan(v, &u.memory)
		}
	}
	if err != nil {
		return u, err
	}
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return u, err
	}
	u.fds = len(fds)
	maps, err := os.ReadFile(proc + "/maps")
	u.maps = bytes.Count(maps, []byte("\n"))
	u.files = bytes.Count(maps, []byte(a.mmv+"/"))
	return u, err
}
