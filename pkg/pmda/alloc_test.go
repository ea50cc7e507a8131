package pmda_test

import (
	"encoding/binary"
	"io"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// still is a session that allocates nothing itself: one metric with many
// instances, and one without.
type still struct {
	pmda.Base
	pmda.NameSpace
	insts []int32
	bits  []uint64
	name  []byte
}

func newStill(t testing.TB, n int) *still {
	s := &still{NameSpace: pmda.NameSpace{Tree: build(t, "still.many", "still.one")}, bits: make([]uint64, n), name: []byte("an instance")}
	for i := range n {
		s.insts = append(s.insts, int32(i))
	}
	return s
}

func (s *still) Open() pmda.Session { return s }

func (s *still) Desc(id pcpwire.PMID) (pcpwire.Desc, error) {
	return pcpwire.Desc{PMID: id, Type: pcpwire.TypeU64}, nil
}

func (s *still) Instances(pcpwire.InDom) (pmda.Instances, error) { return instances{s}, nil }

type instances struct{ s *still }

func (t instances) Len() int                 { return len(t.s.insts) }
func (t instances) At(i int) (int32, []byte) { return t.s.insts[i], t.s.name }

func (s *still) Fetch(ids []pcpwire.PMID, _ *pcpwire.Profile, b *pcpwire.ResultBuilder) error {
	b.Begin(0, len(ids), len(ids)*len(s.insts))
	for _, id := range ids {
		if id == 0 {
			b.Set64(id, pcpwire.TypeU64, s.insts, s.bits)
		} else {
			b.Set32(id, s.insts[:1], s.bits[:1])
		}
	}
	return nil
}

// In the steady state a request costs no memory, from its first byte to the
// last one of its reply.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tests := []struct {
		name string
		req  pcpwire.PDU
		want pcpwire.PDUType
	}{
		{"fetch", &pcpwire.Fetch{PMIDs: []pcpwire.PMID{0, 1, 1, 0}}, pcpwire.PDUResult},
		{"desc", &pcpwire.DescReq{PMID: 1}, pcpwire.PDUDesc},
		{"pmid of a name", names("still.many"), pcpwire.PDUPMNSIDs},
		{"unknown name", names("still.none"), pcpwire.PDUError},
		{"children", &pcpwire.Child{Name: []byte("still"), WantStatus: true}, pcpwire.PDUPMNSNames},
		{"traverse", &pcpwire.Traverse{Name: []byte("still")}, pcpwire.PDUPMNSNames},
		{"name of an instance", &pcpwire.InstanceReq{InDom: 1, Inst: 77}, pcpwire.PDUInstance},
		{"number of an instance", &pcpwire.InstanceReq{InDom: 1, Inst: -1, Name: []byte("an")}, pcpwire.PDUInstance},
		{"all instances", &pcpwire.InstanceReq{InDom: 1, Inst: -1}, pcpwire.PDUInstance},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, newStill(t, 100))
			req, err := pcpwire.AppendPDU(nil, 0, tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.askRaw(t, req).PDUType(); got != tt.want {
				t.Fatalf("reply %v, want %v", got, tt.want)
			}
			reply := make([]byte, 1<<16)
			n := testing.AllocsPerRun(200, func() { p.exchange(t, req, reply) })
			if n != 0 {
				t.Errorf("%v allocations for each request", n)
			}
			p.quit(t)
		})
	}
}

// exchange sends a request and reads the reply into a buffer, without decoding
// it.
func (p *peer) exchange(t testing.TB, req, reply []byte) {
	t.Helper()
	if err := p.WriteBytes(req); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.r, reply[:pcpwire.HeaderSize]); err != nil {
		t.Fatal(err)
	}
	n := int(binary.BigEndian.Uint32(reply))
	if _, err := io.ReadFull(p.r, reply[pcpwire.HeaderSize:n]); err != nil {
		t.Fatal(err)
	}
}

func TestProfileAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := start(t, newStill(t, 100))
	var profile, desc []byte
	var err error
	in := []pcpwire.ProfileInDom{{InDom: 1, Insts: []int32{5, 4, 3}}, {InDom: 2, State: pcpwire.ProfileExclude}}
	if profile, err = pcpwire.AppendPDU(nil, 0, &pcpwire.Profile{InDoms: in}); err != nil {
		t.Fatal(err)
	}
	if desc, err = pcpwire.AppendPDU(nil, 0, &pcpwire.DescReq{PMID: 1}); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 1<<16)
	n := testing.AllocsPerRun(200, func() {
		if err := p.WriteBytes(profile); err != nil {
			t.Fatal(err)
		}
		p.exchange(t, desc, reply)
	})
	if n != 0 {
		t.Errorf("%v allocations for each profile", n)
	}
	p.quit(t)
}
