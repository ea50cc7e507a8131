package pcpwire_test

import (
	"errors"
	"fmt"
	"io"
	"net"

	"pmdammv/pkg/pcpwire"
)

// An agent with the one metric 70.1.0, and the little of pmcd that it takes to
// fetch its value.
func ExampleConn() {
	// A pipe agent has pmcd on its standard input and output:
	//	pcpwire.NewConn(os.Stdin, os.Stdout)
	pmcdEnd, agentEnd := net.Pipe()
	done := make(chan error)
	go func() { done <- agent(pcpwire.NewConn(agentEnd, agentEnd)) }()

	pmcd := pcpwire.NewConn(pmcdEnd, pmcdEnd)
	if _, p, err := pmcd.ReadPDU(); err == nil { // the agent speaks first
		version, _, _ := p.(*pcpwire.Creds).Version()
		fmt.Println("agent speaks version", version)
	}
	_ = pmcd.WritePDU(0, pcpwire.NewCreds(0))

	pmid := pcpwire.NewPMID(70, 1, 0)
	_ = pmcd.WritePDU(0, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{pmid, pmid + 1}})
	if _, p, err := pmcd.ReadPDU(); err == nil {
		for _, set := range p.(*pcpwire.Result).Sets {
			if set.NumVal <= 0 {
				fmt.Println(set.PMID, pcpwire.Status(set.NumVal))
				continue
			}
			value, err := set.Values[0].Extract(set.Format, pcpwire.TypeDouble)
			fmt.Println(set.PMID, value.Double(), err)
		}
	}
	_ = pmcd.WritePDU(0, &pcpwire.DescReq{PMID: pmid})
	if _, p, err := pmcd.ReadPDU(); err == nil {
		fmt.Println(p.(*pcpwire.ErrorPDU).Code)
	}
	_ = pmcdEnd.Close()
	fmt.Println("agent ended:", <-done)
	// Output:
	// agent speaks version 2
	// 70.1.0 0.5 <nil>
	// 70.1.1 Unknown or illegal metric identifier
	// Functionality not yet implemented
	// agent ended: <nil>
}

// agent answers requests until pmcd closes the connection.
func agent(c *pcpwire.Conn) error {
	if err := c.WritePDU(0, pcpwire.NewCreds(0)); err != nil {
		return err
	}
	var reply pcpwire.ResultBuilder
	for {
		h, p, err := c.ReadPDU()
		var malformed *pcpwire.DecodeError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.As(err, &malformed):
			return err
		case !h.Type.HasReply():
			continue
		case malformed != nil: // this request is lost, the connection is not
			err = c.WritePDU(0, &pcpwire.ErrorPDU{Code: pcpwire.ErrIPC})
		default:
			err = answer(c, p, &reply)
		}
		if err != nil {
			return err
		}
	}
}

func answer(c *pcpwire.Conn, p pcpwire.PDU, reply *pcpwire.ResultBuilder) error {
	switch p := p.(type) {
	case *pcpwire.Fetch:
		reply.Begin(0, len(p.PMIDs), len(p.PMIDs))
		for _, pmid := range p.PMIDs {
			if pmid != pcpwire.NewPMID(70, 1, 0) {
				reply.Status(pmid, pcpwire.ErrPMID)
				continue
			}
			reply.Set64(pmid, pcpwire.TypeDouble, []int32{pcpwire.InstNull}, []uint64{pcpwire.AtomDouble(0.5).Bits})
		}
		pdu, err := reply.Finish()
		if err != nil {
			return err
		}
		return c.WriteBytes(pdu)
	default:
		return c.WritePDU(0, &pcpwire.ErrorPDU{Code: pcpwire.ErrNYI})
	}
}
