package pcpwire

// What tests may see of the buffers.

func (c *Conn) ReadBufferSize() int { return len(c.buf) }

func (c *Conn) WriteBufferSize() int { return cap(c.wbuf) }

func (b *ResultBuilder) BufferSize() int { return len(b.buf) }

func (b *NamesBuilder) BufferSize() int { return cap(b.buf) }

// SetCeiling makes the builder refuse PDUs over n bytes.
func (b *ResultBuilder) SetCeiling(n int) { b.ceiling = n }

// PatchLen is patchLen, which a test cannot reach with a PDU of 2 GiB.
func PatchLen(b []byte, start, ceiling int) error { return patchLen(b, start, ceiling) }
