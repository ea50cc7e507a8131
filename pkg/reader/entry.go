package reader

import (
	"slices"
	"strings"
	"time"
)

// entry is what is known of one name in the directory.
type entry struct {
	name    string
	state   State
	skip    bool      // not a regular file: none of our business
	err     error     // why it is not loaded
	file    *File     // loaded, or Held
	until   time.Time // to which it is Held
	flux    uint64    // generation that its writer was making when last looked at
	id      fileID
	stamp   stamp   // just before it was last read
	young   bool    // stamp was: more may have happened under it
	head    int     // index in Dir.heads, -1: none
	hm      mapping // the header alone, of a file that is not loaded
	pid     int32   // watched writer, 0: none
	wd      int32   // watch of its own, -1: none
	overMax bool
	looked  uint64 // in which Look it was last looked at
	dead    Header // of a dead file
}

// head is the header of a mapped file as last seen; live ones are compared
// with it at every look.
type head struct {
	m           mapping
	tag, g1, g2 uint64
	e           *entry
}

// find returns the entry of that name, made when it is not there.
func (d *Dir) find(name string) *entry {
	if e := d.entries[name]; e != nil {
		return e
	}
	e := &entry{name: strings.Clone(name), head: -1, wd: -1, state: Rejected, skip: true, looked: d.looks.Load()}
	d.entries[e.name] = e
	i, _ := slices.BinarySearchFunc(d.order, name, func(o *entry, n string) int { return strings.Compare(o.name, n) })
	d.order = slices.Insert(d.order, i, e)
	return e
}

// remove forgets a name that is no longer in the directory.
func (d *Dir) remove(e *entry) {
	d.unload(e)
	d.unwatch(e)
	d.setPoll(e, false)
	d.setWritten(e, false)
	d.setOverMax(e, false)
	delete(d.entries, e.name)
	i, _ := slices.BinarySearchFunc(d.order, e.name, func(o *entry, n string) int { return strings.Compare(o.name, n) })
	d.order = slices.Delete(d.order, i, i+1)
	if !e.skip {
		d.changed = true
		d.opts.Report(Report{Name: e.name, State: e.state, Gone: true})
	}
}

// set gives e its new state and reports it when it is one.
func (d *Dir) set(e *entry, s State, err error) {
	same := !e.skip && e.state == s && sameErr(err, e.err)
	e.skip, e.state, e.err = false, s, err
	if !same {
		d.changed = true
		d.opts.Report(Report{Name: e.name, State: s, Err: err})
	}
}

// unload lets go of e's mappings and file.
func (d *Dir) unload(e *entry) {
	d.dropHead(e)
	if e.file != nil {
		if !e.file.Held {
			d.retired = append(d.retired, e.file)
			d.loaded--
		}
		e.file = nil
		d.changed = true
	}
	if e.hm.base != nil {
		e.hm.unmap() // never part of a Snapshot
		e.hm = mapping{}
	}
}

func (d *Dir) unwatch(e *entry) {
	d.unwatchWriter(e)
	d.in.unwatch(e)
}

func (d *Dir) addHead(e *entry, m mapping, tag, g1, g2 uint64) {
	e.head = len(d.heads)
	d.heads = append(d.heads, head{m, tag, g1, g2, e})
}

func (d *Dir) dropHead(e *entry) {
	if e.head < 0 {
		return
	}
	last := len(d.heads) - 1
	d.heads[e.head] = d.heads[last]
	d.heads[e.head].e.head = e.head
	d.heads[last] = head{}
	d.heads = d.heads[:last]
	e.head = -1
}

func (d *Dir) setPoll(e *entry, on bool) {
	if on {
		d.polled[e] = struct{}{}
	} else {
		delete(d.polled, e)
	}
}

func (d *Dir) setWritten(e *entry, on bool) {
	if on {
		d.written[e] = struct{}{}
	} else {
		delete(d.written, e)
	}
	d.nWritten.Store(int32(len(d.written)))
}

func (d *Dir) setOverMax(e *entry, on bool) {
	if e.overMax != on {
		e.overMax = on
		d.overMax += map[bool]int{true: 1, false: -1}[on]
	}
}

func (d *Dir) unwatchWriter(e *entry) {
	if e.pid != 0 {
		d.ps.unwatch(e, e.pid)
		e.pid = 0
	}
}

// pend makes e a pending file. What it was before stays visible for a while,
// without values: its writer is about to publish it again. Another generation
// since the last look shows that it has done so meanwhile.
func (d *Dir) pend(e *entry, id fileID, generation uint64, err error) {
	old, until := e.file, e.until
	if old != nil && old.Catalog.Outline {
		old = nil // too little is known of it
	}
	changed := d.changed
	d.unload(e)
	if old != nil && old.Held {
		d.changed = changed // it stays what it is
	}
	d.unwatchWriter(e)
	e.id = id
	if old != nil {
		if !old.Held {
			old = &File{Name: e.name, Catalog: old.Catalog, Held: true}
			until = time.Now().Add(heldFor)
			d.held = append(d.held, e)
		} else if generation != 0 && generation != e.flux {
			until = time.Now().Add(heldFor)
		}
		e.file, e.until = old, until
		if generation != 0 {
			e.flux = generation
		}
	}
	if !d.in.watching() {
		d.setPoll(e, true)
	}
	d.set(e, Pending, err)
}

// busy is for a file that cannot be looked at now through no fault of its own.
func (d *Dir) busy(e *entry, err error) {
	d.pend(e, fileID{}, 0, err)
	e.stamp = stamp{}
	d.setPoll(e, true)
}

// skip is for what is not a file.
func (d *Dir) skip(e *entry, poll bool) {
	d.unload(e)
	d.unwatch(e)
	if !e.skip {
		d.changed = true
		d.opts.Report(Report{Name: e.name, State: e.state, Gone: true})
	}
	e.skip, e.state, e.err, e.id = true, Rejected, nil, fileID{}
	d.setPoll(e, poll)
	d.setOverMax(e, false)
}

// reject is for a file with which something is wrong.
func (d *Dir) reject(e *entry, id fileID, err error) {
	d.unload(e)
	d.unwatchWriter(e)
	e.id = id
	d.set(e, Rejected, err)
}

// bury hides a file with that header, whose writer has gone.
func (d *Dir) bury(e *entry, h Header, err error) {
	d.unload(e)
	e.dead = h
	d.set(e, Dead, err)
}
