package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed client.py
var clientPy string

// Programs of PCP, where they are if not in the path.
const (
	pcpPrograms = "/usr/lib/pcp/bin:/usr/libexec/pcp/bin"
	systemPy    = "/usr/bin/python3" // PCP's module is for it
)

// pmcd is a private pmcd with the agent on a pipe, a client of its own and a pmlogger.
type pmcd struct {
	s      *stage
	port   int
	cmd    *exec.Cmd
	agent  *agent
	done   chan struct{}
	py     *exec.Cmd
	logger *exec.Cmd
	spec   string // file

	mu      sync.Mutex // of the client: one order at a time
	in      io.WriteCloser
	answers []finding // to the order
	ready   chan bool // an order has been done; closed at the client's end
	end     finding
}

// finding is a line that the client says.
type finding struct {
	Wrong, Missed, Blinked string
	File                   string  // that has blinked
	At                     float64 // when, in seconds since 1970
	Order                  bool    // is about an order
	Done, End              bool
	Late                   float64
	Fetches                int64
	Slowest                float64
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// startPMCD starts all of it; the watched files are there.
func startPMCD(s *stage) (*pmcd, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // for its port only
	if err != nil {
		return nil, err
	}
	p := &pmcd{s: s, port: l.Addr().(*net.TCPAddr).Port, done: make(chan struct{}), ready: make(chan bool, 1)}
	_ = l.Close()
	log := filepath.Join(s.dir, "log", "pmcd", "mmv.log")
	p.cmd = command("test/pmcd.sh", s.dir, strconv.Itoa(p.port), s.opts.agent, "-d", "70", "-l", log, "--file-metrics=all")
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := p.cmd.Wait()
		close(p.done)
		if !p.agent.stopping.Load() {
			s.r.fail(death, "pmcd: %v", err)
			s.cancel()
		}
	}()
	p.agent = &agent{r: s.r, name: s.name + "/pmcd", log: log, mmv: s.mmv, done: make(chan struct{}), fatal: s.cancel}
	if err := p.findAgent(); err != nil {
		return p, err
	}
	go p.watch()
	store, err := p.client("pmstore", "-h", "127.0.0.1", "pmcd.control.timeout", "60") // what is late, the clients judge
	if err != nil {
		return p, err
	}
	if out, err := store.CombinedOutput(); err != nil {
		return p, fmt.Errorf("pmstore: %w: %s", err, out)
	}
	if err := p.startClient(); err != nil {
		return p, err
	}
	return p, p.startLogger()
}

// findAgent waits for the agent and learns its pid.
func (p *pmcd) findAgent() error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, f := range files {
			line, _ := os.ReadFile(f)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if bytes.HasPrefix(line, []byte(p.s.opts.agent+"\x00")) && p.isChild(pid) {
				p.agent.pid = pid
				p.agent.starved = newStarvation(pid, p.done)
				return nil
			}
		}
	}
	return errors.New("pmcd does not start the agent")
}

// isChild tells whether pmcd is the parent of that process, which runs.
func (p *pmcd) isChild(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, …
	return f[0] != "Z" && f[1] == strconv.Itoa(p.cmd.Process.Pid)
}

// watch notices when the agent ends.
func (p *pmcd) watch() {
	for p.isChild(p.agent.pid) {
		select {
		case <-p.done:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !p.agent.stopping.Load() {
		p.s.r.fail(death, "pmcd's agent, process %d, is gone\n%s", p.agent.pid, p.agent.tail())
		p.s.cancel()
	}
}

// client prepares a client of this pmcd.
func (p *pmcd) client(name string, args ...string) (*exec.Cmd, error) {
	path := name
	if !filepath.IsAbs(name) {
		for _, dir := range filepath.SplitList(pcpPrograms + ":/usr/bin") {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				path = filepath.Join(dir, name)
				break
			}
		}
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: run make setup", err)
	}
	cmd := command(path, args...)
	cmd.Env = append(cmd.Env, "PCP_CONF="+filepath.Join(p.s.dir, "etc", "pcp.conf"), fmt.Sprintf("PMCD_PORT=%d", p.port),
		"PMCD_REQUEST_TIMEOUT=300", "PMCD_CONNECT_TIMEOUT=300") // what is late, is judged here
	cmd.Dir = p.s.dir
	return cmd, nil
}

// specOf is a file as client.py knows it.
func specOf(w watched) map[string]any {
	return map[string]any{
		"names": w.c.names(w.file), "items": w.c.items, "tag": w.c.tag, "insts": w.c.insts, "live": w.live, "mark": w.c.mark,
	}
}

func (p *pmcd) startClient() error {
	specs := make([]map[string]any, 0, len(p.s.watched))
	for _, w := range p.s.watched {
		specs = append(specs, specOf(w))
	}
	b, err := json.Marshal(specs)
	if err != nil {
		return err
	}
	p.spec = filepath.Join(p.s.dir, "spec")
	if err := os.WriteFile(p.spec, b, 0o600); err != nil {
		return err
	}
	if p.py, err = p.client(systemPy, "-c", clientPy, "live", strconv.Itoa(p.port), p.spec); err != nil {
		return err
	}
	out, err := p.py.StdoutPipe()
	if err != nil {
		return err
	}
	if p.in, err = p.py.StdinPipe(); err != nil {
		return err
	}
	p.py.Stderr = os.Stderr
	if err := p.py.Start(); err != nil {
		return err
	}
	go p.listen(out, p.ready)
	if !<-p.ready {
		return errors.New("the client of pmcd does not start")
	}
	return nil
}

// listen takes in what a client.py says, until its end.
func (p *pmcd) listen(out io.Reader, ready chan<- bool) {
	defer close(ready)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var f finding
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			p.s.r.fail(wrong, "client.py says %q", lines.Text())
			continue
		}
		switch {
		case f.Order:
			p.answers = append(p.answers, f)
		case f.Wrong != "":
			p.s.r.fail(wrong, "%s: through pmcd: %s", p.s.name, f.Wrong)
		case f.Missed != "":
			p.s.r.fail(missed, "%s: through pmcd: %s", p.s.name, f.Missed)
		case f.Blinked != "":
			p.blinked(f)
		case f.Late > 0:
			p.s.r.late(p.agent, seconds(f.Late), "through pmcd")
		case f.Done:
			ready <- true
		case f.End:
			p.end = f
		}
	}
}

// blinked judges that a metric of a watched file was not there, now or when pmlogger asked.
func (p *pmcd) blinked(f finding) {
	for _, w := range p.s.watched {
		if w.c.names(w.file)[0] == f.File && !w.flux.long(time.UnixMicro(int64(f.At*1e6))) {
			p.s.r.fail(wrong, "%s: through pmcd: %s", p.s.name, f.Blinked)
		}
	}
}

// order has the client of pmcd do something about a file; false when it is gone.
func (a *actor) order(file string, what map[string]any) bool {
	p := a.pmcd
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = nil
	b, err := json.Marshal(what)
	if err != nil {
		return false
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return false
	}
	ok := <-p.ready
	for _, f := range p.answers {
		if f.Missed != "" {
			a.fail(missed, file, "through pmcd: %s", f.Missed)
		} else {
			a.fail(wrong, file, "through pmcd: %s", f.Wrong)
		}
	}
	return ok
}

// startLogger has pmlogger log the watched files.
func (p *pmcd) startLogger() error {
	var config strings.Builder
	config.WriteString("log mandatory on 100 milliseconds {\n")
	for _, w := range p.s.watched {
		for _, name := range w.c.names(w.file) {
			fmt.Fprintf(&config, "\t%s\n", name)
		}
	}
	path := filepath.Join(p.s.dir, "pmlogger.conf")
	if err := os.WriteFile(path, []byte(config.String()+"}\n"), 0o600); err != nil {
		return err
	}
	if err := mkdir(filepath.Join(p.s.dir, "tmp", "pmlogger"), 0o755); err != nil {
		return err
	}
	var err error
	p.logger, err = p.client("pmlogger", "-h", "127.0.0.1", "-c", path, "-l", filepath.Join(p.s.dir, "pmlogger.log"),
		filepath.Join(p.s.dir, "archive"))
	if err != nil {
		return err
	}
	p.logger.Stderr = os.Stderr
	return p.logger.Start()
}

// finish ends the clients, and checks that they did their work.
func (p *pmcd) finish() error {
	_, _ = io.WriteString(p.in, `{"quit":true}`+"\n")
	for range p.ready { // until it is closed
	}
	if err := p.py.Wait(); err != nil || !p.end.End {
		p.s.r.fail(wrong, "%s: the client of pmcd: %v", p.s.name, err)
	}
	p.py = nil
	p.s.r.requests.Add(p.end.Fetches)
	p.s.r.count("fetches through pmcd", int(p.end.Fetches))
	most(&p.s.r.slowest, seconds(p.end.Slowest))
	_ = p.logger.Process.Signal(syscall.SIGTERM)
	err := p.logger.Wait()
	p.logger = nil
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.Exited() && exit.ExitCode() != 0) {
		log, _ := os.ReadFile(filepath.Join(p.s.dir, "pmlogger.log"))
		p.s.r.fail(wrong, "%s: pmlogger: %v\n%s", p.s.name, err, log)
		return nil
	}
	check, err := p.client(systemPy, "-c", clientPy, "archive", filepath.Join(p.s.dir, "archive"), p.spec)
	if err != nil {
		return err
	}
	out, err := check.StdoutPipe()
	if err != nil {
		return err
	}
	check.Stderr = os.Stderr
	if err := check.Start(); err != nil {
		return err
	}
	p.end = finding{}
	ready := make(chan bool)
	p.listen(out, ready)
	if err := check.Wait(); err != nil || p.end.Fetches == 0 {
		p.s.r.fail(wrong, "%s: the archive has %d records: %v", p.s.name, p.end.Fetches, err)
	}
	p.s.r.count("records of pmlogger", int(p.end.Fetches))
	return nil
}

// stop ends what still runs.
func (p *pmcd) stop() {
	if p == nil {
		return
	}
	p.agent.stopping.Store(true)
	for _, cmd := range []*exec.Cmd{p.py, p.logger} {
		if cmd != nil && cmd.Process != nil {
			kill(cmd)
		}
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	// The agent ends with its pipe.
	for deadline := time.Now().Add(10 * time.Second); p.agent.pid != 0 && exists(p.agent.pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.s.r.fail(death, "pmcd's agent, process %d, does not end", p.agent.pid)
			return
		}
	}
}

func exists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// throughPMCD changes files and asks through pmcd.
func throughPMCD(a *actor) {
	for a.more() {
		file := fmt.Sprintf("%s%d", a.name, a.rng.IntN(3))
		c := a.make(file)
		a.state(file).was = c
		if !a.viaPMCD(file, c) {
			return
		}
		a.r.count("changes asked for through pmcd", 1)
	}
}

func (a *actor) viaPMCD(file string, c *contents) bool {
	image := c.image().Build()
	w := rewriting{true, a.rng.IntN(2) == 0, a.rng.IntN(2) == 0}
	f, err := w.begin(a.path(file), image)
	if err != nil {
		a.must(err)
		return false
	}
	defer f.close()
	a.must(f.complete())
	a.did("wrote contents %d (generation %d, cluster %d, items %v) to %s %v", c.mark, c.gen, c.cluster, c.items, file, w)
	if !a.order(file, specOf(watched{file: file, c: c})) {
		return false
	}
	if a.rng.IntN(2) == 0 {
		return true
	}
	remove(a.path(file))
	a.did("removed %s", file)
	return a.order(file, map[string]any{"gone": c.names(file)[0]})
}
