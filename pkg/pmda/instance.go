package pmda

import (
	"bytes"

	"pmdammv/pkg/pcpwire"
)

// instances answers an INSTANCE_REQ (pmdaInstance): all instances of an
// instance domain, or the name of one, or the number of one. The profile has
// no say in it.
//
// What was asked for comes back empty in a reply about one instance.
func (c *conn) instances(req *pcpwire.InstanceReq) ([]byte, error) {
	table, err := c.sess.Instances(req.InDom)
	if err != nil {
		return nil, err
	}
	entries := c.instance.Entries[:0]
	byName, byInst := len(req.Name) > 0, req.Inst != pcpwire.InstNull
	switch {
	case byName && byInst:
		return nil, pcpwire.ErrInst
	case byName:
		inst, ok := instanceByName(table, req.Name)
		if !ok {
			return nil, pcpwire.ErrInst
		}
		entries = append(entries, pcpwire.InstanceEntry{Inst: inst})
	case byInst:
		name, ok := instanceByNumber(table, req.Inst)
		if !ok {
			return nil, pcpwire.ErrInst
		}
		entries = append(entries, pcpwire.InstanceEntry{Inst: pcpwire.InstNull, Name: name})
	default:
		for i := range table.Len() {
			inst, name := table.At(i)
			entries = append(entries, pcpwire.InstanceEntry{Inst: inst, Name: name})
		}
	}
	c.instance = pcpwire.Instance{InDom: req.InDom, Entries: entries}
	reply, err := c.encode(&c.instance)
	c.instance.Entries = forget(entries)
	return reply, err
}

// instanceByName returns the first instance whose name, or the first word of
// whose name, is the one asked for. So "5" finds "5 minute"; a name of more
// words must be all of it.
func instanceByName(table Instances, want []byte) (inst int32, ok bool) {
	for i := range table.Len() {
		inst, name := table.At(i)
		rest, ok := bytes.CutPrefix(name, want)
		if ok && (len(rest) == 0 || rest[0] == ' ' && !bytes.Contains(want, []byte{' '})) {
			return inst, true
		}
	}
	return pcpwire.InstNull, false
}

func instanceByNumber(table Instances, want int32) (name []byte, ok bool) {
	if t, ok := table.(InstanceFinder); ok {
		return t.Find(want)
	}
	for i := range table.Len() {
		if inst, name := table.At(i); inst == want {
			return name, true
		}
	}
	return nil, false
}

// forget empties a slice for its next use, so that it keeps neither what its
// elements point at nor an unusual size.
func forget[T any](s []T) []T {
	const keep = 1 << 14
	if cap(s) > keep {
		return nil
	}
	clear(s)
	return s[:0]
}
