package exporter

import (
	"hash/maphash"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

// labelsOf calls f with the labels of something of the cluster: of itself, of an
// item, of an indom, or of an instance of that.
func (c *cluster) labelsOf(level pcpwire.LabelLevel, item uint32, d *indom, inst int32, f func(*reader.Catalog, *reader.Label)) {
	if level == pcpwire.LabelInstances {
		for i, p := range d.parts() {
			if d.more == nil || d.more.has(i, inst) {
				cat := c.files[p.file].cat
				cat.InstanceLabels(d.serial, inst, func(l *reader.Label) { f(cat, l) })
			}
		}
		return
	}
	each := func(k int, identity uint32, other uint32) {
		cat := c.files[k].cat
		for i := range cat.Labels {
			if l := &cat.Labels[i]; l.Flags&reader.LabelFlags(level) != 0 && (l.Identity == identity || l.Identity == other) {
				f(cat, l)
			}
		}
	}
	switch level {
	case pcpwire.LabelCluster:
		for k := range c.files {
			each(k, c.files[k].asks(), c.number)
		}
	case pcpwire.LabelItem:
		it := c.item(item)
		switch {
		case it.file == noFile:
		case it.shared():
			for _, p := range c.shared[it.metric].parts {
				each(p.file, item, item)
			}
		default:
			each(int(it.file)-1, item, item)
		}
	case pcpwire.LabelInDom:
		for _, p := range d.parts() {
			each(p.file, d.serial, d.serial)
		}
	default: // pmda has those of the domain
	}
}

// parts are the files that have the indom, with its index in each.
func (d *indom) parts() []part {
	switch {
	case d.more != nil:
		return d.more.parts
	case d.index >= 0:
		return []part{{d.file, uint32(d.index)}}
	default:
		return nil
	}
}

// hashLabels is a hash of all labels that the cluster has, and if there are
// some, of its metrics, whose labels they are; else 0.
func (c *cluster) hashLabels(seed maphash.Seed) uint64 {
	if c.metrics == 0 {
		return 0
	}
	has := false
	for _, f := range c.files {
		has = has || len(f.cat.Labels) > 0
	}
	if !has {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(seed)
	found := false
	hash := func(level pcpwire.LabelLevel, item uint32, d *indom, inst int32) {
		number := item
		if d != nil {
			number = d.number
		}
		c.labelsOf(level, item, d, inst, func(cat *reader.Catalog, l *reader.Label) {
			found = true
			maphash.WriteComparable(&h, [...]uint32{uint32(level), number, uint32(inst), uint32(l.Flags)})
			_, _ = h.Write(cat.Text(l.Payload))
			_ = h.WriteByte(0)
		})
	}
	hash(pcpwire.LabelCluster, 0, nil, pcpwire.InstNull)
	items := map[uint32]bool{}
	serials := map[uint32]bool{}
	instances := map[uint32]bool{}
	for _, f := range c.files {
		for i := range f.cat.Labels {
			l := &f.cat.Labels[i]
			if l.Flags&reader.LabelItem != 0 && !items[l.Identity] {
				items[l.Identity] = true
				hash(pcpwire.LabelItem, l.Identity, nil, pcpwire.InstNull)
			}
			serials[l.Identity] = serials[l.Identity] || l.Flags&reader.LabelInDom != 0
			instances[l.Identity] = instances[l.Identity] || l.Flags&reader.LabelInstances != 0
		}
	}
	for i := range c.indoms {
		d := &c.indoms[i]
		if !d.kept {
			continue
		}
		if serials[d.serial] {
			hash(pcpwire.LabelInDom, 0, d, pcpwire.InstNull)
		}
		if instances[d.serial] {
			t := c.table(d, &catalogTable{})
			for k := range t.Len() {
				inst, _ := t.At(k)
				hash(pcpwire.LabelInstances, 0, d, inst)
			}
		}
	}
	if !found {
		return 0
	}
	maphash.WriteComparable(&h, [...]uint64{uint64(c.number), c.names})
	return h.Sum64()
}

// table is the indom as pmda sees it; t is for one of a single file.
func (c *cluster) table(d *indom, t *catalogTable) pmda.Instances {
	if d.more != nil {
		return mergedTable{c, d.more}
	}
	*t = catalogTable{cat: c.files[d.file].cat}
	if d.index >= 0 {
		t.insts = t.cat.Instances(&t.cat.InDoms[d.index])
	}
	return t
}

// Labels is for pmda.
func (s *session) Labels(dst []pmda.LabelRecord, level pcpwire.LabelLevel, ident uint32, inst int32) []pmda.LabelRecord {
	add := func(cat *reader.Catalog, l *reader.Label) {
		dst = append(dst, pmda.LabelRecord{JSON: cat.Text(l.Payload), Optional: l.Flags&reader.LabelOptional != 0})
	}
	switch level {
	case pcpwire.LabelCluster, pcpwire.LabelItem:
		if pmid := pcpwire.PMID(ident); s.t.ours(pmid) {
			if c := s.t.clusters.at(pmid.Cluster()); c != nil {
				c.labelsOf(level, pmid.Item(), nil, inst, add)
			}
		}
	case pcpwire.LabelInDom, pcpwire.LabelInstances:
		if c, d := s.t.indom(pcpwire.InDom(ident)); d != nil {
			c.labelsOf(level, 0, d, inst, add)
		}
	default: // pmda has those of the domain
	}
	return dst
}
