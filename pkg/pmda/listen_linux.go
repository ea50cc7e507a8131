package pmda

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/pcpwire"
)

const (
	// backlog is how many connections may wait to be accepted.
	backlog = 16
	// maxConns bounds the connections that are served at once. Each pmcd has one.
	maxConns = 64
	// greetTime is how long a peer may take to answer CREDS: pmcd does at once.
	greetTime = time.Minute
	// stopTime is how long, at the end, a peer may take to read its last reply.
	stopTime = 2 * time.Second
	// maxRequest bounds what a peer may send at once, in bytes. pmcd takes 64 KiB
	// from its clients, unless it is told otherwise (-L).
	maxRequest = 4 << 20
)

// A Listener is a socket at which pmcd connects to a running agent, where
// pmcd.conf says "socket". Make it with [ListenUnix], [ListenInet] or
// [NewListener], and pass it to [Agent.ServeAll].
type Listener struct {
	l    net.Listener
	unix *unixSocket // nil for an inet socket
}

// ListenInet listens on the loopback address, of IPv4 or (six) of IPv6, at a
// port given by number or by the name of a service.
func ListenInet(port string, six bool) (*Listener, error) {
	network, ip := "tcp4", net.IPv4(127, 0, 0, 1)
	if six {
		network, ip = "tcp6", net.IPv6loopback
	}
	n, err := net.LookupPort(network, port)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	l, err := net.ListenTCP(network, &net.TCPAddr{IP: ip, Port: n}) // net.Listen brings a DNS client along
	if err != nil {
		return nil, err
	}
	return &Listener{l: l}, nil
}

// NewListener takes over a listening socket, such as systemd passes: a unix
// socket, or one of TCP at a loopback address. The file is closed.
func NewListener(f *os.File) (*Listener, error) {
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("inherited socket %s: %w", f.Name(), err)
	}
	switch a := l.Addr().(type) {
	case *net.UnixAddr:
		return &Listener{l: l, unix: &unixSocket{path: a.Name}}, nil
	case *net.TCPAddr:
		if a.IP.IsLoopback() {
			return &Listener{l: l}, nil
		}
	}
	_ = l.Close()
	return nil, fmt.Errorf("inherited socket %s: %s is not on this host alone", f.Name(), l.Addr())
}

// Addr is where it listens: a path, or a host and port.
func (l *Listener) Addr() string {
	if l.unix != nil {
		return l.unix.path
	}
	return l.l.Addr().String()
}

// Close is for a listener that was not passed to [Agent.ServeAll]. A unix
// socket that [ListenUnix] made goes away, if that is permitted.
func (l *Listener) Close() error {
	if l.unix != nil {
		l.unix.remove()
	}
	return l.l.Close()
}

// ServeAll serves every connection to these listeners until ctx is cancelled,
// and closes them. Of a unix socket's peers it serves those that run as root,
// as the process's own user or as one of the users. A unix socket whose path
// is gone (pmcd removes it when it drops an agent, if it may) is bound again.
// Users are numeric user ids; pmcd, also one that root has started, connects as
// PCP_USER (usually pcp). An inet socket cannot tell users: all of this host may
// connect to it.
//
// It serves 64 connections at once, and requests of up to 4 MiB.
//
// When it returns, all connections are closed; a peer that does not read its
// reply delays that by two seconds. The error is nil unless a
// listener is of no more use, such as an inherited one whose path is gone and
// cannot be made by this process.
func (a *Agent) ServeAll(ctx context.Context, users []int, listeners ...*Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{Agent: a, ctx: ctx, users: append([]int{0, os.Geteuid()}, users...)}
	errs := make(chan error, len(listeners))
	for _, l := range listeners {
		s.wg.Go(func() {
			errs <- s.listen(l)
			cancel()
		})
	}
	s.wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

type server struct {
	*Agent
	ctx   context.Context //nolint:containedctx // one call's: that of ServeAll
	users []int
	conns atomic.Int32
	wg    sync.WaitGroup
}

// listen accepts on l, and on what takes its place when its path is gone.
func (s *server) listen(l *Listener) error {
	if l.unix != nil {
		return s.guard(l.l, l.unix)
	}
	defer context.AfterFunc(s.ctx, func() { _ = l.l.Close() })()
	return s.accept(l.l)
}

// accept serves the connections to l until it is closed.
func (s *server) accept(l net.Listener) error {
	for delay := time.Millisecond; ; {
		c, err := l.Accept()
		switch {
		case err == nil:
			delay = time.Millisecond
			s.wg.Go(func() { s.serve(c) })
		case s.ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return nil
		case transient(err):
			s.log.Warn("accept: " + err.Error())
			select {
			case <-s.ctx.Done():
			case <-time.After(delay):
			}
			delay = min(2*delay, time.Second)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// transient reports whether accept may succeed later.
func transient(err error) bool {
	return slices.ContainsFunc([]error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, unix.EINTR, unix.EPROTO, unix.EPERM},
		func(e error) bool { return errors.Is(err, e) })
}

// serve serves one connection.
func (s *server) serve(c net.Conn) {
	fd, err := takeOver(c)
	if err != nil {
		s.log.Error("accepted socket: " + err.Error())
		return
	}
	f := NewSocket(fd)
	defer f.Close() //nolint:errcheck // the last use of it
	peer, err := s.admit(c, fd)
	if err != nil {
		s.log.Warn("connection refused: " + err.Error())
		return
	}
	if s.conns.Add(1) > maxConns {
		s.conns.Add(-1)
		s.log.Warn("connection refused: there are too many", "limit", maxConns)
		return
	}
	defer s.conns.Add(-1)
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(stopTime, func() { _ = f.Close() }) })()
	s.log.Debug("connected to " + peer)
	err = s.Serve(s.ctx, pcpwire.NewConn(&greeted{FD: f}, f, pcpwire.WithMaxBody(maxRequest)))
	if err != nil {
		s.log.Debug("connection to "+peer+" ended", "error", err)
	} else {
		s.log.Debug("connection to " + peer + " ended")
	}
}

// takeOver makes a blocking descriptor of a connection, and closes that.
func takeOver(c net.Conn) (fd int, err error) {
	defer c.Close() //nolint:errcheck // a duplicate is in use
	raw, err := c.(interface {
		SyscallConn() (syscall.RawConn, error)
	}).SyscallConn()
	if err != nil {
		return -1, err
	}
	if e := raw.Control(func(p uintptr) { fd, err = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 3) }); e != nil {
		return -1, e
	}
	if err != nil {
		return -1, os.NewSyscallError("dup", err)
	}
	return fd, os.NewSyscallError("set blocking", unix.SetNonblock(fd, false))
}

// admit tells who the peer is, and whether it may ask.
func (s *server) admit(c net.Conn, fd int) (peer string, err error) {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		if !a.IP.IsLoopback() {
			return "", fmt.Errorf("%v is another host", a)
		}
		return a.String(), nil
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return "", os.NewSyscallError("getsockopt", err)
	}
	peer = "process " + strconv.Itoa(int(cred.Pid)) + " of user " + strconv.Itoa(int(cred.Uid))
	if !slices.Contains(s.users, int(cred.Uid)) {
		return "", errors.New(peer + " may not")
	}
	return peer, nil
}

// greeted is an FD whose first Read does not wait for ever.
type greeted struct {
	*FD
	done bool
}

func (g *greeted) Read(p []byte) (int, error) {
	if !g.done {
		g.done = true
		if err := g.in.wait(unix.POLLIN, greetTime); err != nil {
			return 0, err
		}
	}
	return g.FD.Read(p)
}

// wait waits until the descriptor is ready for that, or closed.
func (d *descriptor) wait(events int16, limit time.Duration) error {
	if err := d.acquire(); err != nil {
		return err
	}
	defer d.release()
	deadline := time.Now().Add(limit)
	for {
		left := unix.NsecToTimespec(max(0, time.Until(deadline).Nanoseconds()))
		n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(d.fd), Events: events}}, &left, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n == 0:
			return os.ErrDeadlineExceeded
		default:
			return nil
		}
	}
}
