package exporter

import (
	"cmp"
	"slices"
	"sort"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// Table is all that the agent exports at one moment, but for the values. It is
// immutable; the next one shares what does not change.
type Table struct {
	domain   uint32
	clusters clusterSet
	space    nameSpace
	indoms   []indomRef // by number
	control  []controlMetric
	files    fileRows

	snap     *reader.Snapshot
	list     []*file // of snap.Files
	loaded   int     // files
	pending  int
	rejected int
	reloads  uint64
	forcing  uint64 // Exporter.forcing
	number   uint64 // of no other Table
	outline  bool   // made without the instances of some files
	sums            // of the clusters
}

// clusterSet is an array of clusters by number, in pages that sets share: the
// next one costs no more than what is other in it.
type clusterSet struct {
	pages [(maxCluster + 1) / pageSize]*[pageSize]*cluster
	own   uint64 // which pages are this set's alone
}

const pageSize = 64

// at is the cluster of that number, nil if there is none.
func (s *clusterSet) at(n uint32) *cluster {
	if p := s.pages[n/pageSize]; p != nil {
		return p[n%pageSize]
	}
	return nil
}

// set is for a set that nobody else uses yet.
func (s *clusterSet) set(n uint32, c *cluster) {
	p, bit := &s.pages[n/pageSize], uint64(1)<<(n/pageSize)
	if s.own&bit == 0 {
		page := new([pageSize]*cluster)
		if *p != nil {
			*page = **p
		}
		*p, s.own = page, s.own|bit
	}
	(*p)[n%pageSize] = c
}

// indomRef says which cluster has an indom.
type indomRef struct {
	number  uint32
	cluster uint16
	index   uint32 // in cluster.indoms
}

// ours tells whether a PMID has the agent's domain, and no more.
func (t *Table) ours(pmid pcpwire.PMID) bool { return uint32(pmid)>>22 == t.domain }

// find returns the cluster and item of a metric of a file.
func (t *Table) find(pmid pcpwire.PMID) (*cluster, item) {
	c := t.clusters.at(pmid.Cluster())
	if c == nil || !t.ours(pmid) {
		return nil, item{}
	}
	it := c.item(pmid.Item())
	if it.file == noFile {
		return nil, item{}
	}
	return c, it
}

// indom returns an indom of files' metrics.
func (t *Table) indom(id pcpwire.InDom) (*cluster, *indom) {
	if id.Domain() != t.domain || id>>31 != 0 {
		return nil, nil
	}
	i, ok := slices.BinarySearchFunc(t.indoms, id.Serial(), func(r indomRef, n uint32) int { return cmp.Compare(r.number, n) })
	if !ok {
		return nil, nil
	}
	c := t.clusters.at(uint32(t.indoms[i].cluster))
	return c, &c.indoms[t.indoms[i].index]
}

// withInDoms replaces the indoms of the clusters marked.
func withInDoms(old []indomRef, clusters *clusterSet, touched map[uint32]bool) []indomRef {
	var add []indomRef
	for n := range touched {
		if c := clusters.at(n); c != nil {
			for i := range c.indoms {
				add = append(add, indomRef{c.indoms[i].number, uint16(n), uint32(i)})
			}
		}
	}
	sort.Slice(add, func(i, j int) bool {
		a, b := add[i], add[j]
		if a.number != b.number {
			return a.number < b.number
		}
		return a.cluster < b.cluster || a.cluster == b.cluster && a.index < b.index
	})
	out := make([]indomRef, 0, len(old)+len(add))
	put := func(r indomRef) {
		// A number that is nobody's for good can be two files': the first has it.
		if n := len(out); n == 0 || out[n-1].number != r.number {
			out = append(out, r)
		} else if !referred(clusters, out[n-1]) && referred(clusters, r) {
			out[n-1] = r
		}
	}
	for _, r := range old {
		if touched[uint32(r.cluster)] {
			continue
		}
		for len(add) > 0 && add[0].number < r.number {
			put(add[0])
			add = add[1:]
		}
		put(r)
	}
	for _, r := range add {
		put(r)
	}
	return out
}

// referred tells whether the indom has its number for good.
func referred(clusters *clusterSet, r indomRef) bool {
	return clusters.at(uint32(r.cluster)).indoms[r.index].kept
}

// mergedTable is an indom of several files as pmda sees it.
type mergedTable struct {
	c *cluster
	m *merged
}

func (t mergedTable) Len() int { return len(t.m.insts) }

func (t mergedTable) At(i int) (int32, []byte) {
	in := &t.m.insts[i]
	return in.id, t.c.files[in.file].cat.Text(in.name)
}

// catalogTable is an indom of one file as pmda sees it.
type catalogTable struct {
	cat   *reader.Catalog
	insts []reader.Instance
}

func (t *catalogTable) Len() int { return len(t.insts) }

func (t *catalogTable) At(i int) (int32, []byte) {
	return t.insts[i].Internal, t.cat.Text(t.insts[i].External)
}
