package pmda

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"pmdammv/pkg/pcpwire"

	"golang.org/x/sys/unix"
)

// pipeSize is what a pipe can hold if the kernel lets it: by default a large
// reply takes a switch to pmcd and back every 64 KiB.
const pipeSize = 1 << 20

// An FD is the connection of an agent to pmcd on its own descriptors. It reads
// and writes them with blocking system calls: at one request at a time that
// takes half as long as the runtime's poller.
//
// One goroutine may read while another writes. Close may be called at any
// time.
type FD struct {
	in, out *descriptor // the same for a socket
}

// NewPipe makes an FD of two descriptors, such as 0 and 1 of an agent started
// by pmcd, and owns them from then on. Pipes are enlarged if possible.
//
// Nothing else may read from or write to them. A write to a pipe whose other end
// is closed is an EPIPE error; what goes through os.Stdout or os.Stderr ends the
// process then, unless that ignores SIGPIPE.
func NewPipe(in, out int) *FD {
	for _, fd := range [...]int{in, out} {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize) // not a pipe, or over the user's limit: works as well
	}
	return &FD{in: &descriptor{fd: in}, out: &descriptor{fd: out}}
}

// NewSocket makes an FD of a connected socket, and owns it from then on.
func NewSocket(fd int) *FD {
	d := &descriptor{fd: fd}
	return &FD{in: d, out: d}
}

// Conn returns the connection to pass to [Agent.Serve].
func (f *FD) Conn(opts ...pcpwire.ConnOption) *pcpwire.Conn {
	return pcpwire.NewConn(f, f, opts...)
}

// Read reads what there is, and waits if there is nothing.
func (f *FD) Read(p []byte) (int, error) { return f.in.Read(p) }

// Write writes all of p.
func (f *FD) Write(p []byte) (int, error) { return f.out.Write(p) }

// Close closes the descriptors. A Read that waits on a socket ends; one that
// waits on a pipe keeps that descriptor until the peer closes the other end
// (nothing can wake it), which it does as a rule when it finds the other pipe
// closed.
func (f *FD) Close() error {
	if f.in == f.out {
		return f.in.Close()
	}
	return errors.Join(f.in.Close(), f.out.Close())
}

// A descriptor counts its users, so that its number is not given away while
// a system call may still use it.
type descriptor struct {
	fd   int
	uses atomic.Int32 // two for each user, and one when closed
}

const (
	closedBit = 1
	oneUse    = 2
)

func (d *descriptor) Read(p []byte) (int, error) {
	if err := d.acquire(); err != nil {
		return 0, err
	}
	defer d.release()
	for {
		n, err := unix.Read(d.fd, p)
		switch {
		case err == nil && n == 0 && len(p) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		}
		if err = d.retry(err, unix.POLLIN); err != nil {
			return 0, os.NewSyscallError("read", err)
		}
	}
}

func (d *descriptor) Write(p []byte) (written int, err error) {
	if err := d.acquire(); err != nil {
		return 0, err
	}
	defer d.release()
	for written < len(p) {
		n, err := unix.Write(d.fd, p[written:])
		if err == nil {
			written += n
			continue
		}
		if err = d.retry(err, unix.POLLOUT); err != nil {
			return written, os.NewSyscallError("write", err)
		}
	}
	return written, nil
}

// retry returns nil when a call that failed with err is worth another try: it
// was interrupted, or the descriptor has been made non-blocking by whoever
// shares it and is now ready.
func (d *descriptor) retry(err error, events int16) error {
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case !errors.Is(err, unix.EAGAIN):
		return err
	}
	fds := []unix.PollFd{{Fd: int32(d.fd), Events: events}}
	if _, err := unix.Ppoll(fds, nil, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

// Close refuses new users, and wakes those there are. The last one to leave
// closes the descriptor.
func (d *descriptor) Close() error {
	if err := d.acquire(); err != nil {
		return err
	}
	defer d.release()
	if d.uses.Or(closedBit)&closedBit != 0 {
		return os.ErrClosed
	}
	_ = unix.Shutdown(d.fd, unix.SHUT_RDWR) // not for pipes
	return nil
}

func (d *descriptor) acquire() error {
	for {
		uses := d.uses.Load()
		if uses&closedBit != 0 {
			return os.ErrClosed
		}
		if d.uses.CompareAndSwap(uses, uses+oneUse) {
			return nil
		}
	}
}

func (d *descriptor) release() {
	if d.uses.Add(-oneUse) == closedBit {
		_ = unix.Close(d.fd) // there is nobody left to tell
	}
}
