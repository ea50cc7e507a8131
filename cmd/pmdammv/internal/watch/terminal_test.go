package watch

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pmdammv/test/vt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is the view on a pseudo-terminal.
type session struct {
	*vt.Screen
	master, terminal *os.File
	done             chan error
	stop             context.CancelFunc
}

func start(t *testing.T, s *sampler, m *model, samples int) *session {
	t.Helper()
	master, tty, err := vt.Open(90, 20)
	if err != nil {
		t.Fatal(err)
	}
	x := &session{Screen: vt.NewScreen(90, 20), master: master, terminal: tty, done: make(chan error, 1)}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(x, master) // ends with an error when the terminal is closed
	}()
	ctx, stop := context.WithCancel(t.Context())
	x.stop = stop
	run := &terminal{screen: screen{in: tty, out: tty}, model: m, sampler: s, samples: samples}
	go func() { x.done <- run.run(ctx) }()
	t.Cleanup(func() {
		stop()
		_ = tty.Close()
		<-copied
		_ = master.Close()
	})
	return x
}

// shows waits until the screen shows a text.
func (x *session) shows(t *testing.T, text string) {
	t.Helper()
	x.until(t, text, func() bool { return strings.Contains(x.String(), text) })
}

func (x *session) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s on\n%s", what, x.String())
		}
	}
}

func (x *session) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the end and checks that the terminal is as it was.
func (x *session) ends(t *testing.T, before *unix.Termios) {
	t.Helper()
	select {
	case err := <-x.done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("it does not end\n%s", x.String())
	}
	x.until(t, "normal screen", func() bool { return !x.Alternate() })
	after, err := unix.IoctlGetTermios(int(x.terminal.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is left in another mode: %v", err)
	}
	if u := x.Unknown(); len(u) > 0 {
		t.Errorf("sequences that not every terminal knows: %q", u)
	}
}

func mode(t *testing.T) *unix.Termios {
	t.Helper()
	master, tty, err := vt.Open(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // a test's
	defer tty.Close()    //nolint:errcheck // a test's
	state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestTerminal(t *testing.T) {
	dir, s := host(t, map[string][]byte{"shop": shop(1)})
	x := start(t, s, &model{dir: dir, interval: 20 * time.Millisecond, files: true, colour: true}, 0)
	x.shows(t, "mmv.shop.queue")
	x.shows(t, "1 file with 4 metrics")
	rewrite(t, filepath.Join(dir, "shop"), shop(6))
	x.shows(t, "600") // busy
	x.press(t, "/rye")
	x.until(t, "row that the filter leaves", func() bool { return !strings.Contains(x.String(), "mmv.shop.queue") })
	x.press(t, "\r\x1b")
	x.shows(t, "mmv.shop.queue")
	x.press(t, "p")
	x.shows(t, "PAUSED")
	if err := os.Remove(filepath.Join(dir, "shop")); err != nil {
		t.Fatal(err)
	}
	x.shows(t, "shop: gone")
	x.shows(t, "mmv.shop.queue") // as it was
	x.press(t, " ")
	x.shows(t, "nothing has a value")
	x.press(t, "?")
	x.shows(t, "any key to go on")
	x.press(t, "xq")
	x.ends(t, mode(t))
}

// TestTerminalEnds: after so many samples, with a signal, and when the terminal
// has gone.
func TestTerminalEnds(t *testing.T) {
	_, s := host(t, map[string][]byte{"shop": shop(1)})
	x := start(t, s, &model{interval: time.Millisecond}, 3)
	x.ends(t, mode(t))

	x = start(t, s, &model{interval: time.Hour}, 0)
	x.shows(t, "mmv.shop.queue")
	x.stop()
	x.ends(t, mode(t))

	x = start(t, s, &model{interval: time.Hour}, 0)
	x.shows(t, "mmv.shop.queue")
	x.press(t, "\x03")
	x.ends(t, mode(t))
}
