package pmda

import "pmdammv/pkg/pcpwire"

// store answers a RESULT from pmcd, which asks to set values. The first
// metric that can not be set ends it; those before it have been.
func (c *conn) store(req *pcpwire.Result) ([]byte, error) {
	for i := range req.Sets {
		if err := c.sess.Store(&req.Sets[i]); err != nil {
			return nil, err
		}
	}
	return c.errorReply(0), nil
}
