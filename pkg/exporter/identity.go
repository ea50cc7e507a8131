package exporter

import (
	"errors"
	"sort"
)

const (
	maxCluster = 4095
	maxSerial  = 1<<22 - 1
	// maxNames and maxInDoms bound what is kept of files that are no longer there.
	maxNames  = 16384
	maxInDoms = 65536
)

var (
	errNoCluster = errors.New("no cluster number left")
	errNoInDom   = errors.New("no indom number left")
)

// identity is what is kept for one file name, for good: its cluster, and its
// instance in the indom of files.
type identity struct {
	name    string
	asked   uint32 // cluster that the file asks for, 0 for any
	cluster uint32 // that it has, 0: none yet
	inst    int32  // -1: none yet
	since   uint64 // when it came to have the cluster, by the counter of changes
	last    uint64 // when its file was last there
	sum     uint64 // of its metrics, where files may share the cluster
	present bool   // its file is there and has the cluster, or is about to get one
}

// own tells whether the cluster is for this file alone: given, not asked for.
func (id *identity) own() bool { return id.cluster != 0 && id.cluster != id.asked }

// indomKey names an instance domain: a cluster and a serial, and the file whose
// own it is where it could not be shared with the others of the cluster.
type indomKey struct {
	cluster uint32
	serial  uint32
	file    string
}

type indomIdentity struct {
	key    indomKey
	number uint32
	last   uint64 // when it was last looked for
}

// registry gives out the numbers that stay. It is used under the Exporter's lock.
type registry struct {
	counter uint64 // of changes
	saved   uint64 // the counter in the file: whoever was there then has it as last
	names   map[string]*identity
	owner   [maxCluster + 1]*identity // of clusters that are one file's own
	asked   [maxCluster + 1]int       // known names that ask for it
	present [maxCluster + 1]int       // files that are there and have it
	left    [maxCluster + 1]uint64    // when a file of it last went
	insts   map[int32]*identity
	inst    int32                  // no lower one is free
	made    [maxCluster + 1]uint64 // when its files' indoms were last given numbers
	indoms  map[indomKey]*indomIdentity
	numbers map[uint32]*indomIdentity
	number  uint32 // no higher one is free

	dirty   bool // differs from what is saved
	stale   bool // likewise, but only in when files were last there
	evicted bool // a number was taken from an absent file

	idle       queue[*identity]
	holders    queue[*identity] // of a cluster
	idleInDoms queue[*indomIdentity]
}

// queue has those that may go, the longest absent first, as they were when it
// was filled.
type queue[T any] struct {
	list   []absentee[T]
	filled uint64 // at that count of changes; before the next there are no more
}

// absentee is something that is not there now, and when it last was.
type absentee[T any] struct {
	what T
	last uint64
}

// next takes the first one for which good is true; fill makes the queue anew
// when it is used up.
func (q *queue[T]) next(counter uint64, good func(absentee[T]) bool, fill func() []absentee[T]) (none T) {
	for {
		for len(q.list) > 0 {
			a := q.list[0]
			q.list = q.list[1:]
			if good(a) {
				return a.what
			}
		}
		if q.filled == counter {
			return none
		}
		q.list, q.filled = fill(), counter
	}
}

func newRegistry() *registry {
	return &registry{
		names: map[string]*identity{}, insts: map[int32]*identity{},
		indoms: map[indomKey]*indomIdentity{}, numbers: map[uint32]*indomIdentity{}, number: maxSerial,
	}
}

// name returns the identity of that name, made when there is none. One that is
// not present can be forgotten at the next call for another name.
func (r *registry) name(name string) *identity {
	id := r.names[name]
	if id == nil {
		if len(r.names) >= maxNames {
			if o := r.longest(&r.idle, func(id *identity) bool { return id.last != r.counter }); o != nil {
				r.evicted = r.evicted || o.cluster != 0
				r.forget(o)
			}
		}
		id = &identity{name: name, inst: -1}
		r.names[name] = id
		r.dirty = true
	}
	return id
}

// longest takes the name that has been absent longest, of those that may go,
// from the queue; nil if there is none.
func (r *registry) longest(q *queue[*identity], may func(*identity) bool) *identity {
	good := func(a absentee[*identity]) bool {
		id := a.what
		return r.names[id.name] == id && id.last == a.last && !id.present && may(id)
	}
	return q.next(r.counter, good, func() (list []absentee[*identity]) {
		for _, id := range r.names {
			if !id.present && may(id) {
				list = append(list, absentee[*identity]{id, id.last})
			}
		}
		sort.Slice(list, func(i, j int) bool {
			a, b := &list[i], &list[j]
			return a.last < b.last || a.last == b.last && a.what.name < b.what.name
		})
		return list
	})
}

// give makes cluster the one of id, which asks for asked.
func (r *registry) give(id *identity, asked, cluster uint32) {
	if id.cluster == cluster && id.asked == asked {
		return
	}
	r.drop(id)
	id.asked, id.cluster = asked, cluster
	r.hold(id)
	r.renew(id)
}

// renew makes id the last to have come to its cluster.
func (r *registry) renew(id *identity) {
	id.since = r.counter
	r.dirty = true
}

// reserve enters that id asks for a cluster before it has one, so that nobody
// else is given that.
func (r *registry) reserve(id *identity, asked uint32) {
	if id.asked == asked {
		return
	}
	r.drop(id)
	id.asked = asked
	r.hold(id)
	r.dirty = true
}

// hold enters what id has; drop is its reverse, after which it has nothing.
func (r *registry) hold(id *identity) {
	if id.asked != 0 {
		r.asked[id.asked]++
	}
	if id.own() {
		r.owner[id.cluster] = id
	}
	if id.present {
		r.present[id.cluster]++
	}
}

func (r *registry) drop(id *identity) {
	if id.asked != 0 {
		r.asked[id.asked]--
	}
	if id.own() {
		r.owner[id.cluster] = nil
	}
	if id.present {
		r.present[id.cluster]--
	}
	id.asked, id.cluster = 0, 0
}

// appear and leave tell that the file of id is there, or no longer.
func (r *registry) appear(id *identity) {
	id.last = r.counter
	if !id.present {
		id.present = true
		r.present[id.cluster]++
		r.stale = true
	}
}

func (r *registry) leave(id *identity) {
	id.last = r.counter
	if id.present {
		id.present = false
		r.present[id.cluster]--
		r.left[id.cluster] = r.counter
		r.stale = true
	}
}

// forget drops all that is kept for a name.
func (r *registry) forget(id *identity) {
	r.drop(id)
	if id.inst >= 0 {
		delete(r.insts, id.inst)
		r.inst = min(r.inst, id.inst)
	}
	delete(r.names, id.name)
	r.dirty = true
}

// claim makes an explicit cluster available: an absent file that was given it
// loses it. It returns false when that file is present.
func (r *registry) claim(cluster uint32) bool {
	o := r.owner[cluster]
	if o == nil {
		return true
	}
	if o.present {
		return false
	}
	asked := o.asked
	r.drop(o)
	o.asked = asked
	r.hold(o)
	r.dirty = true
	return true
}

// free returns the lowest cluster that nobody has asked for and nobody has.
// When there is none, absent files lose theirs, the longest absent first.
func (r *registry) free() (uint32, error) {
	for {
		for c := uint32(1); c <= maxCluster; c++ {
			if r.owner[c] == nil && r.asked[c] == 0 && r.present[c] == 0 {
				return c, nil
			}
		}
		o := r.longest(&r.holders, func(id *identity) bool { return id.own() || id.asked != 0 && r.present[id.asked] == 0 })
		if o == nil {
			return 0, errNoCluster
		}
		r.evicted = true
		r.forget(o)
	}
}

// instance returns id's instance in the indom of files.
func (r *registry) instance(id *identity) int32 {
	id.last = r.counter
	if id.inst < 0 {
		for r.insts[r.inst] != nil {
			r.inst++
		}
		id.inst = r.inst
		r.insts[id.inst] = id
		r.dirty = true
	}
	return id.inst
}

// canonical is PCP's number for an instance domain.
func canonical(cluster, serial uint32) uint32 { return (cluster<<11 | serial) & maxSerial }

// indom returns the number of an instance domain that metrics refer to, false
// if there is none left. Number 0 is the one of files.
func (r *registry) indom(key indomKey) (uint32, bool) {
	if d := r.indoms[key]; d != nil {
		d.last = r.counter
		return d.number, true
	}
	n := canonical(key.cluster, key.serial)
	if n == 0 || key.file != "" || r.numbers[n] != nil {
		for r.number > 0 && r.numbers[r.number] != nil { // from the top, where canonical ones of low clusters are not
			r.number--
		}
		if n = r.number; n == 0 {
			return 0, false
		}
	}
	if len(r.indoms) >= maxInDoms {
		r.evictInDom()
	}
	d := &indomIdentity{key: key, number: n, last: r.counter}
	r.indoms[key], r.numbers[n] = d, d
	r.dirty = true
	return n, true
}

// lastInDom is when there was last a file of the indom's cluster that had it.
func (r *registry) lastInDom(d *indomIdentity) uint64 {
	switch c := d.key.cluster; {
	case d.last < r.made[c]:
		return d.last
	case r.present[c] > 0:
		return r.counter
	default:
		return max(d.last, r.left[c])
	}
}

// evictInDom forgets the indom that has been absent longest.
func (r *registry) evictInDom() {
	good := func(a absentee[*indomIdentity]) bool {
		return r.indoms[a.what.key] == a.what && a.last == r.lastInDom(a.what) && a.last < r.counter
	}
	d := r.idleInDoms.next(r.counter, good, func() (list []absentee[*indomIdentity]) {
		for _, d := range r.indoms {
			if last := r.lastInDom(d); last < r.counter {
				list = append(list, absentee[*indomIdentity]{d, last})
			}
		}
		sort.Slice(list, func(i, j int) bool {
			a, b := &list[i], &list[j]
			return a.last < b.last || a.last == b.last && a.what.number < b.what.number
		})
		return list
	})
	if d != nil {
		delete(r.indoms, d.key)
		delete(r.numbers, d.number)
		r.number = max(r.number, d.number)
		r.evicted = true
	}
}
