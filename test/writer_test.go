package test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// writer is an instrumented program that says "ready" when its file is complete, and counts once more per line.
type writer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *lines
}

// startWriter starts one and waits until its file is complete.
func startWriter(t testing.TB, env []string, name string, args ...string) *writer {
	t.Helper()
	w := &writer{cmd: command(limit(t), name, args...)}
	w.cmd.Env = append(w.cmd.Env, env...)
	w.cmd.Stderr = os.Stderr
	w.in = must[io.WriteCloser](t)(w.cmd.StdinPipe())
	w.out = newLines(must[io.ReadCloser](t)(w.cmd.StdoutPipe()))
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.in.Close() })
	if line := w.out.next(t); line != "ready" {
		t.Fatalf("%s says %q", name, line)
	}
	return w
}

// step lets the program count once more and waits until it has.
func (w *writer) step(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(w.in, "\n"); err != nil {
		t.Fatal(err)
	}
	w.out.next(t)
}

// end lets the program end and waits until it has.
func (w *writer) end(t testing.TB) {
	t.Helper()
	if err := w.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// lines reads a program's output by line.
type lines struct {
	r   io.Reader
	buf []byte
}

func newLines(r io.Reader) *lines { return &lines{r: r} }

// next is the next line without its end.
func (l *lines) next(t testing.TB) string {
	t.Helper()
	return strings.TrimSuffix(l.until(t, "\n"), "\n")
}

// until reads until the output so far ends with that text, which is part of the answer.
func (l *lines) until(t testing.TB, end string) string {
	t.Helper()
	chunk := make([]byte, 1<<16)
	for {
		if i := bytes.Index(l.buf, []byte(end)); i >= 0 {
			text := string(l.buf[:i+len(end)])
			l.buf = l.buf[i+len(end):]
			return text
		}
		n, err := l.r.Read(chunk)
		l.buf = append(l.buf, chunk[:n]...)
		if err != nil && n == 0 {
			t.Fatalf("waiting for %q after %q: %v", end, l.buf, err)
		}
	}
}
