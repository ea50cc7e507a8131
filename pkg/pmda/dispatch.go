package pmda

import (
	"pmdammv/pkg/pcpwire"
)

// keepBuffer is how much memory a connection keeps for its next reply.
const keepBuffer = 1 << 20

// dispatch takes in one PDU, or the error of decoding its body, and returns
// the reply: exactly one PDU for a request, nil for anything else. The reply
// is valid until the next call.
func (c *conn) dispatch(h pcpwire.Header, pdu pcpwire.PDU, err error) []byte {
	if !h.Type.HasReply() {
		c.take(h, pdu, err)
		return nil
	}
	if err != nil {
		c.log.Debug("malformed request", "pdu", h.Type, "error", err)
		return c.errorReply(pcpwire.ErrIPC)
	}
	c.sess.Begin()
	reply, err := c.answer(pdu)
	c.sess.End()
	if err != nil {
		return c.errorReply(statusOf(err))
	}
	return reply
}

// answer answers a request, between Begin and End of the session.
func (c *conn) answer(pdu pcpwire.PDU) ([]byte, error) {
	switch p := pdu.(type) {
	case *pcpwire.Fetch:
		return c.fetch(p)
	case *pcpwire.Result:
		return c.store(p)
	case *pcpwire.DescReq:
		return c.describe(p)
	case *pcpwire.InstanceReq:
		return c.instances(p)
	case *pcpwire.TextReq:
		return c.helpText(p)
	case *pcpwire.Names:
		return c.pmidOfName(p)
	case *pcpwire.IDs:
		return c.namesOfPMID(p)
	case *pcpwire.Child:
		return c.children(p)
	case *pcpwire.Traverse:
		return c.traverse(p)
	case *pcpwire.LabelReq:
		return c.labelSets(p)
	default:
		return nil, errMalformed
	}
}

// take takes in a PDU that has no reply. A reply to it would be taken for the
// one to the next request, and all later ones would be off by one.
func (c *conn) take(h pcpwire.Header, pdu pcpwire.PDU, err error) {
	if err != nil {
		c.log.Debug("malformed PDU ignored", "pdu", h.Type, "error", err)
		return
	}
	switch p := pdu.(type) {
	case *pcpwire.Profile:
		c.setProfile(p)
	case *pcpwire.Attr:
	case *pcpwire.ErrorPDU:
		// PM_ERR_NOTCONN tells that a client of pmcd has gone.
		if p.Code != pcpwire.ErrNotConn {
			c.log.Debug("error from peer", "code", int32(p.Code), "error", p.Code)
		}
	default:
		if h.Type != pcpwire.PDUControlReq && !c.strange {
			c.strange = true
			c.log.Warn("unexpected PDU ignored, and later ones without a word", "pdu", h.Type)
		}
	}
}

// setProfile makes a copy of the profile, which holds for all later fetches
// and label requests whoever they are for: pmcd sends another one when it
// changes.
func (c *conn) setProfile(p *pcpwire.Profile) {
	if c.profile == nil {
		c.profile = new(pcpwire.Profile)
	}
	p.CopyTo(c.profile)
	c.profile.Sort()
}

// encode makes a reply of a PDU.
func (c *conn) encode(p pcpwire.PDU) ([]byte, error) {
	if cap(c.buf) > keepBuffer {
		c.buf = nil
	}
	reply, err := pcpwire.AppendPDU(c.buf[:0], 0, p)
	if err != nil {
		return nil, c.bug("reply", err)
	}
	c.buf = reply
	return reply, nil
}

// errorReply encodes an ERROR PDU, which always fits.
func (c *conn) errorReply(s pcpwire.Status) []byte {
	c.errorPDU.Code = s
	c.buf, _ = pcpwire.AppendPDU(c.buf[:0], 0, &c.errorPDU)
	return c.buf
}

// bug logs a mistake that only this package or a Source can have made.
func (c *conn) bug(what string, err error) error {
	c.log.Error("cannot encode "+what, "error", err)
	return err
}
