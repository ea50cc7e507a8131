package test

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pmdammv/pkg/pcpwire"
)

// setEntry gives pmcd another mmv entry, and waits until the metrics are this agent's.
func (i *installable) setEntry(t testing.TB, entry string) {
	t.Helper()
	writeText(t, i.conf, regexp.MustCompile(`(?m)^mmv .*$`).ReplaceAllString(i.text(t), entry))
	i.hangup(t)
	i.mustBe(t, "ours")
}

// rejoin makes pmcd connect to an agent that has come back. A pmcd that runs as root removes the path of the lost
// agent's socket just before it connects, so it may have to be told twice.
func (i *installable) rejoin(t testing.TB, agent *daemon) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		i.hangup(t)
		i.from(t) // pmcd heeds the signal when somebody asks
		if i.from(t) == "ours" {
			return
		}
		agent.mustRun(t)
		if time.Now().After(deadline) {
			t.Fatalf("pmcd does not find the agent again\n%s", i.logs())
		}
	}
}

// foundFiles is what the agent says after its first look.
var foundFiles = regexp.MustCompile(` files? with \d+ metrics? in `)

// startListening starts an agent and waits until it listens.
func startListening(t testing.TB, p *pmcd, args ...string) *daemon {
	t.Helper()
	d := startAgent(t, p, args...)
	log := filepath.Join(p.dir, "log", "pmcd", "mmv.log")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		// It listens before it has looked at the directory, and it says what it found there.
		if text, _ := os.ReadFile(log); foundFiles.Match(text) {
			return d
		}
		d.mustRun(t)
		if time.Now().After(deadline) {
			t.Fatalf("the agent is not ready\n%s", p.logs())
		}
	}
}

// TestSocket: pmcd finds the agent at a socket, at each kind of socket, and finds it again after either has gone.
func TestSocket(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"unix", "inet", "ipv6"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			i := newInstallable(t)
			var entry string
			var args []string
			path := filepath.Join(i.dir, "of-its-own", "mmv.socket")
			// pmcd runs as root here, and removes the path: the agent, which does not, must be able to make it again.
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // pmcd may run as another user
				t.Fatal(err)
			}
			uid, _ := pcpIDs(t)
			if err := os.Chown(filepath.Dir(path), must[int](t)(strconv.Atoi(uid)), 0); err != nil {
				t.Fatal(err)
			}
			switch port := strconv.Itoa(freePort(t)); kind {
			case "unix":
				args, entry = []string{"-u", path}, "mmv 70 socket unix "+path
			case "inet":
				args, entry = []string{"-i", port}, "mmv 70 socket inet "+port
			case "ipv6":
				hosts := must[[]byte](t)(os.ReadFile("/etc/hosts"))
				if !regexp.MustCompile(`(?m)^::1\s.*\blocalhost\b`).Match(hosts) {
					t.Skip("needs ::1 as localhost in /etc/hosts: that is where pmcd looks for the agent")
				}
				args, entry = []string{"-6", port}, "mmv 70 socket ipv6 "+port
			}
			agent := startListening(t, i.pmcd, args...)
			i.setEntry(t, entry)
			write(t, filepath.Join(i.mmv, "full"), fullImage(3).Build())
			if out := i.pminfo(t, "-f", "mmv.full"); !strings.Contains(out, "mmv.full.") || strings.Contains(out, "No value") {
				t.Errorf("pminfo -f mmv.full\n%s", out)
			}
			if kind == "unix" {
				st := must[fs.FileInfo](t)(os.Stat(path))
				if st.Mode() != fs.ModeSocket|0o660 {
					t.Errorf("the socket is %v", st.Mode())
				}
			}

			// The agent goes, even without a word, and comes back.
			for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				agent.kill(t, sig)
				agent = startListening(t, i.pmcd, args...)
				i.rejoin(t, agent)
			}
			if code := agent.cmd.ProcessState; code != nil {
				t.Errorf("the agent has ended: %v", code)
			}

			// pmcd lets go of the agent, which takes its path away, and comes back.
			i.setEntry(t, "mmv 70 pipe binary "+i.here+"/pmdammv -d 70")
			writeText(t, i.conf, regexp.MustCompile(`(?m)^mmv .*$`).ReplaceAllString(i.text(t), entry))
			i.rejoin(t, agent)
			agent.mustRun(t)
			agent.kill(t, syscall.SIGTERM)
			if code := agent.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("SIGTERM: exit status %d", code)
			}
		})
	}
}

// TestSocketCommand: pmcd starts the agent itself, and then connects.
func TestSocketCommand(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	path := filepath.Join(i.dir, "of-its-own", "mmv.socket")
	agent := filepath.Join(i.here, "pmdammv")
	i.setEntry(t, "mmv 70 socket unix "+path+" "+agent+" -d 70 -u "+path)
	pid := i.child(t, agent)
	if pid == 0 {
		t.Fatalf("pmcd runs no %s\n%s", agent, i.logs())
	}
	// It stays when pmcd lets go of it.
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// pcpIDs are those of PCP's user and group.
func pcpIDs(t testing.TB) (uid, gid string) {
	t.Helper()
	return lookUp(t, "/etc/passwd", conf(t, "PCP_USER")), lookUp(t, "/etc/group", conf(t, "PCP_GROUP"))
}

func lookUp(t testing.TB, file, name string) string {
	t.Helper()
	for line := range strings.Lines(string(must[[]byte](t)(os.ReadFile(file)))) {
		if f := strings.Split(strings.TrimSpace(line), ":"); f[0] == name && len(f) > 2 {
			return f[2]
		}
	}
	t.Fatalf("no %s in %s", name, file)
	return ""
}

// TestPassedSockets: the agent answers on all sockets that it is started with, as systemd does, and does not take
// those that are another process's.
func TestPassedSockets(t *testing.T) {
	t.Parallel()
	for _, mine := range []bool{true, false} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		pid := "$$"
		if !mine {
			pid = "1"
		}
		cmd := command(ctx, "sh", "-c", `LISTEN_PID=`+pid+` LISTEN_FDS=2 exec "$@"`, "sh", must[string](t)(agentPath()),
			"-d", "70", "-U", strconv.Itoa(os.Getuid()), "-l", filepath.Join(dir, "mmv.log"))
		cmd.Env = append(os.Environ(), "PCP_TMP_DIR="+dir, "PCP_VAR_DIR="+dir, "PCP_LOG_DIR="+dir)
		var listeners []*net.UnixListener
		for _, name := range []string{"a", "b"} {
			l := must[*net.UnixListener](t)(net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"}))
			l.SetUnlinkOnClose(false)
			listeners = append(listeners, l)
			cmd.ExtraFiles = append(cmd.ExtraFiles, must[*os.File](t)(l.File()))
		}
		if !mine { // then it serves the pipe
			var out bytes.Buffer
			cmd.Stdin, cmd.Stdout = strings.NewReader("\x00\x00\x00\x14\x00\x00\x70\x0c\x00\x00\x00\x00\x00\x00\x00\x01\x01\x02\x00\x00"), &out // its creds
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
			if out.Len() != 20 {
				t.Errorf("%d bytes on standard output", out.Len())
			}
			cancel()
			continue
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for i, l := range listeners {
			_ = l.Close() // nobody but the agent listens
			_ = cmd.ExtraFiles[i].Close()
			c := must[net.Conn](t)(net.Dial("unix", l.Addr().String()))
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			h, pdu, err := pcpwire.NewConn(c, c).ReadPDU()
			if _, ok := pdu.(*pcpwire.Creds); !ok || err != nil {
				t.Errorf("%v %v %v", h, pdu, err)
			}
			_ = c.Close()
		}
		cancel()
		_ = cmd.Wait()
	}
}
