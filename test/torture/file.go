package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// contents is what a file holds. Its tag is that of all its values; the mark of all of them tells these contents from
// others with that tag.
type contents struct {
	tag, mark uint32
	version   int32
	cluster   int32
	flags     int32
	pid       int32
	gap       int
	gen       uint64
	items     []uint32 // in the order of the file
	insts     []int32
	texts     bool
}

// random makes contents up: what is not given is left to chance.
func random(rng *rand.Rand, tag, mark uint32) *contents {
	c := &contents{
		tag: tag, mark: mark, version: 1 + rng.Int32N(3), gen: 1 + rng.Uint64N(1<<40), pid: 1,
		gap: []int{0, 0, 0, 4, 1, 3}[rng.IntN(6)], texts: rng.IntN(2) == 0,
	}
	if rng.IntN(3) == 0 {
		c.cluster = 100 + rng.Int32N(8) // few, so that files ask for the same
	}
	if rng.IntN(8) == 0 {
		c.flags |= mmvimage.NoPrefix
	}
	if rng.IntN(4) == 0 {
		c.flags |= mmvimage.Sentinel
	}
	for range 1 + rng.IntN(8) {
		c.addItem(rng.Uint32N(eachFrom))
	}
	if rng.IntN(2) == 0 {
		for range 1 + rng.IntN(3) {
			c.addItem(eachFrom + rng.Uint32N(500))
		}
	}
	c.setInsts(1+rng.IntN(5), rng)
	return c
}

func (c *contents) addItem(item uint32) {
	if !slices.Contains(c.items, item) {
		c.items = append(c.items, item)
	}
}

func (c *contents) setInsts(n int, rng *rand.Rand) {
	c.insts = nil
	for _, i := range rng.Perm(60)[:n] {
		c.insts = append(c.insts, int32(i))
	}
}

// shuffled is the same metrics with another mark and generation, elsewhere in the file.
func (c *contents) shuffled(rng *rand.Rand, mark uint32) *contents {
	n := *c
	n.mark = mark
	n.gen++
	n.items = slices.Clone(c.items)
	rng.Shuffle(len(n.items), func(i, j int) { n.items[i], n.items[j] = n.items[j], n.items[i] })
	n.insts = slices.Clone(c.insts)
	rng.Shuffle(len(n.insts), func(i, j int) { n.insts[i], n.insts[j] = n.insts[j], n.insts[i] })
	n.gap = []int{0, 4, 8, 1}[rng.IntN(4)]
	return &n
}

// metric is the name of a metric in the file.
func (c *contents) metric(item uint32) string {
	if c.flags&mmvimage.NoPrefix != 0 { // not another file's
		return fmt.Sprintf("p%d.i%d", c.tag, item)
	}
	return fmt.Sprintf("i%d", item)
}

// node is the name below which the metrics of the file of that name are.
func (c *contents) node(file string) string {
	if c.flags&mmvimage.NoPrefix != 0 {
		return fmt.Sprintf("mmv.p%d", c.tag)
	}
	return "mmv." + file
}

// names are the metrics' full names, in the order of the items.
func (c *contents) names(file string) []string {
	out := make([]string, 0, len(c.items))
	for _, i := range c.items {
		out = append(out, fmt.Sprintf("%s.i%d", c.node(file), i))
	}
	return out
}

// instances are those of a metric.
func (c *contents) instances(item uint32) []int32 {
	if item < eachFrom {
		return []int32{pcpwire.InstNull}
	}
	return c.insts
}

func instanceName(inst int32) string { return fmt.Sprintf("n%d", inst) }

func (c *contents) image() *mmvimage.Image {
	img := mmvimage.New(c.version).Cluster(c.cluster).Flags(c.flags).PID(c.pid).Gap(c.gap).Generation(c.gen)
	insts := make([]mmvimage.Inst, 0, len(c.insts))
	for _, i := range c.insts {
		insts = append(insts, mmvimage.Inst{ID: i, Name: instanceName(i)})
	}
	if slices.ContainsFunc(c.items, func(i uint32) bool { return i >= eachFrom }) {
		img.InDom(1, "", "", insts...)
	}
	for _, item := range c.items {
		m := mmvimage.Metric{Name: c.metric(item), Item: item, Type: kindOf(item), Sem: mmvimage.Instant}
		if item >= eachFrom {
			m.InDom = 1
		}
		if c.texts {
			m.Short = text(identity(c.tag, item, pcpwire.InstNull), 0)
		}
		for _, inst := range c.instances(item) {
			m.Values = append(m.Values, value(kindOf(item), identity(c.tag, item, inst), c.mark))
		}
		img.Metric(m)
	}
	if c.version == 3 {
		for _, item := range c.items {
			img.Label(mmvimage.LabelItem, item, -1, fmt.Sprintf(`{"of":"%08x"}`, identity(c.tag, item, pcpwire.InstNull)))
		}
	}
	return img
}

// check says what is wrong with a value set of a metric with that tag, "" for nothing, and calls marked with the mark of
// each value.
func check(tag uint32, set *pcpwire.ValueSet, marked func(inst int32, mark, bits uint32)) string {
	item := set.PMID.Item()
	if set.NumVal < 0 {
		return ""
	}
	for i := range set.Values {
		v := &set.Values[i]
		a, err := v.Extract(set.Format, pcpwire.Type(kindOf(item)))
		if err != nil {
			return fmt.Sprintf("%v of type %d, instance %d: %v", set.PMID, kindOf(item), v.Inst, err)
		}
		id := identity(tag, item, v.Inst)
		mark, ok := markOf(a, id)
		if !ok {
			return fmt.Sprintf("%v (tag %d) instance %d: %s has not the identity %#x", set.PMID, tag, v.Inst, show(a), id)
		}
		marked(v.Inst, mark, markBits(kindOf(item)))
	}
	return ""
}

// match says what is wrong with a value set that should have exactly these contents, "" for nothing.
func (c *contents) match(set *pcpwire.ValueSet) (missing bool, problem string) {
	item := set.PMID.Item()
	want := slices.Clone(c.instances(item))
	if set.NumVal <= 0 {
		return true, fmt.Sprintf("%v has no values but status %d (%v)", set.PMID, set.NumVal, pcpwire.Status(set.NumVal))
	}
	p := check(c.tag, set, func(inst int32, mark, bits uint32) {
		k := slices.Index(want, inst)
		switch {
		case k < 0:
			problem = fmt.Sprintf("%v has instance %d, which is not one of %v", set.PMID, inst, c.insts)
		case mark != c.mark&bits:
			problem = fmt.Sprintf("%v instance %d is from contents %d, not %d", set.PMID, inst, mark, c.mark&bits)
		default:
			want = slices.Delete(want, k, k+1)
		}
	})
	switch {
	case p != "":
		return false, p
	case problem != "":
		return false, problem
	case len(want) > 0:
		return true, fmt.Sprintf("%v has no value for instances %v", set.PMID, want)
	}
	return false, ""
}
