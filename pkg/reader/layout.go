package reader

import "runtime/debug"

// Layout says where the live values of a file lie. It is immutable.
type Layout struct{ c *Catalog }

// Layout returns where the values of the file lie, nil where that cannot be
// found out any more: the file is Held, or not what it was.
func (f *File) Layout() *Layout {
	if f.Held {
		return nil
	}
	return &Layout{f.Catalog}
}

// Refs returns the slots of a metric, by its index in the Catalog, in the order
// of its indom's instances, at most one for each. The slice belongs to the
// Layout.
func (l *Layout) Refs(metric uint32) []ValueRef { return l.c.Values(&l.c.Metrics[metric]) }

// LoadSlots loads the 8 bytes of each slot: bits[i] of the one at offs[i], which
// must come from a Layout of the file. For 32-bit types the value is
// Narrow(bits[i]). It returns false, as Load does, when the file is not what it
// was.
func (f *File) LoadSlots(offs []uint32, bits []uint64) (ok bool) {
	if f.m.base == nil {
		return false
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			if !f.m.faulted(r) {
				panic(r)
			}
			f.dir.faults.Add(1)
			ok = false
		}
		if !ok {
			f.suspect()
		}
	}()
	m := f.m
	bits = bits[:len(offs)]
	for i, off := range offs {
		bits[i] = m.word(off)
	}
	return f.current()
}

// Narrow is the value of a 32-bit type in the 8 bytes of a slot.
func Narrow(bits uint64) uint32 { return first32(bits) }

// SentinelOf tells whether bits, as LoadSlots gives them, are the sentinel of a
// number of that type.
func SentinelOf(t Type, bits uint64) bool {
	switch t {
	case TypeDouble:
		return bits<<1 > 0x7ff<<53
	case TypeFloat:
		return first32(bits)&0x7fffffff > 0x7f800000
	default:
		return bits == allOnes
	}
}
