package pmda_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"

	"golang.org/x/sys/unix"
)

func pipe(t testing.TB, flags int) (r, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|flags); err != nil {
		t.Fatal(err)
	}
	return p[0], p[1]
}

func socketPair(t testing.TB) (a, b int) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p[0], p[1]
}

// fdPair is a connected pair: of pipes, of pipes that do not block, or a socket's ends.
func fdPair(t testing.TB, kind string) (a, b *pmda.FD) {
	t.Helper()
	flags := 0
	switch kind {
	case "socket":
		x, y := socketPair(t)
		return pmda.NewSocket(x), pmda.NewSocket(y)
	case "non-blocking pipe":
		flags = unix.O_NONBLOCK
	}
	r1, w1 := pipe(t, flags)
	r2, w2 := pipe(t, flags)
	return pmda.NewPipe(r1, w2), pmda.NewPipe(r2, w1)
}

var fdKinds = []string{"pipe", "non-blocking pipe", "socket"}

func TestFD(t *testing.T) {
	for _, kind := range fdKinds {
		t.Run(kind, func(t *testing.T) {
			a, b := fdPair(t, kind)
			// More than any pipe holds, in one Write.
			data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
			var wg sync.WaitGroup
			wg.Go(func() {
				if n, err := a.Write(data); n != len(data) || err != nil {
					t.Errorf("wrote %d of %d: %v", n, len(data), err)
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			})
			got, err := io.ReadAll(b)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("read %d of %d bytes: %v", len(got), len(data), err)
			}
			wg.Wait()
			if _, err := b.Write(data); !errors.Is(err, unix.EPIPE) {
				t.Errorf("write to nobody: %v", err)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			for _, err := range []error{b.Close(), second(b.Read(data)), second(b.Write(data))} {
				wantErr(t, err, os.ErrClosed)
			}
		})
	}
}

func second(_ int, err error) error { return err }

// Close wakes a Read on a socket. One on a pipe ends with the other end.
func TestFDCloseWhileReading(t *testing.T) {
	for _, kind := range fdKinds {
		t.Run(kind, func(t *testing.T) {
			a, b := fdPair(t, kind)
			reading, done := make(chan struct{}), make(chan error, 1)
			go func() {
				_, err := a.Read(make([]byte, 1))
				close(reading)
				if err == nil {
					_, err = a.Read(make([]byte, 1))
				}
				done <- err
			}()
			if _, err := b.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			<-reading
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("peer reads %d, %v; want end of file", n, err)
			}
			if kind != "socket" {
				_ = b.Close()
			}
			select {
			case err := <-done:
				if err == nil {
					t.Error("read two bytes where there was one")
				}
			case <-time.After(10 * time.Second):
				t.Fatal("Read does not return")
			}
			_ = b.Close()
		})
	}
}

func TestPipeIsEnlarged(t *testing.T) {
	r1, w1 := pipe(t, 0)
	r2, w2 := pipe(t, 0)
	a, b := pmda.NewPipe(r1, w2), pmda.NewPipe(r2, w1)
	for _, fd := range []int{r1, w2} {
		// The user's limit may forbid it.
		if n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0); err != nil || n != 1<<20 && os.Geteuid() == 0 {
			t.Errorf("pipe holds %d, %v", n, err)
		}
	}
	_, _ = a.Close(), b.Close()
}

func TestServeOnDescriptors(t *testing.T) {
	for _, kind := range fdKinds {
		t.Run(kind, func(t *testing.T) {
			ours, theirs := fdPair(t, kind)
			s := newSample()
			served := make(chan error, 1)
			go func() {
				served <- pmda.New(pmda.Config{Name: "sample", Domain: domain}, s, nil).Serve(t.Context(), ours.Conn())
			}()
			p := &peer{Conn: theirs.Conn(), w: theirs, served: served}
			if _, _, err := p.ReadPDU(); err != nil {
				t.Fatal(err)
			}
			p.send(t, pcpwire.NewCreds(0))
			for range 100 {
				p.inStep(t)
			}
			if err := theirs.Close(); err != nil {
				t.Fatal(err)
			}
			if err := p.end(t); err != nil {
				t.Errorf("Serve: %v", err)
			}
			if err := ours.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, kind := range []string{"pipe", "socket"} {
		b.Run(kind, func(b *testing.B) {
			ours, theirs := fdPair(b, kind)
			go func() { _ = pmda.New(pmda.Config{}, newStill(b, 10), nil).Serve(b.Context(), ours.Conn()) }()
			p := &peer{Conn: theirs.Conn(), r: theirs}
			if _, _, err := p.ReadPDU(); err != nil {
				b.Fatal(err)
			}
			p.send(b, pcpwire.NewCreds(0))
			req, err := pcpwire.AppendPDU(nil, 0, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{1}})
			if err != nil {
				b.Fatal(err)
			}
			reply := make([]byte, 1<<16)
			b.ReportAllocs()
			for b.Loop() {
				p.exchange(b, req, reply)
			}
			_, _ = theirs.Close(), ours.Close()
		})
	}
}
