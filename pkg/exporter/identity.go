package exporter

import (
	"errors"
	"math"
)

const (
	maxCluster = 4095
	maxSerial  = 1<<22 - 1
	// maxNames and maxInDoms bound what is kept of files that are no longer there.
	maxNames  = 16384
	maxInDoms = 65536
)

var errNoCluster = errors.New("no cluster number left")

// identity is what is kept for one file name, for good: its cluster, and its
// instance in the indom of files.
type identity struct {
	name    string
	asked   uint32 // cluster that the file asks for, 0 for any
	cluster uint32 // that it has, 0: none yet
	inst    int32  // -1: none yet
	since   uint64 // when it first had the cluster, by the counter of changes
	last    uint64 // when its file was last there
	present bool
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
	key     indomKey
	number  uint32
	last    uint64
	present bool
}

// registry gives out the numbers that stay. It is used under the Exporter's lock.
type registry struct {
	counter uint64 // of changes
	names   map[string]*identity
	owner   [maxCluster + 1]*identity // of clusters that are one file's own
	asked   [maxCluster + 1]int       // known names that ask for it
	present [maxCluster + 1]int       // files that are there and have it
	insts   map[int32]*identity
	indoms  map[indomKey]*indomIdentity
	numbers map[uint32]*indomIdentity
	dirty   bool // differs from what is saved
	evicted bool // a number was taken from an absent file
}

func newRegistry() *registry {
	return &registry{
		names: map[string]*identity{}, insts: map[int32]*identity{},
		indoms: map[indomKey]*indomIdentity{}, numbers: map[uint32]*indomIdentity{},
	}
}

// name returns the identity of that name, made when there is none.
func (r *registry) name(name string) *identity {
	id := r.names[name]
	if id == nil {
		if len(r.names) >= maxNames {
			r.evict(func(*identity) bool { return true })
		}
		id = &identity{name: name, inst: -1}
		r.names[name] = id
		r.dirty = true
	}
	return id
}

// give makes cluster the one of id, which asks for asked.
func (r *registry) give(id *identity, asked, cluster uint32) {
	if id.cluster == cluster && id.asked == asked {
		return
	}
	r.take(id)
	id.asked, id.cluster = asked, cluster
	id.since = r.counter
	r.hold(id)
	r.dirty = true
}

// ask enters that id asks for a cluster before it has one, so that nobody else
// is given that.
func (r *registry) ask(id *identity, asked uint32) {
	r.take(id)
	id.asked = asked
	r.asked[asked]++
	r.dirty = true
}

// hold enters what id has; take is its reverse.
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

func (r *registry) take(id *identity) {
	if id.asked != 0 {
		r.asked[id.asked]--
	}
	if id.own() && r.owner[id.cluster] == id {
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
	}
}

func (r *registry) leave(id *identity) {
	id.last = r.counter
	if id.present {
		id.present = false
		r.present[id.cluster]--
	}
}

// forget drops all that is kept for a name.
func (r *registry) forget(id *identity) {
	r.take(id)
	if id.inst >= 0 {
		delete(r.insts, id.inst)
	}
	delete(r.names, id.name)
	r.dirty = true
}

// evict forgets the name that has been absent longest of those that may go.
func (r *registry) evict(may func(*identity) bool) bool {
	var oldest *identity
	for _, id := range r.names {
		if !id.present && may(id) && (oldest == nil || id.last < oldest.last || id.last == oldest.last && id.name < oldest.name) {
			oldest = id
		}
	}
	if oldest == nil {
		return false
	}
	r.forget(oldest)
	return true
}

// claim makes an explicit cluster available: an absent file that was given it
// loses it.
func (r *registry) claim(cluster uint32) {
	if o := r.owner[cluster]; o != nil && !o.present {
		r.forget(o)
	}
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
		if !r.evict(func(id *identity) bool { return id.own() || id.asked != 0 && r.present[id.asked] == 0 }) {
			return 0, errNoCluster
		}
		r.evicted = true
	}
}

// instance returns id's instance in the indom of files.
func (r *registry) instance(id *identity) int32 {
	if id.inst < 0 {
		n := int32(0)
		for r.insts[n] != nil {
			n++
		}
		id.inst = n
		r.insts[n] = id
		r.dirty = true
	}
	return id.inst
}

// canonical is PCP's number for an instance domain.
func canonical(cluster, serial uint32) uint32 { return (cluster<<11 | serial) & maxSerial }

// indom returns the number of an instance domain that metrics refer to.
// Number 0 is the one of files.
func (r *registry) indom(key indomKey) uint32 {
	if d := r.indoms[key]; d != nil {
		d.last = r.counter
		return d.number
	}
	n := canonical(key.cluster, key.serial)
	if n == 0 || key.file != "" || r.numbers[n] != nil {
		n = r.freeNumber()
	}
	if len(r.indoms) >= maxInDoms {
		r.evictInDom()
	}
	d := &indomIdentity{key: key, number: n, last: r.counter}
	r.indoms[key], r.numbers[n] = d, d
	r.dirty = true
	return n
}

// freeNumber searches from the top, where canonical numbers of low clusters
// and serials are not.
func (r *registry) freeNumber() uint32 {
	n := uint32(maxSerial)
	for r.numbers[n] != nil && n > 1 {
		n--
	}
	return n
}

func (r *registry) evictInDom() {
	var oldest *indomIdentity
	last := uint64(math.MaxUint64)
	for _, d := range r.indoms {
		if r.present[d.key.cluster] == 0 && d.last < last {
			oldest, last = d, d.last
		}
	}
	if oldest != nil {
		delete(r.indoms, oldest.key)
		delete(r.numbers, oldest.number)
		r.evicted = true
	}
}
