package exporter_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

// Work is done ahead: a file is exported, and told, without any request.
func TestStart(t *testing.T) {
	b := newBox(t)
	b.start()
	b.look()
	b.told()
	b.e.Start()
	b.put("a", one(1))
	wait(t, "the file is told", func() bool { return slices.Contains(b.told(), "i a: loaded") })
	b.remove("a")
	wait(t, "that it has gone is told", func() bool { return slices.Contains(b.told(), "i a: gone") })
}

// Between Begin and End nothing changes, whatever happens to the files.
func TestOneStateForARequest(t *testing.T) {
	b := newBox(t)
	b.put("a", one(1).InDom(1, "", "", insts("0:x")...).Metric(many("n", 2, 1, 5)))
	b.start()
	p, d := b.pmid("mmv.a.n"), b.desc("mmv.a.n").InDom
	b.ask(func(s pmda.Session) {
		b.remove("a")
		b.put("z", one(1))
		b.e.Refresh()
		if got, err := s.PMID([]byte("mmv.a.n")); got != p || err != nil {
			t.Errorf("PMID %v, %v", got, err)
		}
		if _, err := s.PMID([]byte("mmv.z.m")); err == nil {
			t.Error("the new file is there")
		}
		if desc, err := s.Desc(p); desc.InDom != d || err != nil {
			t.Errorf("descriptor %v, %v", desc, err)
		}
		if in, err := s.Instances(d); err != nil || in.Len() != 1 {
			t.Errorf("instances: %v", err)
		}
	})
	equal(t, "names afterwards", strings.Join(b.names(), " "), "mmv.z.m")
}

// Several connections, and the work that is done ahead, while files come and go.
func TestConcurrentSessions(t *testing.T) {
	b := newBox(t).keep()
	b.put("steady", one(7).InDom(1, "", "", insts("0:x")...).Metric(many("n", 2, 1, 5)))
	b.start()
	b.e.Start()
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s := b.e.Open()
			defer s.Close()
			var rb pcpwire.ResultBuilder
			var nb pcpwire.NamesBuilder
			p := &pcpwire.Result{}
			for !stop.Load() {
				s.Begin()
				m, err := s.PMID([]byte("mmv.steady.m"))
				d, err2 := s.Desc(m)
				if err != nil || err2 != nil {
					t.Error(err, err2)
				}
				nb.Begin(false)
				if err := s.Traverse(&nb, []byte("mmv")); err != nil {
					t.Error(err)
				}
				if err := s.Fetch([]pcpwire.PMID{m, 1, m + 1}, nil, &rb); err != nil {
					t.Error(err)
				}
				pdu, err := rb.Finish()
				s.End()
				s.After()
				reply(t, pdu, err, p)
				if len(p.Sets) != 3 || p.Sets[0].NumVal != 1 || d.PMID != m {
					t.Errorf("%v", p)
				} else if a, err := p.Sets[0].Values[0].Extract(p.Sets[0].Format, d.Type); err != nil || a.I64() != 7 {
					t.Errorf("value %v, %v", a, err)
				}
			}
		})
	}
	for i := range 200 {
		name := fmt.Sprint("f", i%7)
		b.put(name, one(int64(i)).Cluster(int32(i%3)).Metric(metric(fmt.Sprint("m", i%5), uint32(i%4+2), 1)).
			Label(mmvimage.LabelCluster, uint32(i%3), -1, `{"a":1}`))
		if i%2 == 0 {
			b.remove(name)
		}
		if i%20 == 0 {
			b.e.Rescan()
		}
	}
	stop.Store(true)
	wg.Wait()
	equal(t, "value", b.values("mmv.steady.m"), "7")
}
