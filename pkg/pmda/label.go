package pmda

import (
	"encoding/json"

	"pmdammv/pkg/pcpwire"
)

// itemMask are the bits of a PMID that do not belong to its cluster.
const itemMask = 1<<10 - 1

// labelSets answers a LABEL_REQ (pmdaLabel). Nothing to say is no error, but a
// reply without sets.
func (c *conn) labelSets(req *pcpwire.LabelReq) ([]byte, error) {
	level := req.Level &^ (pcpwire.LabelCompound | pcpwire.LabelOptional)
	sets := c.label.Sets[:0]
	c.merge.reset()
	switch level {
	case pcpwire.LabelContext, pcpwire.LabelInDom, pcpwire.LabelItem:
		sets = c.addLabelSet(sets, level, req.Ident, nil)
	case pcpwire.LabelCluster:
		// Clients ask with the cluster of a metric, or with the whole metric.
		sets = c.addLabelSet(sets, level, req.Ident&^itemMask, nil)
	case pcpwire.LabelDomain:
		name, _ := json.Marshal(map[string]string{"agent": c.cfg.Name}) // cannot fail
		agent := []LabelRecord{{JSON: name}}
		sets = c.addLabelSet(sets, level, c.cfg.Domain, agent)
	case pcpwire.LabelInstances:
		sets = c.addInstanceLabels(sets, pcpwire.InDom(req.Ident))
	default:
		return nil, pcpwire.ErrType
	}
	c.label = pcpwire.LabelPDU{Ident: req.Ident, Level: req.Level, Sets: sets}
	reply, err := c.encode(&c.label)
	c.label.Sets = forget(sets)
	return reply, err
}

// addInstanceLabels appends the label sets, empty ones too, of those instances
// that are in the profile. As with libpcp_pmda, when there are instances but
// none of them in the profile, there is one empty set of no instance.
func (c *conn) addInstanceLabels(sets []pcpwire.LabelSet, indom pcpwire.InDom) []pcpwire.LabelSet {
	none := pcpwire.LabelSet{Inst: pcpwire.InstNull}
	if indom == pcpwire.InDomNull {
		return append(sets, none)
	}
	table, err := c.sess.Instances(indom)
	if err != nil || table.Len() == 0 {
		return sets
	}
	filter := c.profile.Filter(indom)
	for i := range table.Len() {
		if inst, _ := table.At(i); filter.Includes(inst) {
			sets = append(sets, c.mergeLabels(pcpwire.LabelInstances, uint32(indom), inst, nil))
		}
	}
	if len(sets) == 0 {
		sets = append(sets, none)
	}
	return sets
}

// addLabelSet appends the set of something that is not an instance, if it has
// labels: those of first, and then the session's.
func (c *conn) addLabelSet(sets []pcpwire.LabelSet, level pcpwire.LabelLevel, ident uint32, first []LabelRecord) []pcpwire.LabelSet {
	set := c.mergeLabels(level, ident, pcpwire.InstNull, first)
	if len(set.Labels) == 0 {
		return sets
	}
	return append(sets, set)
}

func (c *conn) mergeLabels(level pcpwire.LabelLevel, ident uint32, inst int32, first []LabelRecord) pcpwire.LabelSet {
	c.labels = c.sess.Labels(append(c.labels[:0], first...), level, ident, inst)
	set, err := c.merge.merge(level, c.labels)
	if err != nil {
		c.log.Debug("labels left out", "level", uint32(level), "ident", ident, "error", err)
	}
	set.Inst = inst
	c.labels = forget(c.labels)
	return set
}
