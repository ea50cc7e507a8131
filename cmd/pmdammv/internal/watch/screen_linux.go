package watch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// screen is a terminal in full-screen mode.
type screen struct {
	in, out *os.File
	state   *term.State
	shown   []string // lines on it; nil: unknown
}

// Sequences that all terminals of today know.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J" // alternate screen, no cursor, clear
	leaveScreen = "\x1b[0m\x1b[?25h\x1b[?1049l"
)

// enter takes the terminal over.
func (s *screen) enter() error {
	state, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	s.state, s.shown = state, nil
	if _, err = s.out.WriteString(enterScreen); err != nil {
		s.leave()
	}
	return err
}

// leave gives the terminal back as it was.
func (s *screen) leave() {
	if s.state == nil {
		return
	}
	_, _ = s.out.WriteString(leaveScreen)
	_ = term.Restore(int(s.in.Fd()), s.state)
	s.state = nil
}

// size is the terminal's, in columns and lines.
func (s *screen) size() (width, height int) {
	w, h, err := term.GetSize(int(s.out.Fd()))
	if err != nil || w <= 0 || h <= 0 {
		return 80, 24
	}
	return w, h
}

// draw shows lines; only those that differ are written.
func (s *screen) draw(lines []string) error {
	var b strings.Builder
	if len(s.shown) != len(lines) {
		s.shown = nil
		b.WriteString("\x1b[2J")
	}
	for i, line := range lines {
		if s.shown == nil || s.shown[i] != line {
			fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[K", i+1, line)
		}
	}
	s.shown = lines
	if b.Len() == 0 {
		return nil
	}
	_, err := s.out.WriteString(b.String())
	return err
}

// stop suspends the process, as Ctrl-Z does where a terminal is not in raw mode.
// The signal goes to this thread: one to the process may be taken by another,
// and this one would have the terminal again before all stop.
func (s *screen) stop() error {
	s.leave()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP); err != nil {
		return err
	}
	return s.enter()
}

// keyboard reads a terminal in a goroutine of its own.
type keyboard struct {
	typed chan []byte // closed when the terminal has gone
	done  chan struct{}
	ended chan struct{}
	wake  *os.File // its closing ends the goroutine's wait
}

// listen starts to read.
func listen(in *os.File) (*keyboard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	k := &keyboard{make(chan []byte), make(chan struct{}), make(chan struct{}), w}
	go func() {
		defer close(k.ended)
		defer r.Close() //nolint:errcheck // nothing is written to it
		k.read(int32(in.Fd()), int32(r.Fd()))
	}()
	return k, nil
}

// close ends the goroutine.
func (k *keyboard) close() {
	close(k.done)
	_ = k.wake.Close()
	<-k.ended
}

func (k *keyboard) read(in, wake int32) {
	defer close(k.typed)
	fds := []unix.PollFd{{Fd: in, Events: unix.POLLIN}, {Fd: wake, Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || fds[1].Revents != 0 {
			return
		}
		buf := make([]byte, 256)
		n, err := unix.Read(int(in), buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		select {
		case k.typed <- buf[:n]:
		case <-k.done:
			return
		}
	}
}
