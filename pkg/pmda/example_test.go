package pmda_test

import (
	"context"
	"log"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

var uptime = pcpwire.NewPMID(254, 0, 0)

// tiny is an agent with one metric, tiny.uptime: the seconds since it began.
// It has no state of its own for each connection.
type tiny struct {
	pmda.Base
	pmda.NameSpace
	began time.Time
}

func (t *tiny) Open() pmda.Session { return t }

func (t *tiny) Desc(pmid pcpwire.PMID) (pcpwire.Desc, error) {
	if pmid != uptime {
		return pcpwire.Desc{}, pcpwire.ErrPMID
	}
	return pcpwire.Desc{
		PMID: uptime, Type: pcpwire.TypeU32, InDom: pcpwire.InDomNull,
		Semantics: pcpwire.SemCounter, Units: pcpwire.NewUnits(0, 1, 0, 0, pcpwire.TimeSec, 0),
	}, nil
}

func (t *tiny) Fetch(pmids []pcpwire.PMID, _ *pcpwire.Profile, b *pcpwire.ResultBuilder) error {
	b.Begin(0, len(pmids), len(pmids))
	for _, pmid := range pmids {
		if pmid == uptime {
			b.Set32(pmid, []int32{pcpwire.InstNull}, []uint64{uint64(time.Since(t.began).Seconds())})
		} else {
			b.Status(pmid, pcpwire.ErrPMID)
		}
	}
	return nil
}

// A whole agent, to be started by pmcd from this line of pmcd.conf:
//
//	tiny 254 pipe binary /path/to/pmdatiny
//
// and with this in the name space of pmcd (pmnsmerge(1)):
//
//	root { tiny 254:*:* }
func Example() {
	var names pmda.TreeBuilder
	if err := names.Add([]byte("tiny.uptime"), uptime); err != nil {
		log.Fatal(err)
	}
	agent := pmda.New(pmda.Config{Name: "tiny", Domain: 254},
		&tiny{NameSpace: pmda.NameSpace{Tree: names.Build()}, began: time.Now()}, nil)
	if err := agent.Serve(context.Background(), pmda.NewPipe(0, 1).Conn()); err != nil {
		log.Fatal(err)
	}
}
