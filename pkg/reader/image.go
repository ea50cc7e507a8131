package reader

// image is the bytes of a file: all of them in memory, or read in parts.
type image struct {
	data    []byte // all; nil: they are read
	size    uint64
	src     source
	windows *[streams]window
	leaps   int    // moves of windows elsewhere than forward
	had     uint64 // bytes read
	err     error  // the first of src
}

// source is where an image is read from.
type source interface {
	readAt(b []byte, off uint64) (int, error) // less than len(b) where the file ends
	readAll() ([]byte, error)                 // zeros where the file ends
}

// stream is a series of reads that, in a file as writers make it, goes forward.
// Each has a window of its own.
type stream int

const (
	atEntries   stream = iota // of all sections but those of the other two
	atInstances               // those of one indom are read between two indoms
	atStrings                 // they are read between all others
	streams
)

const (
	windowSize  = 64 << 10 // at most
	leastWindow = 2 << 10
	maxLeaps    = 64 // a file in whose parts there is no order is read at once
)

// window is a part of the file in private memory.
type window struct {
	memory []byte // windowSize bytes
	part   []byte // what of memory is valid
	off    uint64 // of part in the file
}

// within returns the n bytes at off, and what of the window comes after them,
// nil where it does not have them.
func (w *window) within(off, n uint64) []byte {
	i := off - w.off // too far when off is before it
	if have := uint64(len(w.part)); i > have || n > have-i {
		return nil
	}
	return w.part[i:]
}

// at returns the n bytes at off, at most leastWindow, which lie inside the image,
// and as many of those that follow as can be had for nothing; ahead is how many
// bytes from off on are likely to be asked for, 0 where nobody knows. They are
// valid until the next call; those of atEntries and atInstances, until the next
// for one of these two. Bytes that cannot be read are zero.
func (m *image) at(s stream, off, n, ahead uint64) []byte {
	if m.data != nil {
		return m.data[off:]
	}
	if b := m.windows[s].within(off, n); b != nil {
		return b
	}
	for i := range atStrings { // that moves while what it has is in use
		if b := m.windows[i].within(off, n); b != nil {
			return b
		}
	}
	return m.move(&m.windows[s], off, ahead)
}

// move makes w begin at off and returns it. A window of which nobody knows how
// much of it will be asked for grows while it goes forward.
func (m *image) move(w *window, off, ahead uint64) []byte {
	have := uint64(len(w.part))
	switch forward := off-w.off <= 2*have; {
	case !forward:
		m.leaps++
	case ahead == 0:
		ahead = 2 * have
	}
	if m.err == nil && (m.leaps > maxLeaps || m.had > 2*m.size) {
		if m.data, m.err = m.src.readAll(); m.err == nil {
			return m.data[off:]
		}
		m.data = nil
	}
	if w.memory == nil {
		w.memory = make([]byte, windowSize)
	}
	w.off, w.part = off, w.memory[:min(ahead+leastWindow, windowSize, m.size-off)] // often the next section is short
	m.had += uint64(len(w.part))
	n := 0
	if m.err == nil {
		n, m.err = m.src.readAt(w.part, off)
	}
	clear(w.part[n:])
	return w.part
}

// forget makes all windows empty: another image is to be read with them.
func forget(windows *[streams]window) {
	for i := range windows {
		windows[i].part, windows[i].off = nil, 0
	}
}
