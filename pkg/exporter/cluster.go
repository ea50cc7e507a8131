package exporter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

var (
	errItemTaken = errors.New("its PMID is another metric's")
	errInstance  = errors.New("instance has two names")
)

// file is a loaded file in a Table. It is immutable; its source may be an
// older file's.
type file struct {
	*source
	id      *identity // its fields are read under the Exporter's lock only
	f       *reader.File
	cluster uint32
	since   uint64 // order of coming into the cluster
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
	files    []*file
	items    []item
	shared   []sharedMetric
	indoms   []indom
	serials  []map[uint32]uint32  // by file: indom's serial to its number; nil where it is PCP's
	excluded []map[uint32]error   // by file: metrics not exported here, and why; nil where none
	trees    map[*file]*pmda.Tree // names of files from which some are excluded
	notes    map[int]error        // by file: an instance that is not what it is in another one
	count    int                  // metrics
	hash     uint64               // of names, PMIDs and descriptors
	labels   uint64               // of labels

	planned atomic.Pointer[plan] // from when a value is asked for
}

// sharedMetric is a metric that several files have. Its values come from all.
type sharedMetric struct {
	number uint32 // of its indom
	parts  []part
}

type part struct {
	file   int
	metric uint32
}

// indom is an instance domain of a cluster.
type indom struct {
	number uint32
	serial uint32
	kept   bool // the number is its for good: metrics refer to it
	// file and index say where it is; further files that have the same one are
	// in more.
	file  int
	index int32
	more  *merged
}

// merged is the union of the instance domains of several files.
type merged struct {
	parts []part // metric is the index of the indom
	insts []mergedInstance
	byID  map[int32]int // index in insts
}

type mergedInstance struct {
	id   int32
	file int
	name reader.Text
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

// newCluster joins files, in the order of their names. Of two metrics that
// want one item the one whose file came first stays, unless they are one.
func newCluster(number uint32, files []*file) *cluster {
	c := &cluster{number: number, files: files}
	for _, f := range files {
		c.labels += f.labels
	}
	if len(files) == 1 {
		c.items = make([]item, len(files[0].items))
		for i, m := range files[0].items {
			if m != 0 {
				c.items[i] = item{file: 1, metric: m - 1}
			}
		}
		return c
	}
	byAge := make([]int, len(files))
	for k := range files {
		byAge[k] = k
	}
	slices.SortStableFunc(byAge, func(a, b int) int { return cmp.Compare(files[a].since, files[b].since) })
	parts := map[int][]part{}
	for _, k := range byAge {
		c.join(k, parts)
	}
	for i, ps := range parts {
		slices.SortFunc(ps, func(a, b part) int { return a.file - b.file })
		c.items[i] = item{file: manyFiles, metric: uint32(len(c.shared))}
		c.shared = append(c.shared, sharedMetric{parts: ps})
	}
	return c
}

// join enters the metrics of file k; parts collects the shared ones by item.
func (c *cluster) join(k int, parts map[int][]part) {
	f := c.files[k]
	for i, m := range f.items {
		if m == 0 {
			continue
		}
		m--
		for len(c.items) <= i {
			c.items = append(c.items, item{})
		}
		switch o := c.items[i]; {
		case o.file == noFile:
			c.items[i] = item{file: uint32(k) + 1, metric: m}
		case same(c.files[o.file-1].source, o.metric, f.source, m):
			if parts[i] == nil {
				parts[i] = []part{{int(o.file) - 1, o.metric}}
			}
			parts[i] = append(parts[i], part{k, m})
		default:
			c.exclude(k, m, fmt.Errorf("%w: item %d is %s of %q", errItemTaken, i, c.files[o.file-1].name(nil, o.metric), c.files[o.file-1].f.Name))
		}
	}
}

// conflict tells whether a file with that source cannot join these: it has
// none of their metrics and another one for an item of theirs.
func conflict(s *source, files []*file) bool {
	differ := false
	for _, f := range files {
		for i, m := range s.items[:min(len(s.items), len(f.items))] {
			if m == 0 || f.items[i] == 0 {
				continue
			}
			if same(s, m-1, f.source, f.items[i]-1) {
				return false
			}
			differ = true
		}
	}
	return differ
}

// finish settles what depends on the names and numbers given out: instance
// domains, values of shared metrics, what is left of the items, hashes.
func (c *cluster) finish(domain uint32, r *registry, seed maphash.Seed) {
	for i := range c.items {
		it := &c.items[i]
		if it.file != noFile && c.allExcluded(it) {
			*it = item{}
		}
	}
	if len(c.files) == 1 {
		c.singleInDoms(r)
	} else {
		c.mergeInDoms(r)
	}
	c.prune()
	c.count, c.hash = 0, 0
	var h maphash.Hash
	h.SetSeed(seed)
	var name []byte
	for i, it := range c.items {
		if it.file == noFile {
			continue
		}
		p, d := c.part(it), c.desc(it, pcpwire.NewPMID(domain, c.number, uint32(i)))
		name = c.files[p.file].name(name[:0], p.metric)
		h.Reset()
		_, _ = h.Write(name)
		maphash.WriteComparable(&h, d)
		c.hash += h.Sum64()
		c.count++
	}
}

func (c *cluster) allExcluded(it *item) bool {
	if c.excluded == nil {
		return false
	}
	if !it.shared() {
		return c.isExcluded(int(it.file)-1, it.metric)
	}
	s := &c.shared[it.metric]
	s.parts = slices.DeleteFunc(s.parts, func(p part) bool { return c.isExcluded(p.file, p.metric) })
	return len(s.parts) == 0
}

// part is where the descriptor and texts of a metric come from.
func (c *cluster) part(it item) part {
	if it.shared() {
		return c.shared[it.metric].parts[0]
	}
	return part{int(it.file) - 1, it.metric}
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

// indomNumber is the number of the indom that file k calls serial.
func (c *cluster) indomNumber(k int, serial uint32) uint32 {
	if c.serials != nil {
		if n, ok := c.serials[k][serial]; ok {
			return n
		}
	}
	return canonical(c.number, serial)
}

func (c *cluster) setNumber(k int, serial, number uint32) {
	if c.serials == nil {
		c.serials = make([]map[uint32]uint32, len(c.files))
	}
	if c.serials[k] == nil {
		c.serials[k] = map[uint32]uint32{}
	}
	c.serials[k][serial] = number
}

// singleInDoms gives numbers to the indoms of a cluster of one file. Those
// that no metric refers to have PCP's number, if it is nobody else's.
func (c *cluster) singleInDoms(r *registry) {
	f := c.files[0]
	used := c.referred(r, 0, func(serial uint32) indomKey { return indomKey{cluster: c.number, serial: serial} })
	c.indoms = make([]indom, 0, len(f.cat.InDoms))
	for i := range f.cat.InDoms {
		serial := f.cat.InDoms[i].Serial
		n, ok := used[serial]
		if !ok {
			if n = canonical(c.number, serial); n == 0 || r.numbers[n] != nil {
				continue
			}
		}
		c.indoms = append(c.indoms, indom{number: n, serial: serial, kept: ok, index: int32(i)})
	}
}

// referred gives numbers to the indoms that the metrics of file k alone refer to.
func (c *cluster) referred(r *registry, k int, key func(serial uint32) indomKey) map[uint32]uint32 {
	used := map[uint32]uint32{}
	f := c.files[k]
	for _, m := range f.metrics {
		metric := &f.cat.Metrics[m]
		if metric.Singular() || c.isExcluded(k, m) || c.items[metric.Item].shared() {
			continue
		}
		serial := uint32(metric.Serial)
		if _, ok := used[serial]; ok {
			continue
		}
		n := r.indom(key(serial))
		used[serial] = n
		if n != canonical(c.number, serial) {
			c.setNumber(k, serial, n)
		}
	}
	return used
}

// mergeInDoms joins the indoms of one serial. A file whose instances clash
// with those of the files before gets its own for the metrics that are its
// alone.
func (c *cluster) mergeInDoms(r *registry) {
	unions := map[uint32]*merged{}
	var order []uint32 // serials as they come
	own := make([]map[uint32]bool, len(c.files))
	for k, f := range c.files {
		for i := range f.cat.InDoms {
			d := &f.cat.InDoms[i]
			u := unions[d.Serial]
			if u == nil {
				u = &merged{byID: map[int32]int{}}
				unions[d.Serial] = u
				order = append(order, d.Serial)
			}
			if c.clash(u, k, d) {
				if own[k] == nil {
					own[k] = map[uint32]bool{}
				}
				own[k][d.Serial] = true
				if !c.sharesInDom(k, d.Serial) {
					continue
				}
			}
			u.add(k, i, f.cat.Instances(d))
		}
	}
	shared := map[uint32]bool{}
	for i := range c.shared {
		if m := c.first(&c.shared[i]); !m.Singular() {
			serial := uint32(m.Serial)
			shared[serial] = true
			c.shared[i].number = r.indom(indomKey{cluster: c.number, serial: serial})
		}
	}
	c.indoms = nil
	for k, f := range c.files {
		used := c.referred(r, k, func(serial uint32) indomKey {
			key := indomKey{cluster: c.number, serial: serial}
			if own[k][serial] {
				key.file = f.f.Name
			}
			return key
		})
		for serial, n := range used {
			if own[k][serial] {
				c.indoms = append(c.indoms, indom{number: n, serial: serial, kept: true, file: k, index: f.indomIndex(serial)})
			} else {
				shared[serial] = true
			}
		}
	}
	for _, serial := range order {
		u := unions[serial]
		n := canonical(c.number, serial)
		if shared[serial] && len(u.parts) > 0 {
			n = r.indom(indomKey{cluster: c.number, serial: serial})
		} else if n == 0 || r.numbers[n] != nil || len(u.parts) == 0 {
			continue
		}
		c.indoms = append(c.indoms, indom{number: n, serial: serial, kept: shared[serial], file: u.parts[0].file, index: int32(u.parts[0].metric), more: u})
	}
}

// first is the metric that describes a shared one.
func (c *cluster) first(s *sharedMetric) *reader.Metric {
	return &c.files[s.parts[0].file].cat.Metrics[s.parts[0].metric]
}

// add joins the instances of indom i of file k to u.
func (u *merged) add(k, i int, insts []reader.Instance) {
	u.parts = append(u.parts, part{k, uint32(i)})
	for _, in := range insts {
		if _, ok := u.byID[in.Internal]; !ok {
			u.byID[in.Internal] = len(u.insts)
			u.insts = append(u.insts, mergedInstance{in.Internal, k, in.External})
		}
	}
}

// clash tells whether an instance of file k's indom has another name in u.
func (c *cluster) clash(u *merged, k int, d *reader.InDom) bool {
	for _, in := range c.files[k].cat.Instances(d) {
		at, ok := u.byID[in.Internal]
		if !ok || c.sameInstance(u.insts[at], k, in) {
			continue
		}
		if c.notes == nil {
			c.notes = map[int]error{}
		}
		if o := u.insts[at]; c.notes[k] == nil {
			c.notes[k] = fmt.Errorf("%w: %d of indom %d is %q here and %q in %q", errInstance, in.Internal, d.Serial,
				c.files[k].cat.Text(in.External), c.files[o.file].cat.Text(o.name), c.files[o.file].f.Name)
		}
		return true
	}
	return false
}

func (c *cluster) sameInstance(have mergedInstance, k int, in reader.Instance) bool {
	return bytes.Equal(c.files[have.file].cat.Text(have.name), c.files[k].cat.Text(in.External))
}

// sharesInDom tells whether file k has a shared metric with that indom.
func (c *cluster) sharesInDom(k int, serial uint32) bool {
	for i := range c.shared {
		for _, p := range c.shared[i].parts {
			if p.file == k && uint32(c.files[k].cat.Metrics[p.metric].Serial) == serial {
				return true
			}
		}
	}
	return false
}

// indomIndex is the index of the indom with that serial, -1 if there is none.
func (s *source) indomIndex(serial uint32) int32 {
	for i := range s.cat.InDoms {
		if s.cat.InDoms[i].Serial == serial {
			return int32(i)
		}
	}
	return -1
}

func (c *cluster) union(serial uint32) *merged {
	for i := range c.indoms {
		if d := &c.indoms[i]; d.serial == serial && d.more != nil {
			return d.more
		}
	}
	return nil
}

// agreed are the instances of metric m in file k that are the same in u.
func (c *cluster) agreed(u *merged, k int, m *reader.Metric) map[int32]bool {
	good := map[int32]bool{}
	if m.InDom < 0 {
		return good
	}
	cat := c.files[k].cat
	for _, in := range cat.Instances(&cat.InDoms[m.InDom]) {
		if at, ok := u.byID[in.Internal]; ok && c.sameInstance(u.insts[at], k, in) {
			good[in.Internal] = true
		}
	}
	return good
}
