package pmda_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// peer plays pmcd.
type peer struct {
	*pcpwire.Conn
	r       io.Reader
	w       io.Closer
	reading chan struct{} // one for each time the agent began to read
	served  chan error    // what Serve returned
	cancel  context.CancelFunc
	logs    *logs
}

// connect starts Serve and does not greet. At the end of the test it closes
// the connection, and Serve must have returned.
func connect(t testing.TB, src pmda.Source) *peer {
	t.Helper()
	fromAgent, toPeer := io.Pipe()
	fromPeer, toAgent := io.Pipe()
	kept := &logs{}
	agent := pmda.New(pmda.Config{Name: "sample", Domain: domain}, src, slog.New(kept))
	ctx, cancel := context.WithCancel(t.Context())
	p := &peer{Conn: pcpwire.NewConn(fromAgent, toAgent), r: fromAgent, w: toAgent, reading: make(chan struct{}, 1000), served: make(chan error, 1), cancel: cancel, logs: kept}
	go func() { p.served <- agent.Serve(ctx, pcpwire.NewConn(&notingReader{fromPeer, p.reading}, toPeer)) }()
	t.Cleanup(func() {
		_, _ = toAgent.Close(), fromAgent.Close()
		cancel()
	})
	return p
}

// notingReader says when it is asked for something, until nobody has listened
// for long.
type notingReader struct {
	io.Reader
	reading chan<- struct{}
}

func (r *notingReader) Read(p []byte) (int, error) {
	select {
	case r.reading <- struct{}{}:
	default:
	}
	return r.Reader.Read(p)
}

// start starts Serve and does pmcd's part of the handshake.
func start(t testing.TB, src pmda.Source) *peer {
	t.Helper()
	p := connect(t, src)
	h, pdu, err := p.ReadPDU()
	if err != nil {
		t.Fatalf("agent's creds: %v", err)
	}
	if diff := cmp.Diff(pcpwire.PDU(pcpwire.NewCreds(0)), pdu); diff != "" {
		t.Fatalf("agent's creds (-want +got):\n%s", diff)
	}
	if int(h.From) != os.Getpid() {
		t.Fatalf("creds are from %d, not from pid %d", h.From, os.Getpid())
	}
	p.send(t, pcpwire.NewCreds(0))
	return p
}

// send sends a PDU that has no reply.
func (p *peer) send(t testing.TB, pdu pcpwire.PDU) {
	t.Helper()
	if err := p.WritePDU(1, pdu); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request and returns the reply, which is valid until the next one.
func (p *peer) ask(t testing.TB, req pcpwire.PDU) pcpwire.PDU {
	t.Helper()
	p.send(t, req)
	return p.reply(t)
}

func (p *peer) askRaw(t testing.TB, req []byte) pcpwire.PDU {
	t.Helper()
	if err := p.WriteBytes(req); err != nil {
		t.Fatal(err)
	}
	return p.reply(t)
}

func (p *peer) reply(t testing.TB) pcpwire.PDU {
	t.Helper()
	h, pdu, err := p.ReadPDU()
	if err != nil {
		t.Fatalf("reply: %v", err)
	}
	if h.From != 0 {
		t.Errorf("reply is from %d, not from 0", h.From)
	}
	return pdu
}

// want asks and compares.
func (p *peer) want(t testing.TB, req, want pcpwire.PDU) {
	t.Helper()
	if diff := cmp.Diff(want, p.ask(t, req), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("reply to %v %+v (-want +got):\n%s", req.PDUType(), req, diff)
	}
}

// inStep makes sure that nothing was answered that should not have been.
func (p *peer) inStep(t testing.TB) {
	t.Helper()
	p.want(t, &pcpwire.DescReq{PMID: pmid(4000, 99)}, status(pcpwire.ErrPMID))
}

// end waits for Serve to return.
func (p *peer) end(t testing.TB) error {
	t.Helper()
	select {
	case err := <-p.served:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not return")
		return nil
	}
}

// quit closes the connection; Serve must take that for its end.
func (p *peer) quit(t testing.TB) {
	t.Helper()
	if err := p.w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.end(t); err != nil {
		t.Errorf("Serve at end of file: %v", err)
	}
}

func status(s pcpwire.Status) *pcpwire.ErrorPDU { return &pcpwire.ErrorPDU{Code: s} }

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
