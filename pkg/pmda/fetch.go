package pmda

import (
	"errors"
	"fmt"

	"pmdammv/pkg/pcpwire"
)

var errSets = errors.New("not one value set per metric")

// fetch answers a FETCH.
func (c *conn) fetch(req *pcpwire.Fetch) ([]byte, error) {
	b := &c.result
	if err := c.sess.Fetch(req.PMIDs, c.profile, b); err != nil {
		return nil, err
	}
	if b.Len() != len(req.PMIDs) {
		return nil, c.bug("result", fmt.Errorf("%w: %d for %d", errSets, b.Len(), len(req.PMIDs)))
	}
	now := c.sess.Changes() // not before: Fetch may move on
	b.SetFlags(changeFlags(c.seen, now))
	reply, err := b.Finish()
	if err != nil {
		return nil, c.bug("result", err)
	}
	c.seen = now
	return reply, nil
}

// changeFlags says what has changed since the last reply, for pmcd to tell its
// clients.
func changeFlags(seen, now Changes) (flags uint32) {
	if seen.Names != now.Names {
		flags |= pcpwire.NamesChanged
	}
	if seen.Labels != now.Labels {
		flags |= pcpwire.LabelsChanged
	}
	return flags
}
