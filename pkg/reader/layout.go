package reader

import (
	"runtime/debug"
	"slices"
)

// Layout says where the live values of a file lie. It is immutable.
type Layout struct{ c *Catalog }

// Layout returns where the values of the file lie, nil where that cannot be
// found out: the file is Held, or no longer what it was, or its Catalog is an
// Outline. For a file of many values it is made when it is first asked for.
func (f *File) Layout() *Layout {
	switch {
	case f.Held || f.m.size == 0 || f.Catalog.Outline:
		return nil
	case f.Catalog.lazy == nil:
		return &Layout{f.Catalog}
	}
	f.laying.Lock()
	defer f.laying.Unlock()
	if f.laid == nil {
		f.laid = f.layOut()
	}
	return f.laid
}

// same tells whether the file says what c does, which has just been read from
// it; of its values, whether those that are known still lie where they did.
func (f *File) same(c *Catalog) bool {
	if !f.Catalog.Equal(c) {
		return false
	}
	f.laying.Lock()
	defer f.laying.Unlock()
	if f.laid == nil {
		return true
	}
	now := f.layOut()
	return now != nil && now.c.Equal(f.laid.c)
}

// samePlaces tells whether the instances that values will refer to lie where those
// of o do; either may be nil.
func (p *parser) samePlaces(o *parser) bool {
	return p == nil || o == nil || slices.EqualFunc(p.domain, o.domain, func(a, b domain) bool {
		return a.off == b.off && a.n == b.n && slices.Equal(a.kept, b.kept)
	})
}

// layOut reads the references of the values through the mapping, each once.
func (f *File) layOut() *Layout {
	c, p := *f.Catalog, *f.Catalog.lazy
	c.Metrics, c.Remarks, c.lazy = slices.Clone(c.Metrics), slices.Clone(c.Remarks), nil
	p.c, p.scratch = &c, &scratch{}
	read := func() (ok bool) {
		defer f.guard(debug.SetPanicOnFault(true), &ok)
		if !f.current() {
			return false
		}
		_ = p.values(func(off uint64) uint64 { return word(f.m.at(uint32(off))) }) // has no errors
		return f.current()
	}
	if !read() {
		return nil
	}
	return &Layout{&c}
}

// Refs returns the slots of a metric, by its index in the Catalog, in the order
// of its indom's instances, at most one for each.
func (l *Layout) Refs(metric uint32) Refs { return l.c.Values(&l.c.Metrics[metric]) }
