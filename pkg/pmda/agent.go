package pmda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"pmdammv/pkg/pcpwire"
)

// Config says what agent it is.
type Config struct {
	// Name is the agent's name, and by custom the root of its name space.
	// Its metrics have the label {"agent":Name}, also beside labels of the domain
	// that the Session has, which may replace it. (libpcp_pmda gives it only to an
	// agent without any.)
	Name string
	// Domain is the number in pmcd.conf, the first part of every PMID.
	Domain uint32
}

// An Agent answers the requests of pmcd from a [Source]. It may serve any
// number of connections at once.
type Agent struct {
	cfg Config
	src Source
	log *slog.Logger
}

// New makes an agent. Without a logger it is silent; with one it logs what a
// peer does wrong at debug level, and mistakes of the Source as errors.
func New(cfg Config, src Source, log *slog.Logger) *Agent {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Agent{cfg: cfg, src: src, log: log}
}

// Serve greets the peer (the CREDS of this agent go out before Source.Open is
// called), and then answers its requests until it closes the connection (nil)
// or breaks the protocol, or reading or writing fails.
//
// When ctx is cancelled, Serve returns nil: at once when no request is being
// answered, else when the reply has been written. Nothing is written after
// that, but a goroutine may still be waiting in a read: it ends when the owner
// of c closes it, or the peer does.
func (a *Agent) Serve(ctx context.Context, c *pcpwire.Conn) error {
	if ctx.Err() != nil {
		return nil
	}
	if err := c.WritePDU(int32(os.Getpid()), pcpwire.NewCreds(0)); err != nil {
		return fmt.Errorf("send creds: %w", err)
	}
	s := &conn{Agent: a, wire: c}
	s.phase.Store(phaseBusy)
	done := make(chan error, 1)
	go func() { done <- s.serve() }()
	defer func() { s.sess.Close() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if s.phase.Swap(phaseStopped) == phaseIdle {
		return nil
	}
	return <-done
}

// What a connection is at. Whoever takes it out of idle owns the Session: the
// reading goroutine to answer a request, or Serve to stop.
const (
	phaseIdle int32 = iota
	phaseBusy
	phaseStopped
)

// A conn is one connection: its state, and memory that is used again for
// every request.
type conn struct {
	*Agent
	wire *pcpwire.Conn
	sess Session

	phase   atomic.Int32
	profile *pcpwire.Profile // nil before the first PROFILE
	seen    Changes          // at the last fetch reply

	buf    []byte // a reply
	result pcpwire.ResultBuilder
	names  pcpwire.NamesBuilder
	merge  labelMerger
	labels []LabelRecord

	// Replies.
	errorPDU pcpwire.ErrorPDU
	desc     pcpwire.Desc
	instance pcpwire.Instance
	text     pcpwire.Text
	ids      pcpwire.IDs
	label    pcpwire.LabelPDU

	strange bool // an unexpected PDU has been logged
}

// serve opens the Source, reads the peer's CREDS, then answers requests until
// there are no more. The first is done here, since what it takes of the stack a
// later change of the Source will take again.
func (c *conn) serve() error {
	c.sess = c.src.Open()
	c.sess.Begin()
	c.seen = c.sess.Changes()
	c.sess.End()
	c.sess.After()
	if !c.phase.CompareAndSwap(phaseBusy, phaseIdle) {
		return nil
	}
	if err := c.handshake(); err != nil {
		return err
	}
	for {
		h, pdu, err := c.wire.ReadPDU()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !malformed(err) {
			return fmt.Errorf("read request: %w", err)
		}
		if !c.phase.CompareAndSwap(phaseIdle, phaseBusy) {
			return nil
		}
		if reply := c.dispatch(h, pdu, err); reply != nil {
			if err := c.wire.WriteBytes(reply); err != nil {
				return fmt.Errorf("write reply to %v: %w", h.Type, err)
			}
			if err == nil { // else there was no Begin
				c.sess.After()
			}
			if h.Type != pcpwire.PDUFetch && len(reply) > keepBuffer {
				c.names = pcpwire.NamesBuilder{} // the whole name space is seldom asked for
			}
		}
		if !c.phase.CompareAndSwap(phaseBusy, phaseIdle) {
			return nil
		}
	}
}

// malformed reports whether the body of a PDU made no sense, which leaves the
// connection in step.
func malformed(err error) bool {
	_, ok := errors.AsType[*pcpwire.DecodeError](err)
	return ok
}

// handshake reads the CREDS with which pmcd answers ours.
func (c *conn) handshake() error {
	h, pdu, err := c.wire.ReadPDU()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("read creds: %w", err)
	}
	creds, ok := pdu.(*pcpwire.Creds)
	if !ok {
		return fmt.Errorf("%w: %v instead of creds", ErrHandshake, h.Type)
	}
	if version, _, _ := creds.Version(); version != pcpwire.ProtocolVersion {
		return fmt.Errorf("%w: protocol version %d", ErrHandshake, version)
	}
	return nil
}

// ErrHandshake means that the peer did not answer CREDS as pmcd does.
var ErrHandshake = errors.New("handshake")
