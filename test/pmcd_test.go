package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pmcd is a private pmcd with the agent on a pipe; see pmcd.sh.
type pmcd struct {
	dir   string
	mmv   string // where MMV files go
	port  int
	pid   int
	agent int           // its process id
	done  chan struct{} // closed at its end
}

// startPMCD starts one for the test. At the test's end both it and the agent must still run, the same processes.
func startPMCD(t testing.TB) *pmcd {
	t.Helper()
	return startPMCDWith(t, must[string](t)(agentPath()))
}

// startPMCDWith is startPMCD with an agent of the caller's choice.
func startPMCDWith(t testing.TB, agent string, options ...string) *pmcd {
	t.Helper()
	need(t, pcpConf, pminfo)
	p := &pmcd{dir: shared(t), done: make(chan struct{})}
	p.mmv = filepath.Join(p.dir, "tmp", "mmv")
	p.port = freePort(t)

	log := filepath.Join(p.dir, "log", "pmcd", "mmv.log")
	args := append([]string{p.dir, strconv.Itoa(p.port), agent, "-d", "70", "-l", log}, options...)
	cmd := command(limit(t), "./pmcd.sh", args...)
	cmd.Env = append(cmd.Env, "GORACE=halt_on_error=1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended, its log says
	}()
	t.Cleanup(func() { p.stop(t) })
	p.wait(t)
	if p.agent = p.child(t, agent); p.agent == 0 {
		t.Fatalf("pmcd runs no %s\n%s", agent, p.logs())
	}
	return p
}

// wait waits until pmcd serves clients.
func (p *pmcd) wait(t testing.TB) {
	t.Helper()
	waitUntil(t, "pmcd is configured", func() bool {
		_, err := os.Stat(filepath.Join(p.dir, "log", "pmcd", "pmcd.log"))
		p.mustRun(t)
		return err == nil
	})
	waiter := filepath.Join(conf(t, "PCP_BINADM_DIR"), "pmcd_wait")
	if out, err := p.client(t, waiter, "-h", fmt.Sprintf("127.0.0.1:%d", p.port), "-t", "20sec").CombinedOutput(); err != nil {
		t.Fatalf("pmcd does not answer: %v\n%s%s", err, out, p.logs())
	}
}

func (p *pmcd) mustRun(t testing.TB) {
	t.Helper()
	select {
	case <-p.done:
		t.Fatalf("pmcd has ended\n%s", p.logs())
	default:
	}
}

// stop ends pmcd after a check that it and its agent are still there.
func (p *pmcd) stop(t testing.TB) {
	select {
	case <-p.done:
		t.Error("pmcd did not live to the end of the test")
	default:
		if p.agent != 0 && !p.isChild(p.agent) {
			t.Errorf("the agent, process %d, did not live to the end of the test", p.agent)
		}
		_ = syscall.Kill(p.pid, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(time.Minute):
			t.Error("pmcd does not end on SIGTERM")
		}
		waitUntil(t, "the agent ends after pmcd", func() bool {
			return len(processes(t, p.dir)) == 0 && (p.agent == 0 || !slices.Contains(processes(t, ""), p.agent))
		})
	}
	if t.Failed() {
		t.Log(p.logs())
	}
}

// logs is what pmcd and the agent have logged.
func (p *pmcd) logs() string {
	var b strings.Builder
	for _, name := range []string{"stdout", "pmcd.err", "pmcd.log", "mmv.log"} {
		if text, err := os.ReadFile(filepath.Join(p.dir, "log", "pmcd", name)); err == nil && len(text) > 0 {
			fmt.Fprintf(&b, "--- %s\n%s", name, text)
		}
	}
	return b.String()
}

// child is the process of pmcd's that runs that program, 0 when there is none.
func (p *pmcd) child(t testing.TB, program string) int {
	t.Helper()
	for _, pid := range processes(t, program) {
		if p.isChild(pid) {
			return pid
		}
	}
	return 0
}

// isChild tells whether that process runs (and is no zombie) and pmcd is its parent.
func (p *pmcd) isChild(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// pid (name) state parent …
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0] != "Z" && fields[1] == strconv.Itoa(p.pid)
}

// env is what clients and instrumented programs need to find this pmcd.
func (p *pmcd) env() []string {
	return []string{
		"PCP_CONF=" + filepath.Join(p.dir, "etc", "pcp.conf"),
		fmt.Sprintf("PMCD_PORT=%d", p.port),
		"PMCD_SOCKET=" + filepath.Join(p.dir, "run", "pmcd.socket"),
	}
}

func (p *pmcd) client(t testing.TB, name string, args ...string) *exec.Cmd {
	cmd := command(limit(t), name, args...)
	cmd.Env = append(cmd.Env, p.env()...)
	return cmd
}

// pminfo runs pminfo and gives all it prints; its exit status says little and is left to what it prints.
func (p *pmcd) pminfo(t testing.TB, args ...string) string {
	t.Helper()
	out, err := p.client(t, pminfo, args...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// shared makes a directory that other users can look into, for agents that drop to PCP's user.
func shared(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // it is meant to be read by others
			t.Fatal(err)
		}
	}
	return dir
}

func freePort(t testing.TB) int {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().(*net.TCPAddr).Port
}

var labelsText = regexp.MustCompile(`labels (\{.*\})`)

// withoutHost takes the labels that tell of the machine out of what pminfo prints.
func withoutHost(t testing.TB, text string) string {
	t.Helper()
	return labelsText.ReplaceAllStringFunc(text, func(s string) string {
		var set map[string]json.RawMessage
		if err := json.Unmarshal([]byte(strings.TrimPrefix(s, "labels ")), &set); err != nil {
			t.Errorf("%s: %v", s, err)
			return s
		}
		for _, name := range []string{"domainname", "groupid", "hostname", "machineid", "userid"} {
			delete(set, name)
		}
		return "labels " + string(must[[]byte](t)(json.Marshal(set)))
	})
}

// golden compares with a file of testdata.
func golden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // part of the source tree
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v: make it with -update", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got)\n%s", name, d)
	}
}
