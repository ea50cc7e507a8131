package exporter

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sort"
	"sync/atomic"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

var errItemTaken = errors.New("its PMID is another metric's")

// file is a loaded file in a Table. It is immutable; its source may be an
// older file's.
type file struct {
	*source
	id       *identity // its fields are read under the Exporter's lock only
	f        *reader.File
	cluster  uint32
	since    uint64  // order of coming into the cluster
	was      *source // of the same file before, until it has its cluster
	unmapped bool    // by the process that the file names
}

// item says which metric has an item number.
type item struct {
	file   uint32 // index in cluster.files + 1, noFile or manyFiles
	metric uint32 // index in the file's Catalog, or in cluster.shared
}

const (
	noFile    = 0          // no such metric
	manyFiles = ^uint32(0) // a shared metric
)

func (it item) shared() bool { return it.file == manyFiles }

// cluster is all that has one cluster number: usually one file. It is
// immutable.
type cluster struct {
	number   uint32
	files    []*file // by name
	items    []item  // nil: those of its only file, all of them
	shared   []sharedMetric
	indoms   []indom
	serials  []map[uint32]uint32 // by file: indom's serial to its number; nil where it is PCP's
	excluded []map[uint32]error  // by file: metrics not exported here, and why; nil where none
	trees    []*pmda.Tree        // by file: names, where some are excluded
	hidden   []hidden            // by file: what others' values and instances are shown for; nil where none
	status   []string            // by file: as in file.status
	clean    bool                // nothing else is said of any
	sums

	planned atomic.Pointer[plan] // from when a value is asked for
}

// len is one more than the highest item.
func (c *cluster) len() int {
	if c.items == nil {
		return len(c.files[0].items)
	}
	return len(c.items)
}

// item is whose item i is.
func (c *cluster) item(i uint32) item {
	switch {
	case i >= uint32(c.len()):
		return item{}
	case c.items != nil:
		return c.items[i]
	case c.files[0].items[i] == 0:
		return item{}
	default:
		return item{file: 1, metric: c.files[0].items[i] - 1}
	}
}

// sums are numbers of clusters that are added up.
type sums struct {
	metrics int
	names   uint64 // a hash of names, PMIDs and descriptors
	labels  uint64 // a hash of labels
}

func (s sums) plus(o sums) sums {
	return sums{s.metrics + o.metrics, s.names + o.names, s.labels + o.labels}
}

func (s sums) minus(o sums) sums {
	return sums{s.metrics - o.metrics, s.names - o.names, s.labels - o.labels}
}

// sharedMetric is a metric that several files have. Its values come from all.
type sharedMetric struct {
	parts  []part  // by file
	number uint32  // of its indom
	union  *merged // that indom, nil if it is singular
}

type part struct {
	file   int
	metric uint32
}

// hidden is what there is of a file's shared metrics that is not shown.
type hidden struct {
	values int       // metrics, some of whose values another file has as well
	by     int       // that file
	insts  int       // instances that have another name in another file
	inst   otherName // the first of them
}

// exclude notes that a metric of file k is not exported.
func (c *cluster) exclude(k int, metric uint32, err error) {
	if c.excluded == nil {
		c.excluded = make([]map[uint32]error, len(c.files))
	}
	if c.excluded[k] == nil {
		c.excluded[k] = map[uint32]error{}
	}
	if c.excluded[k][metric] == nil {
		c.excluded[k][metric] = err
	}
}

func (c *cluster) isExcluded(k int, metric uint32) bool {
	return c.excluded != nil && c.excluded[k][metric] != nil
}

// exports tells whether c, which is not finished, will be as o is, which has
// the same files.
func (c *cluster) exports(o *cluster) bool {
	if o == nil || !slices.Equal(c.files, o.files) || (c.excluded == nil) != (o.excluded == nil) {
		return false
	}
	for k := range c.excluded {
		if !maps.EqualFunc(c.excluded[k], o.excluded[k], sameReason) {
			return false
		}
	}
	return true
}

// sameReason compares reasons of metrics of the same file.
func sameReason(a, b error) bool {
	switch x := a.(type) { //nolint:errorlint // they are not wrapped
	case *otherMetricError:
		y, ok := b.(*otherMetricError) //nolint:errorlint // likewise
		return ok && x.item == y.item && x.part == y.part
	case *clashError:
		y, ok := b.(*clashError) //nolint:errorlint // likewise
		return ok && x.owner == y.owner && *x.NameError == *y.NameError
	default:
		return a == b //nolint:errorlint // likewise
	}
}

// index is that of a file in the cluster.
func (c *cluster) index(f *file) int {
	k, _ := slices.BinarySearchFunc(c.files, f.f.Name, byFileName)
	return k
}

// byAge are the indexes of the files in the order in which they came.
func (c *cluster) byAge() []int {
	order := make([]int, len(c.files))
	for k := range order {
		order[k] = k
	}
	sort.SliceStable(order, func(i, j int) bool { return c.files[order[i]].since < c.files[order[j]].since })
	return order
}

// newCluster joins files, in the order of their names. Of two metrics that
// want one item the one whose file came first stays, unless they are one.
func newCluster(number uint32, files []*file) *cluster {
	c := &cluster{number: number, files: files}
	if len(files) == 1 {
		return c
	}
	for _, k := range c.byAge() {
		c.join(k)
	}
	for i := range c.shared {
		parts := c.shared[i].parts
		sort.Slice(parts, func(i, j int) bool { return parts[i].file < parts[j].file })
	}
	return c
}

// otherMetricError says whose an item is.
type otherMetricError struct {
	item int
	part
	c *cluster
}

func (e *otherMetricError) Error() string {
	f := e.c.files[e.file]
	return fmt.Sprintf("%v: item %d is %s of %q", errItemTaken, e.item, f.name(nil, e.metric), f.f.Name)
}

func (e *otherMetricError) Unwrap() error { return errItemTaken }

// join enters the metrics of file k.
func (c *cluster) join(k int) {
	f := c.files[k]
	for i, m := range f.items {
		if m == 0 {
			continue
		}
		m--
		if len(c.items) <= i {
			c.items = append(c.items, make([]item, i+1-len(c.items))...)
		}
		it := &c.items[i]
		if it.file == noFile {
			*it = item{file: uint32(k) + 1, metric: m}
			continue
		}
		o := c.part(*it)
		switch {
		case !same(c.files[o.file].source, o.metric, f.source, m):
			c.exclude(k, m, &otherMetricError{i, o, c})
		case it.shared():
			s := &c.shared[it.metric]
			s.parts = append(s.parts, part{k, m})
		default:
			*it = item{file: manyFiles, metric: uint32(len(c.shared))}
			c.shared = append(c.shared, sharedMetric{parts: []part{o, {k, m}}})
		}
	}
}

// compare finds whether two sources, of files with one cluster, have items for
// which they have the same metric, and ones for which they have not.
func compare(a, b *source, agree, differ *bool) {
	for i, m := range a.items[:min(len(a.items), len(b.items))] {
		switch {
		case m == 0 || b.items[i] == 0:
		case same(a, m-1, b, b.items[i]-1):
			*agree = true
		default:
			*differ = true
		}
	}
}

// disputes tells whether a file with that source has another metric for an item
// of these, and had not when its source was was.
func disputes(s, was *source, files []*file) bool {
	for _, f := range files {
		if f.sum == s.sum {
			continue
		}
		for i, m := range s.items[:min(len(s.items), len(f.items))] {
			if m == 0 || f.items[i] == 0 || same(s, m-1, f.source, f.items[i]-1) {
				continue
			}
			if was == nil || i >= len(was.items) || was.items[i] == 0 || !same(s, m-1, was, was.items[i]-1) {
				return true
			}
		}
	}
	return false
}

// finish settles what depends on the names and numbers given out: instance
// domains, what is left of the items, hashes, statuses. was is the cluster as
// it was before.
func (c *cluster) finish(domain uint32, r *registry, seed maphash.Seed, was *cluster) {
	c.drop()
	if len(c.files) == 1 {
		c.singleInDoms(r)
	} else {
		c.mergeInDoms(r, was)
	}
	r.made[c.number] = r.counter // not before: until then all that it had may be wanted
	c.prune()
	var h maphash.Hash
	h.SetSeed(seed)
	var name []byte
	for i := range c.len() {
		it := c.item(uint32(i))
		if it.file == noFile {
			continue
		}
		p, d := c.part(it), c.desc(it, pcpwire.NewPMID(domain, c.number, uint32(i)))
		name = c.files[p.file].name(name[:0], p.metric)
		h.Reset()
		_, _ = h.Write(name)
		maphash.WriteComparable(&h, d)
		c.names += h.Sum64()
		c.metrics++
	}
	c.labels = c.hashLabels(seed)
	c.hide()
	c.status = make([]string, len(c.files))
	c.clean = true
	for k := range c.files {
		c.status[k] = c.loadedStatus(k, true)
		c.clean = c.clean && c.status[k] == cleanly
	}
}

// drop removes items whose metrics are excluded, and excluded parts of shared
// ones.
func (c *cluster) drop() {
	if c.excluded == nil {
		return
	}
	if c.items == nil {
		items := make([]item, c.len())
		for i := range items {
			items[i] = c.item(uint32(i))
		}
		c.items = items
	}
	var shared []sharedMetric
	for i := range c.items {
		it := &c.items[i]
		switch {
		case it.file == noFile:
		case it.shared():
			s := c.shared[it.metric]
			s.parts = slices.DeleteFunc(s.parts, func(p part) bool { return c.isExcluded(p.file, p.metric) })
			if len(s.parts) == 0 {
				*it = item{}
				continue
			}
			it.metric = uint32(len(shared))
			shared = append(shared, s)
		case c.isExcluded(int(it.file)-1, it.metric):
			*it = item{}
		}
	}
	c.shared = shared
}

// part is where the descriptor and texts of a metric come from.
func (c *cluster) part(it item) part {
	if it.shared() {
		return c.shared[it.metric].parts[0]
	}
	return part{int(it.file) - 1, it.metric}
}

// first is the metric that describes a shared one.
func (c *cluster) first(s *sharedMetric) *reader.Metric {
	return &c.files[s.parts[0].file].cat.Metrics[s.parts[0].metric]
}

// desc is the descriptor of a metric.
func (c *cluster) desc(it item, pmid pcpwire.PMID) pcpwire.Desc {
	p := c.part(it)
	m := &c.files[p.file].cat.Metrics[p.metric]
	d := describe(m)
	d.PMID = pmid
	if !m.Singular() {
		n := c.indomNumber(p.file, uint32(m.Serial))
		if it.shared() {
			n = c.shared[it.metric].number
		}
		d.InDom = pcpwire.NewInDom(pmid.Domain(), n)
	}
	return d
}

// hide finds out what of shared metrics is not shown.
func (c *cluster) hide() {
	for i := range c.shared {
		s := &c.shared[i]
		if len(s.parts) < 2 {
			continue
		}
		if c.first(s).Singular() {
			for _, p := range s.parts[1:] {
				c.hideValue(p.file, s.parts[0].file)
			}
			continue
		}
		u := s.union
		for at, k := 0, 0; k < len(u.parts) && at < len(s.parts); k++ { // both are by file
			for at < len(s.parts) && s.parts[at].file < u.parts[k].file {
				at++
			}
			if at < len(s.parts) && s.parts[at].file == u.parts[k].file && u.twice[k] >= 0 {
				c.hideValue(u.parts[k].file, u.twice[k])
			}
		}
	}
	for i := range c.indoms {
		if u := c.indoms[i].more; u != nil {
			for k, left := range u.left {
				c.hideInstances(u, u.parts[k].file, c.indoms[i].serial, left)
			}
		}
	}
}

func (c *cluster) hideValue(k, by int) {
	if c.hidden == nil {
		c.hidden = make([]hidden, len(c.files))
	}
	if h := &c.hidden[k]; h.values == 0 {
		*h = hidden{values: 1, by: by}
	} else {
		h.values++
	}
}

func (c *cluster) hideInstances(u *merged, k int, serial uint32, left []reader.Instance) {
	if len(left) == 0 {
		return
	}
	if c.hidden == nil {
		c.hidden = make([]hidden, len(c.files))
	}
	h := &c.hidden[k]
	if h.insts == 0 {
		h.inst = otherName{c, u, k, serial, left[0]}
	}
	h.insts += len(left)
}
