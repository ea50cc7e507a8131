package pcpwire_test

import (
	"testing"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

// TestProfileIncludes has the truth table of __pmInProfile.
func TestProfileIncludes(t *testing.T) {
	const in, out = pcpwire.ProfileInclude, pcpwire.ProfileExclude
	entry := func(s pcpwire.ProfileState, insts ...int32) pcpwire.ProfileInDom {
		return pcpwire.ProfileInDom{InDom: 7, State: s, Insts: insts}
	}
	profile := func(s pcpwire.ProfileState, e ...pcpwire.ProfileInDom) *pcpwire.Profile {
		return &pcpwire.Profile{State: s, InDoms: e}
	}
	tests := []struct {
		name         string
		profile      *pcpwire.Profile
		listed, rest bool // instances 9 and 1, and instance 5, of indom 7
		all          bool
	}{
		{"none", nil, true, true, true},
		{"include all", profile(in), true, true, true},
		{"exclude all", profile(out), false, false, false},
		{"entry excludes two", profile(out, entry(in, 9, 1)), false, true, false},
		{"entry includes two", profile(in, entry(out, 9, 1)), true, false, false},
		{"entry excludes none", profile(out, entry(in)), true, true, true},
		{"entry includes none", profile(in, entry(out)), false, false, false},
		{"unknown state excludes", profile(in, entry(2, 9, 1)), true, false, false},
		{"first entry counts", profile(in, entry(out, 9, 1), entry(in)), true, false, false},
		{"entry of another indom", profile(in, pcpwire.ProfileInDom{InDom: 8, State: out}), true, true, true},
	}
	for _, tt := range tests {
		check := func(t *testing.T, p *pcpwire.Profile) {
			t.Helper()
			for inst, want := range map[int32]bool{9: tt.listed, 1: tt.listed, 5: tt.rest} {
				if got := p.Includes(7, inst); got != want {
					t.Errorf("instance %d: %v, want %v", inst, got, want)
				}
			}
			if got := p.IncludesAll(7); got != tt.all {
				t.Errorf("all: %v, want %v", got, tt.all)
			}
		}
		t.Run(tt.name, func(t *testing.T) {
			check(t, tt.profile)
			if q := tt.profile.Clone(); q != nil {
				check(t, q)
				q.Sort()
				check(t, q)
			}
		})
	}
}

// TestProfileCopy checks that a copy shares no memory and that a second one takes none.
func TestProfileCopy(t *testing.T) {
	p := &pcpwire.Profile{Context: 3, State: 1, InDoms: []pcpwire.ProfileInDom{
		{InDom: 7, Insts: []int32{9, 1}}, {InDom: 8, State: 1, Insts: []int32{4}}, {InDom: 9},
	}}
	var q pcpwire.Profile
	p.CopyTo(&q)
	want := p.Clone()
	if !q.Equal(*p) || !want.Equal(*p) {
		t.Fatalf("copies differ:\n%s", cmp.Diff(p, &q))
	}
	if q.Sort(); p.InDoms[0].Insts[0] != 9 {
		t.Error("sorting the copy changed the original")
	}
	p.InDoms[0].Insts[0], p.InDoms[1].Insts[0] = 100, 101
	p.InDoms[1].InDom = 11
	if q.InDoms[0].Insts[1] != 9 || q.InDoms[1].Insts[0] != 4 || q.InDoms[1].InDom != 8 {
		t.Errorf("the copy shares memory: %+v", q)
	}
	if p.CopyTo(&q); !q.Equal(*p) || q.Equal(*want) {
		t.Errorf("copied again: %+v", q)
	}
	if !raceEnabled {
		if n := testing.AllocsPerRun(100, func() { p.CopyTo(&q) }); n != 0 {
			t.Errorf("%v allocations to copy again", n)
		}
	}
}

// TestProfileReuse checks that what one PDU left behind does not show in the next.
func TestProfileReuse(t *testing.T) {
	var p pcpwire.Profile
	body := func(name string) []byte { return golden(t, name)[pcpwire.HeaderSize:] }
	if err := p.Decode(body("profile-all-minus")); err != nil {
		t.Fatal(err)
	}
	p.Sort()
	for _, name := range []string{"profile-none-add5", "profile-default", "profile-all-minus"} {
		var fresh pcpwire.Profile
		if err := fresh.Decode(body(name)); err != nil {
			t.Fatal(err)
		}
		if err := p.Decode(body(name)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fresh, p); diff != "" {
			t.Errorf("%s (-fresh +reused):\n%s", name, diff)
		}
	}
	// It came unsorted (5, 1), so a binary search would miss one.
	if p.Includes(gold, 5) || p.Includes(gold, 1) || !p.Includes(gold, 15) {
		t.Error("taken for sorted")
	}
}
