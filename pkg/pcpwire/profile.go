package pcpwire

import (
	"fmt"
	"slices"
)

// ProfileState says whether instances are in, unless they are listed
// (PM_PROFILE_*). libpcp takes any value but ProfileInclude for ProfileExclude.
type ProfileState int32

// The states.
const (
	ProfileInclude ProfileState = 0
	ProfileExclude ProfileState = 1
)

// Profile says which instances the fetches and requests for instance labels
// that follow are about (pmProfile):
//
//	ctxid     of the client's context, not negative; means nothing to an agent
//	state     for the instance domains that have no entry
//	numprof   number of entries
//	pad       0
//	entries   numprof times: indom, state, numinst, pad (0)
//	inst      the instances of all entries, one after the other
//
// A nil *Profile includes everything, as before the first one has come.
type Profile struct {
	Context int32
	State   ProfileState
	InDoms  []ProfileInDom

	insts  []int32 // memory of Insts, for the next Decode or CopyTo
	sorted bool    // the Insts are in ascending order
}

// ProfileInDom is the entry of one instance domain (pmInDomProfile): with
// ProfileInclude the instances that are out, with ProfileExclude those that are in.
type ProfileInDom struct {
	InDom InDom
	State ProfileState
	Insts []int32
}

// PDUType returns PDUProfile.
func (*Profile) PDUType() PDUType { return PDUProfile }

// AppendBinary appends the body; Context must not be negative.
func (p *Profile) AppendBinary(dst []byte) ([]byte, error) {
	if p.Context < 0 {
		return dst, fmt.Errorf("ctxid %d: %w", p.Context, ErrRange)
	}
	dst = appendI32(dst, p.Context)
	dst = appendI32(dst, int32(p.State))
	dst = appendI32(dst, int32(len(p.InDoms)))
	dst = appendI32(dst, 0)
	for _, e := range p.InDoms {
		dst = appendU32(dst, uint32(e.InDom))
		dst = appendI32(dst, int32(e.State))
		dst = appendI32(dst, int32(len(e.Insts)))
		dst = appendI32(dst, 0)
	}
	for _, e := range p.InDoms {
		for _, inst := range e.Insts {
			dst = appendI32(dst, inst)
		}
	}
	return dst, nil
}

// Decode reads the body. It aliases nothing of it. Bytes after the end are
// ignored, as libpcp does.
func (p *Profile) Decode(body []byte) error {
	c := cursor{pdu: PDUProfile, src: body}
	p.Context = c.i32("ctxid")
	if p.Context < 0 {
		c.fail("ctxid", 0, ErrRange)
	}
	p.State = ProfileState(c.i32("state"))
	n := c.count("numprof", 16)
	c.u32("pad")
	if c.err == nil && n > c.left()/16 { // the pad word was counted
		c.fail("entries", c.off, ErrShort)
	}
	if c.err != nil {
		return c.err
	}

	p.sorted = false
	p.InDoms = resize(p.InDoms, n)
	// All entries come before all instances, so what is left must hold the sum.
	total, room := 0, (c.left()-16*n)/4
	entries := c
	for range p.InDoms {
		c.u32("indom")
		c.u32("state")
		off := c.off
		k := c.i32("numinst")
		switch {
		case k < 0:
			c.fail("numinst", off, ErrRange)
		case int(k) > room-total:
			c.fail("numinst", off, ErrShort)
		}
		if c.err != nil {
			return c.err
		}
		total += int(k)
		c.u32("pad")
	}
	p.insts = resize(p.insts, total)
	for i := range p.insts {
		p.insts[i] = c.i32("inst")
	}
	at := 0
	for i := range p.InDoms {
		e := &p.InDoms[i]
		e.InDom = InDom(entries.u32("indom"))
		e.State = ProfileState(entries.i32("state"))
		end := at + int(entries.i32("numinst"))
		entries.u32("pad")
		e.Insts = p.insts[at:end:end]
		at = end
	}
	return c.err
}

// Includes says whether the profile includes an instance. Use [Profile.Filter]
// to ask for many of one instance domain.
func (p *Profile) Includes(indom InDom, inst int32) bool { return p.Filter(indom).Includes(inst) }

// IncludesAll says whether the profile excludes no instance of indom.
func (p *Profile) IncludesAll(indom InDom) bool { return p.Filter(indom).All() }

// Filter returns what the profile says about one instance domain: the first
// entry for it, or else the profile's state. It is valid as long as p is.
func (p *Profile) Filter(indom InDom) ProfileFilter {
	if p == nil {
		return ProfileFilter{include: true}
	}
	for i := range p.InDoms {
		if e := &p.InDoms[i]; e.InDom == indom {
			return ProfileFilter{insts: e.Insts, include: e.State == ProfileInclude, sorted: p.sorted}
		}
	}
	return ProfileFilter{include: p.State == ProfileInclude}
}

// ProfileFilter tells the instances of one instance domain that a profile
// includes from those that it does not.
type ProfileFilter struct {
	insts   []int32
	include bool // those that are not in insts
	sorted  bool
}

// All says whether no instance is excluded.
func (f ProfileFilter) All() bool { return f.include && len(f.insts) == 0 }

// Includes says whether the instance is included.
func (f ProfileFilter) Includes(inst int32) bool {
	var listed bool
	if f.sorted {
		_, listed = slices.BinarySearch(f.insts, inst)
	} else {
		listed = slices.Contains(f.insts, inst)
	}
	return f.include != listed
}

// Sort puts the instances of each entry in ascending order, which makes filters
// fast. It must not be called on a PDU that is still to be compared or sent on
// as it came, and Insts must not be changed after it.
func (p *Profile) Sort() {
	for _, e := range p.InDoms {
		slices.Sort(e.Insts)
	}
	p.sorted = true
}

// CopyTo makes q a copy of p with memory of its own, using again what q has.
func (p *Profile) CopyTo(q *Profile) {
	total := 0
	for _, e := range p.InDoms {
		total += len(e.Insts)
	}
	insts := resize(q.insts, total)
	indoms := resize(q.InDoms, len(p.InDoms))
	at := 0
	for i, e := range p.InDoms {
		end := at + copy(insts[at:], e.Insts)
		e.Insts = insts[at:end:end]
		indoms[i] = e
		at = end
	}
	*q = Profile{Context: p.Context, State: p.State, InDoms: indoms, insts: insts, sorted: p.sorted}
}

// Clone returns a copy of p with memory of its own; nil for nil.
func (p *Profile) Clone() *Profile {
	if p == nil {
		return nil
	}
	q := new(Profile)
	p.CopyTo(q)
	return q
}

// Equal says whether two profiles have the same contents in the same order.
func (p Profile) Equal(q Profile) bool {
	return p.Context == q.Context && p.State == q.State &&
		slices.EqualFunc(p.InDoms, q.InDoms, func(a, b ProfileInDom) bool {
			return a.InDom == b.InDom && a.State == b.State && slices.Equal(a.Insts, b.Insts)
		})
}
