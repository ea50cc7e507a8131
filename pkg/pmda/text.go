package pmda

import "pmdammv/pkg/pcpwire"

// helpText answers a TEXT_REQ. An empty text is one, too: pminfo shows it as such.
func (c *conn) helpText(req *pcpwire.TextReq) ([]byte, error) {
	length := req.Kind & (pcpwire.TextOneLine | pcpwire.TextHelp)
	about := req.Kind & (pcpwire.TextPMID | pcpwire.TextInDom)
	if !oneBit(uint32(length)) || !oneBit(uint32(about)) {
		return nil, pcpwire.ErrText
	}
	text, err := c.sess.Text(req.Ident, length|about)
	if err != nil {
		return nil, err
	}
	c.text = pcpwire.Text{Ident: req.Ident, Text: text}
	return c.encode(&c.text)
}

func oneBit(v uint32) bool { return v != 0 && v&(v-1) == 0 }
