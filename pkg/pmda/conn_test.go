package pmda

import (
	"bytes"
	"testing"

	"pmdammv/pkg/pcpwire"
)

// A huge reply does not keep its memory for the rest of the connection.
func TestHugeReplyIsLetGo(t *testing.T) {
	huge := bytes.Repeat([]byte("x"), 2*keepBuffer)
	var c conn
	if _, err := c.encode(&pcpwire.Text{Text: huge}); err != nil {
		t.Fatal(err)
	}
	c.errorReply(pcpwire.ErrText)
	if _, err := c.encode(&pcpwire.Text{Text: huge[:100]}); err != nil {
		t.Fatal(err)
	}
	if cap(c.buf) > keepBuffer {
		t.Errorf("keeps %d bytes", cap(c.buf))
	}
	if s := forget(make([]int, 1<<20)); cap(s) != 0 {
		t.Errorf("keeps a slice of %d", cap(s))
	}
	text := "text"
	s := []*string{&text}
	if s = forget(s); len(s) != 0 || s[:1][0] != nil {
		t.Errorf("keeps %q", *s[:1][0])
	}
	m := labelMerger{text: make([]byte, 0, 2*keepBuffer)}
	if m.reset(); cap(m.text) > keepBuffer {
		t.Errorf("keeps %d bytes of labels", cap(m.text))
	}
}
