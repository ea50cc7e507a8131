package exporter

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"pmdammv/pkg/reader"
)

// indom is an instance domain of a cluster.
type indom struct {
	number uint32
	serial uint32
	kept   bool // the number is its for good: metrics refer to it
	// file and index say where it is; where several files may have it, more has
	// all.
	file  int
	index int32
	more  *merged
}

// merged is the union of the instance domains of several files.
type merged struct {
	parts []part // metric is the index of the indom; by file
	insts []mergedInstance
	byID  map[int32]int       // index in insts
	left  [][]reader.Instance // by part: instances left out since they have another name in insts; by id
	twice []int               // by part: a file before it that has some of its instances, -1 for none
	plain bool                // each instance is one file's, and all are there
}

type mergedInstance struct {
	id   int32
	file int
	name reader.Text
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
	if number == canonical(c.number, serial) {
		return
	}
	if c.serials == nil {
		c.serials = make([]map[uint32]uint32, len(c.files))
	}
	if c.serials[k] == nil {
		c.serials[k] = map[uint32]uint32{}
	}
	c.serials[k][serial] = number
}

// use says that exported metrics of a file refer to an indom of it: metrics
// that it has alone, shared ones, or both.
type use struct {
	serial        uint32
	index         int32 // in the file's Catalog, -1: it has no such indom
	alone, shared bool
}

// uses finds the indoms that exported metrics of file k refer to.
func (c *cluster) uses(k int) (out []use) {
	f := c.files[k]
	var at map[uint32]int
	for m := range f.metrics() {
		metric := &f.cat.Metrics[m]
		if metric.Singular() || c.isExcluded(k, m) {
			continue
		}
		serial := uint32(metric.Serial)
		i, ok := at[serial]
		if !ok {
			if at == nil {
				at = map[uint32]int{}
			}
			i = len(out)
			at[serial] = i
			out = append(out, use{serial: serial, index: metric.InDom})
		}
		if c.item(metric.Item).shared() {
			out[i].shared = true
		} else {
			out[i].alone = true
		}
	}
	return out
}

// give gives a number to an indom that metrics of file k refer to, shared ones
// or not. Should there be none left, they are not exported.
func (c *cluster) give(r *registry, k int, key indomKey, shared bool) (uint32, bool) {
	n, ok := r.indom(key)
	if ok {
		return n, true
	}
	f := c.files[k]
	for m := range f.metrics() {
		metric := &f.cat.Metrics[m]
		if !metric.Singular() && uint32(metric.Serial) == key.serial && c.item(metric.Item).shared() == shared {
			c.exclude(k, m, errNoInDom)
		}
	}
	return 0, false
}

// ownKey is the key of an indom that only file k has.
func (c *cluster) ownKey(k int, serial uint32) indomKey {
	return indomKey{c.number, serial, c.files[k].f.Name}
}

// singleInDoms gives numbers to the indoms of a cluster of one file. Those
// that no metric refers to have PCP's number, if it is nobody else's.
func (c *cluster) singleInDoms(r *registry) {
	f := c.files[0]
	numbers := map[uint32]uint32{}
	for _, u := range c.uses(0) {
		key := c.ownKey(0, u.serial)
		if r.indoms[key] == nil {
			key.file = ""
		}
		if n, ok := c.give(r, 0, key, false); ok {
			c.setNumber(0, u.serial, n)
			numbers[u.serial] = n
		}
	}
	c.drop()
	c.indoms = make([]indom, 0, len(f.cat.InDoms))
	for i := range f.cat.InDoms {
		serial := f.cat.InDoms[i].Serial
		n, ok := numbers[serial]
		if !ok {
			if n = canonical(c.number, serial); n == 0 || r.numbers[n] != nil {
				continue
			}
		}
		c.indoms = append(c.indoms, indom{number: n, serial: serial, kept: ok, index: int32(i)})
	}
}

// mergeInDoms joins the indoms of one serial, but for those that are one file's
// own, and gives them their numbers.
func (c *cluster) mergeInDoms(r *registry, was *cluster) {
	uses := make([][]use, len(c.files))
	for k := range c.files {
		uses[k] = c.uses(k)
	}
	own := c.settle(r, uses, was)
	unions := map[uint32]*merged{}
	numbers := map[uint32]uint32{} // of the unions
	var order []uint32
	for k, list := range uses {
		for _, u := range list {
			if u.alone && own[k][u.serial] {
				if n, ok := c.give(r, k, c.ownKey(k, u.serial), false); ok {
					c.setNumber(k, u.serial, n)
					c.indoms = append(c.indoms, indom{number: n, serial: u.serial, kept: true, file: k, index: u.index})
				}
				if !u.shared {
					continue
				}
			}
			m := unions[u.serial]
			if m == nil {
				m = &merged{}
				unions[u.serial] = m
				order = append(order, u.serial)
			}
			if u.index >= 0 {
				m.parts = append(m.parts, part{k, uint32(u.index)})
			}
			key := indomKey{cluster: c.number, serial: u.serial}
			if n, ok := c.give(r, k, key, true); ok {
				numbers[u.serial] = n
				if !own[k][u.serial] {
					c.setNumber(k, u.serial, n)
				}
			} else if !own[k][u.serial] {
				c.give(r, k, key, false)
			}
		}
	}
	c.drop()
	for i := range c.shared {
		s := &c.shared[i]
		if m := c.first(s); !m.Singular() {
			s.number, s.union = numbers[uint32(m.Serial)], unions[uint32(m.Serial)]
		}
	}
	byAge := c.byAge()
	for _, serial := range order {
		if m, n := unions[serial], numbers[serial]; n != 0 && len(m.parts) > 0 {
			c.unite(m, byAge)
			c.indoms = append(c.indoms, indom{number: n, serial: serial, kept: true, file: m.parts[0].file, index: int32(m.parts[0].metric), more: m})
		}
	}
	c.unused(r, numbers)
}

// unused adds the indoms that no metric refers to, the first file's of each
// serial, with PCP's number, if it is nobody else's.
func (c *cluster) unused(r *registry, numbers map[uint32]uint32) {
	for k, f := range c.files {
		for i := range f.cat.InDoms {
			serial := f.cat.InDoms[i].Serial
			if _, ok := numbers[serial]; ok {
				continue
			}
			numbers[serial] = 0
			if n := canonical(c.number, serial); n != 0 && r.numbers[n] == nil {
				c.indoms = append(c.indoms, indom{number: n, serial: serial, file: k, index: int32(i)})
			}
		}
	}
}

// fileUse is an indom that metrics of a file refer to.
type fileUse struct {
	file int
	use
}

// settle finds the indoms that a file has for itself, for metrics that it has
// alone: where one of its instances has another name in a file that came
// before. A file that has had one once keeps it; and who was there before, and
// has not changed, comes before those that have.
func (c *cluster) settle(r *registry, uses [][]use, was *cluster) []map[uint32]bool {
	var order []fileUse
	for _, k := range c.byAge() {
		for _, u := range uses[k] {
			order = append(order, fileUse{k, u})
		}
	}
	if before := was.used(); before != nil {
		had := func(u fileUse) bool { return before[sourceUse{c.files[u.file].source, u.serial}] }
		sort.SliceStable(order, func(i, j int) bool { return had(order[i]) && !had(order[j]) })
	}
	own := make([]map[uint32]bool, len(c.files))
	all := map[uint32]map[int32]mergedInstance{}
	sizes := map[uint32]int{}
	for _, u := range order {
		sizes[u.serial] += len(c.instances(u.file, u.index))
	}
	for _, u := range order {
		k := u.file
		insts := all[u.serial]
		if insts == nil {
			insts = make(map[int32]mergedInstance, sizes[u.serial])
			all[u.serial] = insts
		}
		if u.alone && (r.indoms[c.ownKey(k, u.serial)] != nil || c.clash(insts, k, u.index)) {
			if own[k] == nil {
				own[k] = map[uint32]bool{}
			}
			own[k][u.serial] = true
			if !u.shared {
				continue
			}
		}
		for _, in := range c.instances(k, u.index) {
			if _, ok := insts[in.Internal]; !ok {
				insts[in.Internal] = mergedInstance{in.Internal, k, in.External}
			}
		}
	}
	return own
}

// sourceUse is an indom that metrics of a source refer to.
type sourceUse struct {
	*source
	serial uint32
}

// used are those of all files of the cluster, which may be nil.
func (c *cluster) used() map[sourceUse]bool {
	if c == nil {
		return nil
	}
	out := map[sourceUse]bool{}
	for k, f := range c.files {
		for _, u := range c.uses(k) {
			out[sourceUse{f.source, u.serial}] = true
		}
	}
	return out
}

// clash tells whether an instance of file k has another name in insts.
func (c *cluster) clash(insts map[int32]mergedInstance, k int, index int32) bool {
	for _, in := range c.instances(k, index) {
		if o, ok := insts[in.Internal]; ok && !c.sameInstance(o, k, in) {
			return true
		}
	}
	return false
}

// renames tells whether a file with that source has an instance that has another
// name in one of these, and had not when its source was was.
func renames(s, was *source, files []*file) bool {
	type key struct {
		serial uint32
		id     int32
	}
	names := map[key]reader.Text{}
	for i := range s.cat.InDoms {
		d := &s.cat.InDoms[i]
		for _, in := range s.cat.Instances(d) {
			names[key{d.Serial, in.Internal}] = in.External
		}
	}
	each := func(o *source, f func(k key, same bool)) {
		for i := range o.cat.InDoms {
			d := &o.cat.InDoms[i]
			for _, in := range o.cat.Instances(d) {
				k := key{d.Serial, in.Internal}
				if t, ok := names[k]; ok {
					f(k, bytes.Equal(s.cat.Text(t), o.cat.Text(in.External)))
				}
			}
		}
	}
	each(was, func(k key, same bool) {
		if same {
			delete(names, k)
		}
	})
	other := false
	for _, f := range files {
		if len(names) == 0 || other {
			break
		}
		each(f.source, func(_ key, same bool) { other = other || !same })
	}
	return other
}

// instances are those of an indom of file k; index may be -1.
func (c *cluster) instances(k int, index int32) []reader.Instance {
	if index < 0 {
		return nil
	}
	cat := c.files[k].cat
	return cat.Instances(&cat.InDoms[index])
}

func (c *cluster) sameInstance(have mergedInstance, k int, in reader.Instance) bool {
	return bytes.Equal(c.files[have.file].cat.Text(have.name), c.files[k].cat.Text(in.External))
}

// unite finds the instances of a union, by file. One that has several names has
// that of the file that came first.
func (c *cluster) unite(m *merged, byAge []int) {
	size := 0
	for _, p := range m.parts {
		size += len(c.instances(p.file, int32(p.metric)))
	}
	var names map[int32]mergedInstance
	if !slices.IsSorted(byAge) {
		names = make(map[int32]mergedInstance, size)
		age := make([]int, len(c.files))
		for i, k := range byAge {
			age[k] = i
		}
		aged := slices.Clone(m.parts)
		sort.Slice(aged, func(i, j int) bool { return age[aged[i].file] < age[aged[j].file] })
		for _, p := range aged {
			for _, in := range c.instances(p.file, int32(p.metric)) {
				if _, ok := names[in.Internal]; !ok {
					names[in.Internal] = mergedInstance{in.Internal, p.file, in.External}
				}
			}
		}
	}
	m.plain, m.insts = true, make([]mergedInstance, 0, size)
	m.byID, m.left, m.twice = make(map[int32]int, size), make([][]reader.Instance, len(m.parts)), make([]int, len(m.parts))
	for i, p := range m.parts {
		m.twice[i] = -1
		for _, in := range c.instances(p.file, int32(p.metric)) {
			at, ok := m.byID[in.Internal]
			switch name, other := names[in.Internal]; {
			case other && !c.sameInstance(name, p.file, in), ok && !c.sameInstance(m.insts[at], p.file, in):
				m.left[i] = append(m.left[i], in)
			case ok:
				m.twice[i] = m.insts[at].file
			default:
				m.byID[in.Internal] = len(m.insts)
				m.insts = append(m.insts, mergedInstance{in.Internal, p.file, in.External})
			}
		}
		m.plain = m.plain && m.twice[i] < 0 && len(m.left[i]) == 0
		left := m.left[i]
		sort.Slice(left, func(i, j int) bool { return left[i].Internal < left[j].Internal })
	}
}

// has tells whether an instance of part i is one of the union's.
func (m *merged) has(i int, id int32) bool {
	_, out := slices.BinarySearchFunc(m.left[i], id, func(in reader.Instance, id int32) int { return cmp.Compare(in.Internal, id) })
	return !out
}

// agreed are the instances of metric m in file k that are the same in u.
func (c *cluster) agreed(u *merged, k int, m *reader.Metric) map[int32]bool {
	good := map[int32]bool{}
	i, ok := slices.BinarySearchFunc(u.parts, k, func(p part, k int) int { return cmp.Compare(p.file, k) })
	if !ok {
		return good
	}
	for _, in := range c.instances(k, m.InDom) {
		if u.has(i, in.Internal) {
			good[in.Internal] = true
		}
	}
	return good
}
