package pmda_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"

	"go.uber.org/goleak"
)

// raw is a PDU of any type and body.
func raw(typ pcpwire.PDUType, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(pcpwire.HeaderSize+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(typ))
	b = binary.BigEndian.AppendUint32(b, 1)
	return append(b, body...)
}

type openFunc func() pmda.Session

func (f openFunc) Open() pmda.Session { return f() }

func TestCredsGoOutBeforeOpen(t *testing.T) {
	s := newSample()
	release := make(chan struct{})
	p := connect(t, openFunc(func() pmda.Session {
		<-release
		return s.Open()
	}))
	if _, pdu, err := p.ReadPDU(); err != nil || pdu.PDUType() != pcpwire.PDUCreds {
		t.Fatalf("first PDU %v, %v; want creds", pdu, err)
	}
	close(release)
	p.send(t, pcpwire.NewCreds(0))
	p.inStep(t)
	p.quit(t)
}

// lazySession is slow with what comes after a reply.
type lazySession struct {
	pmda.Session
	after chan struct{}
}

func (s lazySession) After() {
	<-s.after
	s.Session.After()
}

func TestNoReplyWaitsForAfter(t *testing.T) {
	s := newSample()
	after := make(chan struct{}, 1)
	after <- struct{}{} // that of the first look
	p := start(t, openFunc(func() pmda.Session { return lazySession{s.Open(), after} }))
	p.inStep(t)
	close(after)
	p.inStep(t)
	p.quit(t)
}

func TestHandshakeErrors(t *testing.T) {
	tests := []struct {
		name string
		pdu  []byte // nil: end of file
		want error
	}{
		{"end of file", nil, io.ErrUnexpectedEOF},
		{"not creds", raw(pcpwire.PDUDescReq, 0, 0, 0, 0), pmda.ErrHandshake},
		{"unknown type", raw(0x7777), pmda.ErrHandshake},
		{"version 1", raw(pcpwire.PDUCreds, 0, 0, 0, 1, 1, 1, 0, 0), pmda.ErrHandshake},
		{"no version", raw(pcpwire.PDUCreds, 0, 0, 0, 1, 2, 2, 0, 0), pmda.ErrHandshake},
		{"malformed", raw(pcpwire.PDUCreds, 0, 0, 0, 9), pcpwire.ErrShort},
		{"no PDU", []byte("GET / HTTP/1.1\r\n\r\n"), pcpwire.ErrIPC},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSample()
			p := connect(t, s)
			if _, _, err := p.ReadPDU(); err != nil {
				t.Fatal(err)
			}
			if tt.pdu == nil {
				_ = p.w.Close()
			} else if err := p.WriteBytes(tt.pdu); err != nil {
				t.Fatal(err)
			}
			wantErr(t, p.end(t), tt.want)
			if s.closed.Load() != 1 {
				t.Error("session not closed")
			}
		})
	}
}

func TestEndOfFile(t *testing.T) {
	s := newSample()
	p := start(t, s)
	p.inStep(t)
	p.quit(t)
	if o, c := s.opened.Load(), s.closed.Load(); o != 1 || c != 1 {
		t.Errorf("session opened %d times, closed %d times", o, c)
	}
}

func TestBrokenStream(t *testing.T) {
	tests := []struct {
		name string
		data []byte
	}{
		{"cut off", raw(pcpwire.PDUDescReq, 0, 0)[:13]},
		{"length below header", []byte("\x00\x00\x00\x0b\x00\x00\x70\x04\x00\x00\x00\x00")},
		{"negative length", []byte("\xff\xff\xff\xff\x00\x00\x70\x04\x00\x00\x00\x00")},
		{"huge length", []byte("\x7f\xff\xff\xff\x00\x00\x70\x04\x00\x00\x00\x00")},
		{"negative type", []byte("\x00\x00\x00\x0c\x80\x00\x70\x04\x00\x00\x00\x00")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, newSample())
			if err := p.WriteBytes(tt.data); err != nil {
				t.Fatal(err)
			}
			_ = p.w.Close()
			wantErr(t, p.end(t), pcpwire.ErrIPC)
		})
	}
}

var errWrite = errors.New("no reader")

// writer takes the first n writes, and no more.
type writer struct{ n int }

func (w *writer) Write(p []byte) (int, error) {
	if w.n--; w.n < 0 {
		return 0, errWrite
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	for writes, opened := range []int32{0, 1} {
		s := newSample()
		r, w := io.Pipe()
		go func() {
			c := pcpwire.NewConn(nil, w)
			_ = c.WritePDU(0, pcpwire.NewCreds(0))
			_ = c.WritePDU(0, &pcpwire.DescReq{PMID: load})
		}()
		agent := pmda.New(pmda.Config{Name: "sample"}, s, nil)
		err := agent.Serve(t.Context(), pcpwire.NewConn(r, &writer{n: writes}))
		wantErr(t, err, errWrite)
		if s.opened.Load() != opened || s.closed.Load() != opened {
			t.Errorf("%d writes: session opened %d, closed %d times", writes, s.opened.Load(), s.closed.Load())
		}
		_ = r.Close()
	}
}

func TestNoReply(t *testing.T) {
	tests := []struct {
		name string
		pdu  []byte
		logs int // lines, at any level
	}{
		{"a client of pmcd has gone", raw(pcpwire.PDUError, 0xff, 0xff, 0xcf, 0x99), 0},
		{"another error", raw(pcpwire.PDUError, 0xff, 0xff, 0xcf, 0xbb), 1},
		{"attribute", raw(pcpwire.PDUAttr, 0, 0, 0, 14, '1', '2', 0), 0},
		{"malformed attribute", raw(pcpwire.PDUAttr, 0, 0), 1},
		{"malformed profile", raw(pcpwire.PDUProfile, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0), 1},
		{"malformed error", raw(pcpwire.PDUError), 1},
		{"control request", raw(pcpwire.PDUControlReq, 1, 2, 3), 0},
		{"unknown type", raw(pcpwire.PDUDescIDs, 1, 2, 3, 4), 1},
		{"a reply", raw(pcpwire.PDUPMNSIDs+0x1000, 1, 2, 3, 4), 1},
		{"creds again", raw(pcpwire.PDUCreds, 0, 0, 0, 1, 1, 2, 0, 0), 1},
		{"malformed text", raw(pcpwire.PDUText, 1), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, newSample())
			for range 3 {
				if err := p.WriteBytes(tt.pdu); err != nil {
					t.Fatal(err)
				}
			}
			p.inStep(t)
			if got := len(p.logs.all()); (got > 0) != (tt.logs > 0) {
				t.Errorf("%d log lines, want %d: %v", got, tt.logs, p.logs.all())
			}
			if got := len(p.logs.at(slog.LevelWarn)); got > 1 {
				t.Errorf("%d warnings of the same thing", got)
			}
			p.quit(t)
		})
	}
}

func TestMalformedRequests(t *testing.T) {
	two := func(pdu pcpwire.PDU) []byte {
		b, err := pcpwire.AppendPDU(nil, 0, pdu)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tests := []struct {
		name string
		pdu  []byte
	}{
		{"fetch", raw(pcpwire.PDUFetch, 0, 0, 0, 0)},
		{"fetch of nothing", raw(pcpwire.PDUFetch, make([]byte, 16)...)},
		{"store", raw(pcpwire.PDUResult, 0)},
		{"desc", raw(pcpwire.PDUDescReq)},
		{"instance", raw(pcpwire.PDUInstanceReq, 0, 0, 0, 1)},
		{"text", raw(pcpwire.PDUTextReq, 0, 0, 0, 1)},
		{"name", raw(pcpwire.PDUPMNSNames, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9)},
		{"ids", raw(pcpwire.PDUPMNSIDs, 0, 0, 0, 0, 0, 0, 0, 3)},
		{"child", raw(pcpwire.PDUPMNSChild, 0, 0, 0, 0, 0, 0, 0, 3)},
		{"traverse", raw(pcpwire.PDUPMNSTraverse, 0, 0, 0, 0)},
		{"label", raw(pcpwire.PDULabelReq, 0, 0, 0, 0)},
		{"two names", two(&pcpwire.Names{Names: [][]byte{[]byte("sample.load"), []byte("sample.heat")}})},
		{"no name", two(&pcpwire.Names{})},
		{"two ids", two(&pcpwire.IDs{IDs: []pcpwire.PMID{load, heat}})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, newSample())
			e, ok := p.askRaw(t, tt.pdu).(*pcpwire.ErrorPDU)
			if !ok || e.Code != pcpwire.ErrIPC {
				t.Errorf("reply %+v, want PM_ERR_IPC", e)
			}
			p.inStep(t)
			p.quit(t)
		})
	}
}

// Codes that pmcd would take for something else never reach it.
func TestErrorCodes(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want pcpwire.Status
	}{
		{"plain error", errPlain, pcpwire.ErrGeneric},
		{"status", pcpwire.ErrAppVersion, pcpwire.ErrAppVersion},
		{"wrapped status", errors.Join(errPlain, pcpwire.ErrAgain), pcpwire.ErrAgain},
		{"negated errno", pcpwire.Status(-12), pcpwire.Status(-12)},
		{"broken pipe", pcpwire.Status(-32), pcpwire.ErrGeneric},
		{"success", pcpwire.Status(0), pcpwire.ErrGeneric},
		{"positive", pcpwire.Status(8), pcpwire.ErrGeneric},
		{"IPC", pcpwire.ErrIPC, pcpwire.ErrGeneric},
		{"timeout", pcpwire.ErrTimeout, pcpwire.ErrGeneric},
		{"ready", pcpwire.ErrPMDAReady, pcpwire.ErrGeneric},
		{"not ready", pcpwire.ErrPMDANotReady, pcpwire.ErrGeneric},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSample()
			s.failWith = tt.err
			p := start(t, s)
			p.want(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{load, broken}}, status(tt.want))
			p.want(t, &pcpwire.DescReq{PMID: broken}, status(tt.want))
			p.want(t, &pcpwire.TextReq{Ident: uint32(broken), Kind: pcpwire.TextHelp | pcpwire.TextPMID}, status(tt.want))
			p.want(t, &pcpwire.Result{Sets: []pcpwire.ValueSet{{PMID: broken}}}, status(tt.want))
			p.quit(t)
		})
	}
}

func TestTwoConnections(t *testing.T) {
	s := newSample()
	a, b := start(t, s), start(t, s)
	a.send(t, &pcpwire.Profile{State: pcpwire.ProfileExclude})
	one := &pcpwire.Fetch{PMIDs: []pcpwire.PMID{faults}}
	a.inStep(t)
	b.inStep(t)
	if set := a.ask(t, one).(*pcpwire.Result).Sets[0]; set.NumVal != 0 {
		t.Errorf("a: %d values, profile excludes all", set.NumVal)
	}
	if set := b.ask(t, one).(*pcpwire.Result).Sets[0]; set.NumVal != 3 {
		t.Errorf("b: %d values of 3, there is no profile", set.NumVal)
	}
	s.namesToken.Add(1)
	for _, p := range []*peer{a, b, a} {
		flags := p.ask(t, one).(*pcpwire.Result).Flags
		if again := p.ask(t, one).(*pcpwire.Result).Flags; again != 0 {
			t.Errorf("change told twice on one connection: %#x, %#x", flags, again)
		}
	}
	a.quit(t)
	b.inStep(t)
	b.quit(t)
	if s.opened.Load() != 2 || s.closed.Load() != 2 {
		t.Errorf("sessions: %d opened, %d closed, want 2 and 2", s.opened.Load(), s.closed.Load())
	}
}

func TestCancelIdle(t *testing.T) {
	s := newSample()
	p := start(t, s)
	p.inStep(t)
	for range 3 { // creds, the request just answered, and the next one
		<-p.reading
	}
	p.cancel()
	if err := p.end(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if s.closed.Load() != 1 {
		t.Error("session not closed")
	}
	// The goroutine that still reads must not work on what comes later, and
	// ends with the connection.
	begun := s.begun.Load()
	p.send(t, &pcpwire.DescReq{PMID: load})
	_ = p.w.Close()
	goleak.VerifyNone(t)
	if s.begun.Load() != begun {
		t.Error("a request was worked on after Serve returned")
	}
}

func TestCancelBusy(t *testing.T) {
	s := newSample()
	s.block = make(chan chan struct{})
	p := start(t, s)
	p.send(t, &pcpwire.TextReq{Ident: uint32(load), Kind: pcpwire.TextOneLine | pcpwire.TextPMID})
	release := <-s.block
	p.cancel()
	select {
	case err := <-p.served:
		t.Fatalf("Serve returned %v in the middle of a request", err)
	case <-time.After(20 * time.Millisecond): // it should not return, so there is nothing to wait for
	}
	close(release)
	if text, ok := p.reply(t).(*pcpwire.Text); !ok || string(text.Text) != "load average" {
		t.Errorf("reply %v", text)
	}
	if err := p.end(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if s.closed.Load() != 1 {
		t.Error("session not closed")
	}
}

func TestCancelledBeforeStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newSample()
	agent := pmda.New(pmda.Config{}, s, nil)
	if err := agent.Serve(ctx, pcpwire.NewConn(nil, &writer{})); err != nil || s.opened.Load() != 0 {
		t.Errorf("Serve: %v, opened %d sessions", err, s.opened.Load())
	}
}
