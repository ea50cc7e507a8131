package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"pmdammv/pkg/pcpwire"
)

// hung is how long a client waits before it takes an agent for stuck.
const hung = 30 * time.Second

// deadliner is a connection whose reads can be given up.
type deadliner interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

// client plays pmcd to an agent. When the connection is lost it says so once, with err; all answers are then empty, and
// nothing may be concluded from them.
type client struct {
	a    *agent
	conn *pcpwire.Conn
	r    deadliner
	w    io.Closer
	err  error
}

// connect greets the agent.
func connect(a *agent) (*client, error) {
	c := &client{a: a}
	if a.sock != "" {
		s, err := a.dial()
		if err != nil {
			return nil, err
		}
		c.r, c.w, c.conn = s, s, pcpwire.NewConn(s, s)
	} else {
		c.r, c.w, c.conn = a.out, a.in, pcpwire.NewConn(a.out, a.in)
	}
	_ = c.r.SetReadDeadline(time.Now().Add(hung))
	if _, pdu, err := c.conn.ReadPDU(); err != nil {
		return nil, err
	} else if _, ok := pdu.(*pcpwire.Creds); !ok {
		return nil, errors.New("the agent does not begin with its credentials")
	}
	return c, c.conn.WritePDU(int32(os.Getpid()), pcpwire.NewCreds(0))
}

func (c *client) close() { _ = c.w.Close() }

// ask sends a request and returns the answer, valid until the next, or nil when the connection is lost.
func (c *client) ask(req pcpwire.PDU) pcpwire.PDU {
	if c.err != nil {
		return nil
	}
	start := time.Now()
	c.err = c.conn.WritePDU(1, req)
	var pdu pcpwire.PDU
	for c.err == nil {
		_ = c.r.SetReadDeadline(time.Now().Add(hung))
		_, pdu, c.err = c.conn.ReadPDU()
		if !errors.Is(c.err, os.ErrDeadlineExceeded) || !c.a.starving(start) {
			break
		}
		c.err = nil
	}
	d := time.Since(start)
	switch {
	case c.a.stopping.Load():
	case errors.Is(c.err, os.ErrDeadlineExceeded):
		c.a.r.fail(slow, "%s does not answer %.200s\n%s", c.a.name, brief(req), c.a.dump())
		c.a.fatal()
	case c.err != nil:
		select {
		case <-c.a.done: // told as a death
		case <-time.After(time.Second):
			c.a.r.fail(wrong, "%s answers %.200s by %v", c.a.name, brief(req), c.err)
		}
		c.a.fatal()
	case d > c.a.r.tooSlow:
		c.a.r.late(c.a, d, brief(req))
	}
	if c.err != nil {
		return nil
	}
	c.a.r.requests.Add(1)
	most(&c.a.r.slowest, d)
	most(&c.a.slowest, d)
	return pdu
}

// brief is a request for people.
func brief(req pcpwire.PDU) string { return fmt.Sprintf("%v %+v", req.PDUType(), req) }

// status is the error in an answer, 0 when it is none.
func status(pdu pcpwire.PDU) pcpwire.Status {
	if e, ok := pdu.(*pcpwire.ErrorPDU); ok {
		return e.Code
	}
	return 0
}

// pmid looks a name up: 0 and a status when there is none.
func (c *client) pmid(name string) (pcpwire.PMID, pcpwire.Status) {
	pdu := c.ask(&pcpwire.Names{Names: [][]byte{[]byte(name)}})
	if ids, ok := pdu.(*pcpwire.IDs); ok && len(ids.IDs) == 1 {
		return ids.IDs[0], 0
	}
	return 0, status(pdu)
}

// traverse lists the metrics at or below a node.
func (c *client) traverse(node string) []string {
	return toStrings(c.ask(&pcpwire.Traverse{Name: []byte(node)}))
}

// children lists the nodes below a node.
func (c *client) children(node string) []string {
	return toStrings(c.ask(&pcpwire.Child{Name: []byte(node)}))
}

func toStrings(pdu pcpwire.PDU) []string {
	var out []string
	if names, ok := pdu.(*pcpwire.Names); ok {
		for _, n := range names.Names {
			out = append(out, string(n))
		}
	}
	return out
}

// desc is the descriptor of a metric, nil for none.
func (c *client) desc(pmid pcpwire.PMID) *pcpwire.Desc {
	d, _ := c.ask(&pcpwire.DescReq{PMID: pmid}).(*pcpwire.Desc)
	return d
}

// instances are those of an indom; they are valid until the next request.
func (c *client) instances(d pcpwire.InDom) []pcpwire.InstanceEntry {
	in, _ := c.ask(&pcpwire.InstanceReq{InDom: d, Inst: pcpwire.InstNull}).(*pcpwire.Instance)
	if in == nil {
		return nil
	}
	return in.Entries
}

// fetch returns a value set for each pmid, or nil when the connection is lost.
func (c *client) fetch(pmids []pcpwire.PMID) []pcpwire.ValueSet {
	pdu := c.ask(&pcpwire.Fetch{PMIDs: pmids})
	if pdu == nil {
		return nil
	}
	res, ok := pdu.(*pcpwire.Result)
	if !ok || len(res.Sets) != len(pmids) {
		c.a.r.fail(wrong, "%s: a fetch of %d metrics is answered by %+v", c.a.name, len(pmids), pdu)
		return nil
	}
	for i, want := range pmids {
		if got := res.Sets[i].PMID; got != want {
			c.a.r.fail(wrong, "%s: value set %d is of %v, not %v", c.a.name, i, got, want)
			return nil
		}
	}
	return res.Sets
}

// control is the value of one of the agent's own metrics of cluster 0, -1 for none.
func (c *client) control(item uint32) int64 {
	sets := c.fetch([]pcpwire.PMID{pcpwire.NewPMID(70, 0, item)})
	if sets == nil || sets[0].NumVal != 1 {
		return -1
	}
	v := &sets[0].Values[0]
	if sets[0].Format == pcpwire.InSitu {
		return int64(v.Word)
	}
	a, err := v.Extract(sets[0].Format, pcpwire.TypeU64)
	if err != nil {
		return -1
	}
	return a.I64()
}

// Items of the control metrics.
const (
	controlFiles    = 2
	controlPending  = 512
	controlRejected = 513
	controlFaults   = 515
)
