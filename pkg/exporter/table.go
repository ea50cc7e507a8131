package exporter

import (
	"cmp"
	"slices"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// Table is all that the agent exports at one moment, but for the values. It is
// immutable; the next one shares what does not change.
type Table struct {
	domain   uint32
	clusters [maxCluster + 1]*cluster
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
	sums            // of the clusters
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
	c := t.clusters[pmid.Cluster()]
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
	c := t.clusters[t.indoms[i].cluster]
	return c, &c.indoms[t.indoms[i].index]
}

// withInDoms replaces the indoms of the clusters marked.
func withInDoms(old []indomRef, clusters *[maxCluster + 1]*cluster, touched map[uint32]bool) []indomRef {
	var add []indomRef
	for n := range touched {
		if c := clusters[n]; c != nil {
			for i := range c.indoms {
				add = append(add, indomRef{c.indoms[i].number, uint16(n), uint32(i)})
			}
		}
	}
	slices.SortFunc(add, func(a, b indomRef) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.index, b.index))
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
func referred(clusters *[maxCluster + 1]*cluster, r indomRef) bool {
	return clusters[r.cluster].indoms[r.index].kept
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
