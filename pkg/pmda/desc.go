package pmda

import "pmdammv/pkg/pcpwire"

// describe answers a DESC_REQ.
func (c *conn) describe(req *pcpwire.DescReq) ([]byte, error) {
	desc, err := c.sess.Desc(req.PMID)
	if err != nil {
		return nil, err
	}
	c.desc = desc
	return c.encode(&c.desc)
}
