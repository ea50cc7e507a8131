package test

import (
	"bufio"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pmdammv/test/mmvimage"
	"pmdammv/test/vt"
)

var screenshot = flag.String("screenshot", "", "write a picture of `pmdammv watch` into this file")

// session is a program in a terminal.
type session struct {
	*vt.Screen
	master *os.File
	cmd    *exec.Cmd
	ended  chan error
}

// inTerminal starts a program in a terminal of its own.
func inTerminal(t *testing.T, w, h int, cmd *exec.Cmd) *session {
	t.Helper()
	master, tty, err := vt.Open(w, h)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &session{vt.NewScreen(w, h), master, cmd, make(chan error, 1)}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(s, master) // ends with an error when nobody has the terminal any more
	}()
	go func() {
		s.ended <- cmd.Wait()
		_ = tty.Close()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-copied
		_ = master.Close()
	})
	return s
}

// shows waits until the screen shows a text.
func (s *session) shows(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q on\n%s", text, s.String())
		}
	}
}

func (s *session) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// end waits for the program's end.
func (s *session) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// watch is `pmdammv watch` with what a host's environment says.
func watch(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(limit(t), must[string](t)(agentPath()), append([]string{"watch", "-t", "50msec"}, args...)...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm-256color"), env...)
	return cmd
}

// TestWatch: files come and go before the eyes of somebody at a terminal, who
// makes it smaller and stops the program.
func TestWatch(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	write(t, filepath.Join(mmv, "auto"), goodImages()["auto1"])
	s := inTerminal(t, 100, 24, watch(t, env))
	s.shows(t, "mmv.auto.value")
	write(t, filepath.Join(mmv, "full"), goodImages()["full3"])
	s.shows(t, "mmv.full.m.count")
	s.shows(t, "full: loaded")
	s.press(t, "f\x1b[F") // more room, and the end
	s.shows(t, "mmv.full.t9.single")
	if err := os.Remove(filepath.Join(mmv, "full")); err != nil {
		t.Fatal(err)
	}
	s.press(t, "f")
	s.shows(t, "full: gone")

	s.Resize(50, 12)
	if err := vt.Resize(s.master, 50, 12); err != nil {
		t.Fatal(err)
	}
	s.shows(t, "mmv.auto.value")
	s.shows(t, "q quit")
	if line, _, _ := strings.Cut(s.String(), "\n"); len([]rune(line)) > 50 {
		t.Errorf("too wide: %q", line)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end(t)
	if u := s.Unknown(); s.Alternate() || len(u) > 0 {
		t.Errorf("the terminal is left with the other screen (%v), or was sent %q", s.Alternate(), u)
	}
}

// TestColours: none with NO_COLOR.
func TestColours(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	write(t, filepath.Join(mmv, "bad-name"), goodImages()["auto1"])
	colours := regexp.MustCompile(`fill="#(ff6b68|7fd88f|e5c07b|56b6c2)"`)
	for _, c := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		s := inTerminal(t, 90, 20, watch(t, append(env, c.env)))
		s.shows(t, "bad-name: rejected")
		if got := colours.MatchString(s.SVG()); got != c.want {
			t.Errorf("%s: colours %v, want %v", c.env, got, c.want)
		}
		s.press(t, "q")
		s.end(t)
	}
}

// TestWatchUnits: counters are turned into rates of the units that pmval says.
func TestWatchUnits(t *testing.T) {
	t.Parallel()
	pmval := filepath.Join(conf(t, "PCP_BIN_DIR"), "pmval")
	need(t, pmval)
	p := startPMCD(t)
	img := mmvimage.New(2)
	for i, units := range []uint32{
		0, 1 << 20, 1<<20 | 3<<8, 1<<28 | 2<<16, 1<<24 | 2<<12, 1<<24 | 5<<12, 1<<28 | 0xf<<24 | 3<<12, 1<<24 | 1<<20 | 2<<12, 2 << 24,
	} {
		img.Metric(mmvimage.Metric{Name: "m" + strconv.Itoa(i), Item: uint32(i), Type: mmvimage.U64, Sem: mmvimage.Counter, Units: units})
	}
	write(t, filepath.Join(p.mmv, "units"), img.Build())
	converted := regexp.MustCompile(`\(converting to (.*)\)`)
	out := string(must[[]byte](t)(p.client(t, must[string](t)(agentPath()), "watch", "-s1", "-t10msec", "mmv.units").Output()))
	n := 0
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		f := strings.Split(s.Text(), "\t")
		if len(f) != 5 {
			continue
		}
		n++
		text := output(t, "env", append(p.env(), pmval, "-h", "127.0.0.1:"+strconv.Itoa(p.port), "-s1", "-t0.01", f[1])...)
		all := converted.FindAllStringSubmatch(text, -1)
		if len(all) != 2 { // of semantics and of units
			t.Fatalf("pmval %s:\n%s", f[1], text)
		}
		if want := all[1][1]; want != f[4] && (want != "none" || f[4] != "") {
			t.Errorf("%s: units %q, with pmval %q", f[1], f[4], want)
		}
	}
	if n != 9 {
		t.Errorf("%d metrics\n%s", n, out)
	}
}

// TestScreenshot makes the picture that is asked for with -screenshot: the
// demo's two programs, and a file that nobody can use.
func TestScreenshot(t *testing.T) {
	if *screenshot == "" {
		t.Skip("only with -screenshot")
	}
	need(t, python)
	dir := shared(t)
	mmv := filepath.Join(dir, "mmv")
	config := filepath.Join(dir, "pcp.conf")
	if err := os.WriteFile(config, []byte("PCP_TMP_DIR="+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(mmv, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"PCP_CONF=" + config, "PCP_TMP_DIR=" + dir}
	for _, args := range [][]string{{must[string](t)(bakeryPath())}, {python, must[string](t)(filepath.Abs("demo/shop.py"))}} {
		cmd := command(limit(t), args[0], args[1:]...)
		cmd.Env = append(cmd.Env, env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}()
	}
	cmd := watch(t, env, "-t", "1sec", "--dir", "mmv")
	cmd.Dir = dir
	s := inTerminal(t, 92, 22, cmd)
	s.shows(t, "mmv.shop")
	s.shows(t, "mmv.bakery")
	write(t, filepath.Join(mmv, "client-1"), goodImages()["auto1"])
	s.shows(t, "client-1: rejected")
	time.Sleep(2500 * time.Millisecond)                                       // for rates to settle; this is no check
	if err := os.WriteFile(*screenshot, []byte(s.SVG()), 0o644); err != nil { //nolint:gosec // a directory of the test
		t.Fatal(err)
	}
	t.Log("\n" + s.String())
	s.press(t, "q")
	s.end(t)
}

// TestWatchSuspended: while it is stopped, the terminal is as it was before,
// every time.
func TestWatchSuspended(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	write(t, filepath.Join(mmv, "auto"), goodImages()["auto1"])
	s := inTerminal(t, 90, 20, watch(t, env, "-t", "20msec"))
	pid := s.cmd.Process.Pid
	for range 20 {
		s.shows(t, "mmv.auto.value")
		s.press(t, "\x1a")
		waitUntil(t, "stop", func() bool {
			b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			return err == nil && strings.Contains(string(b), ") T ")
		})
		// What was written before the stop is there; nothing is written after it.
		waitUntil(t, "normal screen", func() bool { return !s.Alternate() })
		if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "other screen", s.Alternate)
	}
	s.press(t, "q")
	s.end(t)
}

// TestWatchLines: the name of a file cannot make a line of its own.
func TestWatchLines(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	write(t, filepath.Join(mmv, "a\nb\tc"), goodImages()["auto1"])
	cmd := watch(t, env, "--plain", "-s", "1")
	out, err := cmd.Output()
	if err != nil || strings.Count(string(out), "\n# ")+1 != strings.Count(string(out), "\n") || !strings.Contains(string(out), `a\nb\tc: rejected`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWatchUnread: the second signal ends what writes to somebody who does not read.
func TestWatchUnread(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	write(t, filepath.Join(mmv, "full"), goodImages()["full3"])
	cmd := watch(t, env, "-r", "-t", "1msec")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := cmd.Process.Wait()
		ended <- err
	}()
	waitUntil(t, "end", func() bool {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return len(ended) > 0
	})
}
