package reader

import (
	"errors"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"
)

// Whole returns the file's Catalog with its instances and where its values lie,
// nil where that cannot be found out any more: the file is not what it was, and the
// next Look will see to that. Of a file of many values both are read when they are
// first asked for: its Catalog has neither, and none of the Remarks on them. That is
// done once for each File; a Held one has what was found before, or nil.
func (f *File) Whole() *Catalog {
	if f.Catalog.rest == nil {
		return f.Catalog
	}
	if c := f.whole.Load(); c != nil || f.Held || f.failed.Load() {
		return c
	}
	f.completing.Lock()
	defer f.completing.Unlock()
	if c := f.whole.Load(); c != nil || f.failed.Load() {
		return c
	}
	c := f.complete()
	if c == nil {
		f.failed.Store(true)
		f.suspect()
	}
	f.whole.Store(c)
	return c
}

// Known is Whole of what has already been read, else the Catalog.
func (f *File) Known() *Catalog {
	if c := f.whole.Load(); c != nil {
		return c
	}
	return f.Catalog
}

// hold is f as it is shown while it is being rewritten.
func (f *File) hold() *File {
	h := &File{Name: f.Name, Catalog: f.Catalog, Held: true}
	h.whole.Store(f.whole.Load())
	return h
}

// same tells whether the file says what c does, which has just been read from
// it; of its instances and values, whether those that are known are what they
// were.
func (f *File) same(c *Catalog) bool {
	if !f.Catalog.Equal(c) {
		return false
	}
	f.completing.Lock()
	defer f.completing.Unlock()
	known := f.whole.Load()
	if known == nil {
		return !f.failed.Load()
	}
	now := f.complete()
	return now != nil && now.Equal(known)
}

// complete reads the instances from the file, and the references of the values
// through the mapping, each once.
func (f *File) complete() *Catalog {
	if f.m.size == 0 {
		return nil
	}
	fd, err := f.open()
	if err != nil {
		return nil
	}
	defer unix.Close(fd) //nolint:errcheck // only read
	var r imageReader
	defer r.drop()
	img, err := r.open(fd, f.id.size)
	if err != nil {
		return nil
	}
	var c *Catalog
	read := func() (ok bool) {
		defer f.guard(debug.SetPanicOnFault(true), &ok)
		if !f.current() {
			return false
		}
		c, err = f.Catalog.rest.complete(img, func(off uint64) uint64 { return word(f.m.at(uint32(off))) })
		return err == nil && f.current()
	}
	if !read() {
		return nil
	}
	return c
}

// open opens the file again.
func (f *File) open() (int, error) {
	path := f.dir.path + "/" + f.Name
	pathFD, st, link, err := openPath(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pathFD) //nolint:errcheck // only looked at
	if (fileID{st.dev, st.ino, st.size}) != f.id {
		return -1, errOther
	}
	return openFile(pathFD, path, link, st.stamp)
}

var errOther = errors.New("another file")

// complete returns the Catalog with what was left out of it: the instances, from
// m, and where the values lie. word returns the 8 bytes at an offset in the
// section of the values; it is called once for each. Names that together are longer
// than the file make it wrong as a whole no more: instances are left out.
func (p *parser) complete(m image, word func(off uint64) uint64) (*Catalog, error) {
	c, q := *p.c, *p
	c.rest, c.Metrics, c.InDoms, c.Remarks = nil, slices.Clone(c.Metrics), slices.Clone(c.InDoms), slices.Clone(c.Remarks)
	q.c, q.image, q.scratch, q.domain = &c, m, &scratch{}, slices.Clone(p.domain)
	q.full, q.fullText = slices.Clone(c.text), 0
	q.makeSlots()
	for i := range c.InDoms {
		c.InDoms[i].first = uint32(len(c.instances))
		if q.overlap == nil {
			q.instances(&q.domain[i])
		}
		if q.overlap != nil {
			q.domain[i].n = 0
		}
		c.InDoms[i].n = uint32(len(c.instances)) - c.InDoms[i].first
	}
	if err := (*FormatError)(nil); errors.As(q.overlap, &err) {
		q.remarkError(err)
	}
	if err := q.values(word); err != nil || q.err != nil {
		return nil, errors.Join(err, q.err)
	}
	q.keep()
	return &c, nil
}

// same tells whether what is left to be read lies where it does for o.
func (p *parser) same(o *parser) bool {
	if p == nil || o == nil {
		return p == o
	}
	return p.section == o.section && slices.EqualFunc(p.domain, o.domain, func(a, b domain) bool { return a.off == b.off && a.n == b.n })
}
