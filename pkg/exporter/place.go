package exporter

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// arrival is a file that is to get its cluster.
type arrival struct {
	*file
	last uint64 // when it was last there before
	rank int

	// How it has been found to be to the others of the cluster that it asks for,
	// of which so many have been looked at.
	checked         int
	differs, agrees bool
}

// changed tells whether the file asks for a cluster with other metrics than before.
func (a *arrival) changed() bool { return a.asks() != 0 && a.id.sum != a.sum }

// The ranks, in the order in which clusters are given.
const (
	rankKeeps = iota // has its number from before
	rankMoved        // likewise, but asks for one that it could not have
	rankAny          // has none
	rankAsks         // asks for one
)

// place gives each of the fresh files its cluster. Of all it is entered first
// that they are there and what they ask for, so that nobody is given that.
func (e *Exporter) place(fresh []*file, touched map[uint32]bool) {
	r := e.reg
	arrivals := make([]arrival, 0, len(fresh))
	for _, f := range fresh {
		delete(e.failed, f.f.Name)
		e.byName[f.f.Name] = f
		if f.err != nil {
			e.failed[f.f.Name] = f.err
			continue
		}
		a := arrival{file: f}
		if id := r.names[f.f.Name]; id != nil {
			a.last = id.last
			r.appear(id)
		}
		arrivals = append(arrivals, a)
	}
	sort.Slice(arrivals, func(i, j int) bool { return arrivals[i].f.Name < arrivals[j].f.Name })
	for i := range arrivals {
		a := &arrivals[i]
		a.id = r.name(a.f.Name)
		r.appear(a.id)
		if asked := a.asks(); asked != 0 {
			r.reserve(a.id, asked)
		}
	}
	e.rank(arrivals)
	e.join(arrivals, touched)
	full := false
	for i := range arrivals {
		a := &arrivals[i]
		if a.cluster != 0 {
			continue
		}
		n, err := e.choose(a, full)
		if err != nil {
			full = true
			e.failed[a.f.Name] = err
			r.leave(a.id)
			continue
		}
		e.settle(a, n, touched)
	}
	for i := range arrivals {
		arrivals[i].was = nil
	}
}

// join settles the files that can have the cluster that they ask for, or have
// one from before. One may make room for another.
func (e *Exporter) join(arrivals []arrival, touched map[uint32]bool) {
	there := map[uint32][]*file{} // members, in the order in which they came
	for again := true; again; {
		again = false
		for i := range arrivals {
			a := &arrivals[i]
			asked := a.asks()
			switch {
			case a.cluster != 0:
				continue
			case asked == 0 && a.rank == rankKeeps:
				e.settle(a, a.id.cluster, touched)
				continue
			case asked == 0 || !e.fits(a, there):
				continue
			case a.rank == rankMoved:
				e.events = append(e.events, Event{Level: Info, File: a.f.Name, Text: fmt.Sprintf(
					"cluster %d has become free and is used instead of %d", asked, a.id.cluster)})
			}
			e.settle(a, asked, touched)
			there[asked] = append(there[asked], a.file)
			again = true
		}
	}
}

// fits tells whether a file can have the cluster that it asks for. One that
// could not before goes back at the start of an agent only, if who was in the
// way is gone.
func (e *Exporter) fits(a *arrival, there map[uint32][]*file) bool {
	asked := a.asks()
	if a.rank == rankMoved && e.started || !e.reg.claim(asked) {
		return false
	}
	if _, ok := there[asked]; !ok {
		there[asked] = slices.Clone(e.members[asked])
	}
	if e.together(a) {
		return true
	}
	strict := a.rank == rankMoved
	files := there[asked]
	for ; a.checked < len(files) && (strict || !a.agrees); a.checked++ {
		compare(a.source, files[a.checked].source, &a.agrees, &a.differs)
	}
	return !a.differs || a.agrees && !strict
}

// together tells whether the file was in its cluster at the end of the last run
// and is as it was: what was together then stays so.
func (e *Exporter) together(a *arrival) bool {
	return !e.started && a.rank == rankKeeps && a.last >= e.reg.saved && a.id.sum == a.sum
}

// comesAnew tells whether the file has an item for which others that are there have
// another metric, or an instance for which they have another name, and had not
// before. It then comes after them: what is theirs stays.
func (e *Exporter) comesAnew(a *arrival) bool {
	files := e.members[a.id.cluster]
	switch {
	case e.together(a) || len(files) == 0:
		return false
	case (a.was == nil || a.changed()) && disputes(a.source, a.was, files):
		return true
	default:
		return a.was != nil && renames(a.source, a.was, files)
	}
}

// settle gives a file its cluster.
func (e *Exporter) settle(a *arrival, n uint32, touched map[uint32]bool) {
	r, asked := e.reg, a.asks()
	if n == asked && n == a.id.cluster && (a.rank != rankKeeps || e.comesAnew(a)) {
		r.renew(a.id)
	}
	r.give(a.id, asked, n)
	if asked != 0 && a.id.sum != a.sum {
		a.id.sum = a.sum
		r.dirty = true
	}
	a.cluster, a.since = n, a.id.since
	m := e.members[n]
	k, _ := slices.BinarySearchFunc(m, a.f.Name, byFileName)
	e.members[n] = slices.Insert(slices.Clone(m), k, a.file)
	touched[n] = true
}

func byFileName(f *file, name string) int { return strings.Compare(f.f.Name, name) }

// asks is the cluster that a file asks for, 0 for any.
func (f *file) asks() uint32 { return uint32(f.cat.Header.Cluster) }

// rank sorts files, which are by name. Those that keep a number go by when they
// first had it, those that are as they were before those that have changed. A
// file has lost its right to an explicit one to whoever came to it while the file
// was gone.
func (e *Exporter) rank(arrivals []arrival) {
	shares := func(id *identity) bool { return id.cluster != 0 && id.cluster == id.asked }
	newest := map[uint32]uint64{} // to have come to each cluster
	for i := range arrivals {
		id := arrivals[i].id
		if !shares(id) {
			continue
		}
		newest[id.cluster] = max(newest[id.cluster], id.since)
		if len(e.members[id.cluster]) > 0 && newest[id.cluster] < e.reg.counter {
			for _, f := range e.members[id.cluster] {
				newest[id.cluster] = max(newest[id.cluster], f.since)
			}
		}
	}
	for i := range arrivals {
		a := &arrivals[i]
		id, asked := a.id, a.asks()
		switch {
		case asked != 0 && shares(id) && newest[asked] <= a.last, asked == 0 && id.own():
			a.rank = rankKeeps
		case asked == 0:
			a.rank = rankAny
		case id.own():
			a.rank = rankMoved
		default:
			a.rank = rankAsks
		}
	}
	sort.SliceStable(arrivals, func(i, j int) bool {
		a, b := &arrivals[i], &arrivals[j]
		if a.rank == rankKeeps && b.rank == rankKeeps {
			if x, y := a.changed(), b.changed(); x != y {
				return y
			}
			return a.id.since < b.id.since
		}
		return a.rank < b.rank
	})
}

// choose finds the cluster of a file that does not fit where it would be; full
// says that there is no free one left.
func (e *Exporter) choose(a *arrival, full bool) (uint32, error) {
	if a.rank == rankMoved {
		return a.id.cluster, nil
	}
	if full {
		return 0, errNoCluster
	}
	n, err := e.reg.free()
	if err == nil && a.asks() != 0 {
		e.events = append(e.events, Event{Level: Warning, File: a.f.Name, Text: fmt.Sprintf(
			"cluster %d is another file's, with other metrics: %d is used instead", a.asks(), n)})
	}
	return n, err
}
