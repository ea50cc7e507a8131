package exporter

import (
	"sort"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// plan says where the values of a cluster's metrics are. It is made when the
// first of them is asked for: many never are. It is immutable.
type plan struct {
	slots   []slot // by item
	layouts []*reader.Layout
	shared  []sharedPlan
}

// slot says how to read a metric, in 8 bytes, since for a large fetch the
// memory that is looked at is the time that it takes.
type slot struct {
	off  uint32 // of the value of a simple metric; else how many values there may be
	file uint32 // index of the file of a simple metric, with the kind in the high byte
}

// The kinds of slots: simple metrics have one value of a number type, which is
// a matter of one load.
const (
	kindNone    = iota // no metric
	kindGeneral        // to be read the long way
	kind32
	kind64
	kindU64
	kindFloat
	kindDouble

	kindShift = 24
	fileMask  = 1<<kindShift - 1
)

// wireTypes are the types on the wire, by kind.
var wireTypes = [...]pcpwire.Type{
	kind32: pcpwire.TypeU32, kind64: pcpwire.TypeI64, kindU64: pcpwire.TypeU64,
	kindFloat: pcpwire.TypeFloat, kindDouble: pcpwire.TypeDouble,
}

// sharedPlan is where the values of a shared metric are.
type sharedPlan struct {
	refs []reader.ValueRef // in the order of the indom
	runs []run             // of refs of one file
}

type run struct{ file, from, to int }

// plan returns the cluster's plan.
func (s *session) plan(c *cluster) *plan {
	if p := c.planned.Load(); p != nil {
		return p
	}
	if s.e.opts.Published != nil {
		s.e.opts.Published() // what it takes to make one is garbage, too
	}
	return c.makePlan()
}

func (c *cluster) makePlan() *plan {
	p := &plan{layouts: make([]*reader.Layout, len(c.files)), shared: make([]sharedPlan, len(c.shared)), slots: make([]slot, c.len())}
	whole := true
	for k, f := range c.files {
		p.layouts[k] = f.f.Layout()
		whole = whole && (p.layouts[k] != nil || f.f.Held)
	}
	for i := range c.shared {
		p.shared[i] = c.gather(p, &c.shared[i])
	}
	for i := range p.slots {
		switch it := c.item(uint32(i)); {
		case it.file == noFile:
		case it.shared():
			p.slots[i] = slot{uint32(len(p.shared[it.metric].refs)), kindGeneral << kindShift}
		default:
			p.slots[i] = c.slot(p, int(it.file-1), it.metric)
		}
	}
	if whole { // else a file has just changed, and so will the cluster
		c.planned.Store(p)
	}
	return p
}

// slot is how metric m of file k is read.
func (c *cluster) slot(p *plan, k int, m uint32) slot {
	refs := p.refs(k, m)
	metric := &c.files[k].cat.Metrics[m]
	kind := kindGeneral
	if metric.Singular() && refs.Len() == 1 && k <= fileMask {
		switch metric.Type {
		case reader.TypeI32, reader.TypeU32:
			kind = kind32
		case reader.TypeI64:
			kind = kind64
		case reader.TypeU64:
			kind = kindU64
		case reader.TypeFloat:
			kind = kindFloat
		case reader.TypeDouble:
			kind = kindDouble
		default:
		}
	}
	if kind == kindGeneral {
		return slot{uint32(refs.Len()), kindGeneral << kindShift}
	}
	return slot{refs.At(0).Off, uint32(kind)<<kindShift | uint32(k)}
}

// refs are the slots of metric m of file k, none where they are not known.
func (p *plan) refs(k int, m uint32) reader.Refs {
	if p.layouts[k] == nil {
		return reader.Refs{}
	}
	return p.layouts[k].Refs(m)
}

// gather finds the values of a shared metric in the order of its indom. Of an
// instance that several files have, the first file's value counts.
func (c *cluster) gather(pl *plan, s *sharedMetric) (sp sharedPlan) {
	type found struct {
		reader.ValueRef
		file int
	}
	first := c.first(s)
	var all []found
	if first.Singular() {
		for _, p := range s.parts {
			if refs := pl.refs(p.file, p.metric); refs.Len() > 0 {
				all = append(all, found{refs.At(0), p.file})
				break
			}
		}
	} else if u := s.union; u.plain {
		for _, p := range s.parts {
			refs := pl.refs(p.file, p.metric)
			for v := range refs.All() {
				all = append(all, found{v, p.file})
			}
		}
	} else {
		seen := map[int32]bool{}
		for _, p := range s.parts {
			good := c.agreed(u, p.file, &c.files[p.file].cat.Metrics[p.metric])
			refs := pl.refs(p.file, p.metric)
			for v := range refs.All() {
				if good[v.Inst] && !seen[v.Inst] {
					seen[v.Inst] = true
					all = append(all, found{v, p.file})
				}
			}
		}
		sort.SliceStable(all, func(i, j int) bool { return u.byID[all[i].Inst] < u.byID[all[j].Inst] })
	}
	for _, v := range all {
		sp.refs = append(sp.refs, v.ValueRef)
		if n := len(sp.runs); n > 0 && sp.runs[n-1].file == v.file {
			sp.runs[n-1].to++
		} else {
			sp.runs = append(sp.runs, run{v.file, len(sp.refs) - 1, len(sp.refs)})
		}
	}
	return sp
}
