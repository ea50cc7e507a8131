package pmda

import "pmdammv/pkg/pcpwire"

// pmidOfName answers PMNS_NAMES with one name.
func (c *conn) pmidOfName(req *pcpwire.Names) ([]byte, error) {
	if len(req.Names) != 1 {
		return nil, errMalformed
	}
	if len(req.Names[0]) == 0 {
		return nil, pcpwire.ErrName
	}
	pmid, err := c.sess.PMID(req.Names[0])
	if err != nil {
		return nil, err
	}
	c.ids.IDs = append(c.ids.IDs[:0], pmid)
	return c.encode(&c.ids)
}

// namesOfPMID answers PMNS_IDS with one identifier: all names it has.
func (c *conn) namesOfPMID(req *pcpwire.IDs) ([]byte, error) {
	if len(req.IDs) != 1 {
		return nil, errMalformed
	}
	c.names.Begin(false)
	if err := c.sess.Names(&c.names, req.IDs[0]); err != nil {
		return nil, err
	}
	return c.finishNames()
}

// children answers PMNS_CHILD: the last components of a node's children.
func (c *conn) children(req *pcpwire.Child) ([]byte, error) {
	if len(req.Name) == 0 {
		return nil, pcpwire.ErrName
	}
	c.names.Begin(req.WantStatus)
	if err := c.sess.Children(&c.names, req.Name, req.WantStatus); err != nil {
		return nil, err
	}
	return c.finishNames()
}

// traverse answers PMNS_TRAVERSE: all leaves at or below a node.
func (c *conn) traverse(req *pcpwire.Traverse) ([]byte, error) {
	if len(req.Name) == 0 {
		return nil, pcpwire.ErrName
	}
	c.names.Begin(false)
	if err := c.sess.Traverse(&c.names, req.Name); err != nil {
		return nil, err
	}
	return c.finishNames()
}

func (c *conn) finishNames() ([]byte, error) {
	reply, err := c.names.Finish()
	if err != nil {
		return nil, c.bug("names", err)
	}
	return reply, nil
}
