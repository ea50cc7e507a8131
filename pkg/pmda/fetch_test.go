package pmda_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

// show writes a result as one line per metric.
func show(r *pcpwire.Result) string {
	var b strings.Builder
	for _, s := range r.Sets {
		fmt.Fprintf(&b, "%v %d:", s.PMID, s.NumVal)
		for _, v := range s.Values {
			if s.Format == pcpwire.InSitu {
				fmt.Fprintf(&b, " [%d]=%d", v.Inst, v.Word)
			} else {
				fmt.Fprintf(&b, " [%d]=%v %x", v.Inst, v.Block.Type, v.Block.Body)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestFetch(t *testing.T) {
	profile := func(def pcpwire.ProfileState, in pcpwire.InDom, state pcpwire.ProfileState, insts ...int32) *pcpwire.Profile {
		return &pcpwire.Profile{State: def, InDoms: []pcpwire.ProfileInDom{{InDom: in, State: state, Insts: insts}}}
	}
	tests := []struct {
		name    string
		profile *pcpwire.Profile
		pmids   []pcpwire.PMID
		want    string
	}{
		{
			name:  "every type, in the order asked for, twice if so",
			pmids: []pcpwire.PMID{version, level, heat, faults, requests, load, level},
			want: `253.1.4 1: [-1]=STRING 312e3000
253.0.0 1: [-1]=3
253.1.3 1: [-1]=FLOAT 42120000
253.1.2 3: [7]=70 [3]=30 [9]=90
253.1.1 1: [-1]=U64 0000010000000000
253.1.0 3: [1]=DOUBLE 3fe0000000000000 [5]=DOUBLE 3ff4000000000000 [15]=DOUBLE c000000000000000
253.0.0 1: [-1]=3
`,
		},
		{
			name:  "unknown metric",
			pmids: []pcpwire.PMID{pmid(5, 5), level},
			want:  "253.5.5 -12358:\n253.0.0 1: [-1]=3\n",
		},
		{
			name:    "profile of two instances",
			profile: profile(pcpwire.ProfileInclude, fruit, pcpwire.ProfileExclude, 9, 7),
			pmids:   []pcpwire.PMID{faults, level},
			want:    "253.1.2 2: [7]=70 [9]=90\n253.0.0 1: [-1]=3\n",
		},
		{
			name:    "profile of all but one",
			profile: profile(pcpwire.ProfileExclude, fruit, pcpwire.ProfileInclude, 3),
			pmids:   []pcpwire.PMID{faults, load, level},
			want:    "253.1.2 2: [7]=70 [9]=90\n253.1.0 0:\n253.0.0 1: [-1]=3\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, newSample())
			if tt.profile != nil {
				p.send(t, tt.profile)
			}
			r, ok := p.ask(t, &pcpwire.Fetch{Context: 9, PMIDs: tt.pmids}).(*pcpwire.Result)
			if !ok {
				t.Fatal("no result")
			}
			if diff := cmp.Diff(tt.want, show(r)); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if r.Flags != 0 || r.Usec != 0 {
				t.Errorf("time %#x %#x, want 0 0", r.Flags, r.Usec)
			}
			p.quit(t)
		})
	}
}

// A profile holds until the next one, and the agent has its own copy.
func TestProfileHolds(t *testing.T) {
	p := start(t, newSample())
	fetch := &pcpwire.Fetch{PMIDs: []pcpwire.PMID{faults}}
	only := func(inst int32) *pcpwire.Profile {
		return &pcpwire.Profile{InDoms: []pcpwire.ProfileInDom{{InDom: fruit, State: pcpwire.ProfileExclude, Insts: []int32{inst}}}}
	}
	numval := func() int32 { return p.ask(t, fetch).(*pcpwire.Result).Sets[0].NumVal }
	p.send(t, only(7))
	p.send(t, &pcpwire.Attr{Key: 14, Value: make([]byte, 200)}) // overwrites what was read before
	for range 2 {
		if got := numval(); got != 1 {
			t.Errorf("%d values, want that of instance 7", got)
		}
	}
	if err := p.WriteBytes(raw(pcpwire.PDUProfile, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if got := numval(); got != 1 {
		t.Errorf("%d values after a malformed profile, want that of instance 7", got)
	}
	p.send(t, only(8))
	if got := numval(); got != 0 {
		t.Errorf("%d values, want none", got)
	}
	p.send(t, &pcpwire.Profile{})
	if got := numval(); got != 3 {
		t.Errorf("%d values, want 3", got)
	}
	p.quit(t)
}

func TestChangeFlags(t *testing.T) {
	s := newSample()
	s.namesToken.Store(40)
	s.labelsToken.Store(50)
	s.failWith = errPlain
	p := start(t, s)
	flags := func(want uint32) {
		t.Helper()
		r, ok := p.ask(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{level}}).(*pcpwire.Result)
		if !ok || r.Flags != want {
			t.Errorf("flags %#x, want %#x", r.Flags, want)
		}
	}
	flags(0)
	s.namesToken.Add(1)
	// Only a successful fetch tells of it.
	p.inStep(t)
	p.want(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{broken}}, status(pcpwire.ErrGeneric))
	p.want(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{short}}, status(pcpwire.ErrGeneric))
	flags(pcpwire.NamesChanged)
	flags(0)
	s.labelsToken.Add(1)
	flags(pcpwire.LabelsChanged)
	flags(0)
	s.namesToken.Add(1)
	s.labelsToken.Add(1)
	flags(pcpwire.NamesChanged | pcpwire.LabelsChanged)
	s.fetching = func() { s.namesToken.Add(1) } // it moves on to a newer state
	flags(pcpwire.NamesChanged)
	s.fetching = nil
	flags(0)
	s.namesToken.Add(1) // there and back again
	s.namesToken.Add(^uint64(0))
	flags(0)
	p.quit(t)
}

// A change between the start of a connection and its first fetch counts.
func TestChangeBeforeFirstFetch(t *testing.T) {
	s := newSample()
	p := start(t, s)
	p.inStep(t)
	s.labelsToken.Add(1)
	r, ok := p.ask(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{level}}).(*pcpwire.Result)
	if !ok || r.Flags != pcpwire.LabelsChanged {
		t.Errorf("reply %+v, want flags %#x", r, pcpwire.LabelsChanged)
	}
	p.quit(t)
}

// A Source that does not answer for every metric must not reach pmcd, which
// would drop the agent.
func TestMissingValueSet(t *testing.T) {
	p := start(t, newSample())
	p.want(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{level, short}}, status(pcpwire.ErrGeneric))
	if len(p.logs.at(slog.LevelError)) != 1 {
		t.Errorf("logs %v, want one error", p.logs.all())
	}
	p.inStep(t)
	p.quit(t)
}
