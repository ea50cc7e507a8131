package pmda_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// serving is an agent that serves listeners.
type serving struct {
	stop func()     // and wait
	done chan error // what ServeAll returned
	logs *logs
}

func serveAll(t testing.TB, users []int, listeners ...*pmda.Listener) *serving {
	t.Helper()
	return serveAllOf(t, newSample(), users, listeners...)
}

func serveAllOf(t testing.TB, src pmda.Source, users []int, listeners ...*pmda.Listener) *serving {
	t.Helper()
	kept := &logs{}
	agent := pmda.New(pmda.Config{Name: "sample", Domain: domain}, src, slog.New(kept))
	ctx, cancel := context.WithCancel(t.Context())
	s := &serving{done: make(chan error, 1), logs: kept}
	go func() { s.done <- agent.ServeAll(ctx, users, listeners...) }()
	s.stop = func() {
		cancel()
		select {
		case err := <-s.done:
			if err != nil {
				t.Errorf("ServeAll: %v", err)
			}
			s.done <- nil
		case <-time.After(10 * time.Second):
			t.Error("ServeAll does not return")
		}
	}
	t.Cleanup(s.stop)
	return s
}

func listenUnix(t testing.TB, path string) *pmda.Listener {
	t.Helper()
	l, err := pmda.ListenUnix(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dialAgent connects as pmcd does, or returns why not.
func dialAgent(t testing.TB, network, addr string) (*peer, error) {
	t.Helper()
	c, err := net.Dial(network, addr) //nolint:gosec // the test chooses it
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	p := &peer{Conn: pcpwire.NewConn(c, c), w: c}
	if _, _, err := p.ReadPDU(); err != nil {
		return nil, err
	}
	return p, p.WritePDU(1, pcpwire.NewCreds(0))
}

func mustDial(t testing.TB, network, addr string) *peer {
	t.Helper()
	p, err := dialAgent(t, network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 10 s: " + what)
		}
	}
}

func TestServeAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "socket")
	inet, err := pmda.ListenInet("0", false)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAll(t, nil, listenUnix(t, path), inet)
	if st, err := os.Stat(path); err != nil || st.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("socket: %v, %v", st.Mode(), err)
	}
	if st, err := os.Stat(filepath.Dir(path)); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("its directory: %v, %v", st.Mode(), err)
	}
	var peers []*peer
	for range 3 { // at once
		peers = append(peers, mustDial(t, "unix", path), mustDial(t, "tcp", inet.Addr()))
	}
	for _, p := range peers {
		p.inStep(t)
	}
	for _, p := range peers[1:] { // and one after the other
		_ = p.w.Close()
	}
	mustDial(t, "unix", path).inStep(t)
	peers[0].inStep(t)
	s.stop()
	if _, _, err := peers[0].ReadPDU(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v, want end of file", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// A directory that is made for a socket is open to pmcd whatever the umask.
func TestSocketUmask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "socket")
	old := unix.Umask(0o077)
	l, err := pmda.ListenUnix(path, -1)
	unix.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the end of the test
	if st, err := os.Stat(filepath.Dir(path)); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("directory: %v, %v", st.Mode(), err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o660 {
		t.Errorf("socket: %v, %v", st.Mode(), err)
	}
}

func TestListenInet(t *testing.T) {
	l, err := pmda.ListenInet("0", true)
	if err != nil {
		t.Skip(err) // no IPv6 on this machine
	}
	serveAll(t, nil, l)
	mustDial(t, "tcp", l.Addr()).inStep(t)
	if !strings.HasPrefix(l.Addr(), "[::1]:") {
		t.Errorf("listens on %s, not on the loopback address", l.Addr())
	}
	if _, err := pmda.ListenInet("no-such-service", false); err == nil {
		t.Error("port no-such-service")
	}
}

// pmcd removes the path when it drops an agent.
func TestSocketMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "of-its-own", "socket")
	s := serveAll(t, nil, listenUnix(t, path))
	first := mustDial(t, "unix", path)
	again := func(what string, remove func() error) {
		t.Helper()
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		eventually(t, what, func() bool {
			p, err := dialAgent(t, "unix", path)
			if err == nil {
				p.inStep(t)
			}
			return err == nil
		})
		if st, err := os.Stat(path); err != nil || st.Mode() != fs.ModeSocket|0o660 {
			t.Errorf("after %s: %v, %v", what, st.Mode(), err)
		}
	}
	for range 3 {
		again("socket removed", func() error { return os.Remove(path) })
	}
	again("socket renamed", func() error { return os.Rename(path, path+".old") })
	again("directory renamed", func() error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") })
	again("socket removed from the new directory", func() error { return os.Remove(path) })
	first.inStep(t) // was never disturbed
	if n := len(s.logs.with("is made again")); n != 6 {
		t.Errorf("said %d times, not 6: %v", n, s.logs.all())
	}
}

// A path that cannot be made again is tried again, and said once.
func TestSocketNotMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	path := filepath.Join(dir, "socket")
	s := serveAll(t, nil, listenUnix(t, path))
	file := dir + ".file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	said := func() int { return len(s.logs.with("the path is gone")) }
	eventually(t, "trouble said", func() bool { return said() > 0 })
	if err := os.Remove(dir); err != nil { // once: it would take the new one, too
		t.Fatal(err)
	}
	eventually(t, "tried once more", func() bool {
		_, err := dialAgent(t, "unix", path)
		return err == nil
	})
	if n := said(); n != 1 {
		t.Errorf("said %d times: %v", n, s.logs.all())
	}
}

// A socket that another process has put in the place is not taken away at the end.
func TestSocketOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	s := serveAll(t, nil, listenUnix(t, path))
	mustDial(t, "unix", path).inStep(t)
	other, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + ".other", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // a test's
	other.SetUnlinkOnClose(false)
	if err := os.Rename(path+".other", path); err != nil {
		t.Fatal(err)
	}
	c, err := other.Accept() // the agent asks whether anybody listens
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	s.stop()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

func TestSocketInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l := listenUnix(t, path)
	if _, err := pmda.ListenUnix(path, -1); err == nil || !strings.Contains(err.Error(), path+": another process listens there") {
		t.Errorf("second listener: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("closed, still there: %v", err)
	}
	// What a killed agent leaves is replaced; what is no socket is not.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	if err := listenUnix(t, path).Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pmda.ListenUnix(path, -1); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a file is in the way: %v", err)
	}
}

// inherited makes a listener as systemd passes it.
func inherited(t testing.TB, l net.Listener) (*pmda.Listener, error) {
	t.Helper()
	f, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	t.Cleanup(func() { _ = l.Close() })
	return pmda.NewListener(f)
}

func TestNewListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	ul, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := inherited(t, ul)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAll(t, nil, l)
	mustDial(t, "unix", path).inStep(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "socket removed", func() bool {
		_, err := dialAgent(t, "unix", path)
		return err == nil
	})
	s.stop()

	// Now the path is gone although the inherited socket still listens.
	if l, err = inherited(t, ul); err != nil {
		t.Fatal(err)
	}
	s = serveAll(t, nil, l)
	eventually(t, "path was gone at the start", func() bool {
		_, err := dialAgent(t, "unix", path)
		return err == nil
	})
	s.stop()

	any4, err := net.Listen("tcp4", ":0") //nolint:gosec // the test chooses it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inherited(t, any4); err == nil || !strings.Contains(err.Error(), "not on this host alone") {
		t.Errorf("listener on all addresses: %v", err)
	}
	if l, err = inherited(t, ul); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the first test's socket is still there")
	}
}

// Who cannot make the path of an inherited socket again gives up, so that its maker can.
func TestInheritedLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ul, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := inherited(t, ul)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAll(t, nil, l)
	mustDial(t, "unix", l.Addr()).inStep(t)
	file := dir + ".file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.done:
		wantErr(t, err, unix.ENOTDIR)
		s.done <- nil
	case <-time.After(10 * time.Second):
		t.Fatal("ServeAll does not return")
	}
}

// An inherited socket stays when the agent ends.
func TestInheritedStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	ul, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := inherited(t, ul)
		if err != nil {
			t.Fatal(err)
		}
		s := serveAll(t, nil, l)
		mustDial(t, "unix", path).inStep(t)
		s.stop()
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// TestDialHelper is a peer in a process of its own; see TestPeers.
func TestDialHelper(t *testing.T) {
	path := os.Getenv("PMDA_TEST_DIAL")
	if path == "" {
		return
	}
	p, err := dialAgent(t, "unix", path)
	if err != nil {
		t.Fatal("refused")
	}
	p.inStep(t)
}

func TestPeers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to connect as somebody else")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "peers") //nolint:usetesting // the test chooses it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path, copied := filepath.Join(dir, "socket"), filepath.Join(dir, "test")
	bin, err := os.ReadFile(exe)
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(copied, bin, 0o755)) //nolint:gosec // another user runs it
	}
	if err != nil {
		t.Fatal(err)
	}
	l := listenUnix(t, path)
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // the peers are checked, not the mode
		t.Fatal(err)
	}
	s := serveAll(t, []int{4242}, l)
	for uid, want := range map[uint32]bool{0: true, 4242: true, 4243: false} {
		cmd := exec.Command(copied, "-test.run=^TestDialHelper$") //nolint:gosec // this very program
		cmd.Env = append(os.Environ(), "PMDA_TEST_DIAL="+path)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if (err == nil) != want {
			t.Errorf("user %d: %v\n%s", uid, err, out)
		}
	}
	if n := len(s.logs.with("of user 4243 may not")); n != 1 {
		t.Errorf("%v", s.logs.all())
	}
}

// A peer that does not read its reply does not keep the agent from ending.
func TestUnreadReply(t *testing.T) {
	src := newSample()
	const kind = pcpwire.TextHelp | pcpwire.TextPMID
	src.texts[kind][uint32(heat)] = strings.Repeat("x", 16<<20)
	inet, err := pmda.ListenInet("0", false)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "socket")
	s := serveAllOf(t, src, nil, listenUnix(t, path), inet)
	for network, addr := range map[string]string{"unix": path, "tcp": inet.Addr()} {
		p := mustDial(t, network, addr)
		p.send(t, &pcpwire.TextReq{Ident: uint32(heat), Kind: kind})
		if _, err := p.w.(net.Conn).Read(make([]byte, 1)); err != nil { // it has begun to write
			t.Fatal(err)
		}
	}
	s.stop()
}

// A request that is larger than pmcd's ends the connection before it takes memory.
func TestLargeRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	serveAll(t, nil, listenUnix(t, path))
	p := mustDial(t, "unix", path)
	p.want(t, &pcpwire.TextReq{Ident: uint32(load), Kind: pcpwire.TextOneLine | pcpwire.TextPMID},
		&pcpwire.Text{Ident: uint32(load), Text: []byte("load average")})
	header := raw(pcpwire.PDUFetch)
	binary.BigEndian.PutUint32(header, 5<<20)
	if err := p.WriteBytes(header); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.ReadPDU(); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%v, want the end of the connection", err)
	}
}

// More connections than anybody needs do not use up the process's descriptors.
func TestTooManyConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	s := serveAll(t, nil, listenUnix(t, path))
	var refused, served int
	for range 80 {
		if _, err := dialAgent(t, "unix", path); err != nil {
			refused++
		} else {
			served++
		}
	}
	if served != 64 || refused != 16 {
		t.Errorf("%d served, %d refused: %v", served, refused, s.logs.all()[:1])
	}
}

// pmcd's user gets in by the group of the socket.
func TestSocketGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a file to any group")
	}
	path := filepath.Join(t.TempDir(), "socket")
	l, err := pmda.ListenUnix(path, 4242)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || st.Gid != 4242 || st.Mode != unix.S_IFSOCK|0o660 {
		t.Errorf("group %d, mode %o, %v", st.Gid, st.Mode, err)
	}
}
