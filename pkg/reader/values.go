package reader

import (
	"runtime/debug"
	"slices"
	"time"
)

// Want asks for the values of one metric.
type Want struct {
	Type Type
	Refs Refs // of a Layout of the same file
}

// Values holds what Load found, in memory of its own that is used again.
//
// The values of want i are those from End[i-1] (0 for the first) to End[i]:
// Insts has their instances, Bits the values: 32-bit types in the low 32 bits,
// FLOAT and DOUBLE as IEEE 754 bits, ELAPSED in microseconds, for STRING see
// String.
type Values struct {
	Insts []int32
	Bits  []uint64
	End   []int
	strs  []byte
}

// String returns the string value with those bits, without a NUL, at most 255
// bytes. It is valid until the next Load or Reset.
func (v *Values) String(bits uint64) []byte {
	off, n := int(bits>>8), int(bits&0xff)
	return v.strs[off : off+n : off+n]
}

// Reset forgets all values.
func (v *Values) Reset() { v.cut(0, 0, 0) }

func (v *Values) cut(values, ends, strs int) {
	v.Insts, v.Bits, v.End, v.strs = v.Insts[:values], v.Bits[:values], v.End[:ends], v.strs[:strs]
}

// Load appends the values that the wants have now: one load each, one End for
// every want. Slots that hold the sentinel have no value, nor has a string
// whose offset is not inside the file. It returns false, with no value for any
// want, when the file is not what it was when it was loaded: shorter, or of
// another generation. The next Look finds out what it has become.
func (f *File) Load(wants []Want, v *Values) bool {
	values, ends, strs := len(v.Insts), len(v.End), len(v.strs)
	if f.m.size != 0 && f.load(wants, v) {
		return true
	}
	v.cut(values, ends, strs)
	for range wants {
		v.End = append(v.End, values)
	}
	return false
}

// guard is deferred by what reads the file's memory, with what SetPanicOnFault
// was. A fault makes ok false, which makes the file suspect.
func (f *File) guard(old bool, ok *bool) {
	debug.SetPanicOnFault(old)
	if r := recover(); r != nil {
		if !f.faulted(r) {
			panic(r)
		}
		f.dir.faults.Add(1)
		*ok = false
	}
	if !*ok {
		f.suspect()
	}
}

func (f *File) load(wants []Want, v *Values) (ok bool) {
	defer f.guard(debug.SetPanicOnFault(true), &ok)
	total := 0
	for i := range wants {
		total += wants[i].Refs.n
	}
	n := len(v.Insts)
	v.Insts, v.Bits, v.End = slices.Grow(v.Insts, total), slices.Grow(v.Bits, total), slices.Grow(v.End, len(wants))
	l := loader{m: f.m, sentinel: f.Catalog.Header.Flags&FlagSentinel != 0, insts: v.Insts[n : n+total], bits: v.Bits[n : n+total]}
	for i := range wants {
		w := &wants[i]
		switch w.Type {
		case TypeI32, TypeU32:
			l.ints(&w.Refs, true)
		case TypeI64, TypeU64:
			l.ints(&w.Refs, false)
		case TypeFloat, TypeDouble:
			l.floats(&w.Refs, w.Type == TypeFloat)
		case TypeElapsed:
			l.elapsed(&w.Refs)
		case TypeString:
			v.strs = l.strings(&w.Refs, v.strs)
		case TypeNoSupport:
		}
		v.End = append(v.End, n+l.n)
	}
	v.Insts, v.Bits = v.Insts[:n+l.n], v.Bits[:n+l.n]
	return f.current()
}

// current tells whether the file still has the generation it was loaded with.
// It may fault.
func (f *File) current() bool {
	g := f.Catalog.Header.Generation1
	return word(f.head.at(offGeneration1)) == g && word(f.head.at(offGeneration2)) == g
}

// LoadSlots loads the 8 bytes of each slot: bits[i] of the one at offs[i], which
// must come from a Layout of the file. For 32-bit types the value is
// Narrow(bits[i]). It returns false, as Load does, when the file is not what it
// was.
func (f *File) LoadSlots(offs []uint32, bits []uint64) (ok bool) {
	if f.m.size == 0 {
		return false
	}
	defer f.guard(debug.SetPanicOnFault(true), &ok)
	m := f.m
	bits = bits[:len(offs)]
	for i, off := range offs {
		bits[i] = word(m.at(off))
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

const allOnes = ^uint64(0) // the sentinel of integers, whatever their size

// loader puts the values of one Load, n so far, into insts and bits.
type loader struct {
	m        mapping
	sentinel bool
	insts    []int32
	bits     []uint64
	n        int
}

// room returns where the values of the next n slots go.
func (l *loader) room(n int) ([]int32, []uint64) {
	return l.insts[l.n : l.n+n], l.bits[l.n : l.n+n]
}

// ints loads integers, of which narrow ones have 32 bits.
func (l *loader) ints(refs *Refs, narrow bool) {
	insts, bits := l.room(refs.n)
	k := refs.n
	if l.sentinel {
		k = 0
		for i := range refs.n {
			r := refs.At(i)
			b := word(l.m.at(r.Off))
			if b != allOnes {
				insts[k], bits[k] = r.Inst, b
				k++
			}
		}
	} else {
		l.words(refs, insts, bits)
	}
	if narrow {
		for i, b := range bits[:k] {
			bits[i] = uint64(first32(b))
		}
	}
	l.n += k
}

// words loads the words of all slots.
func (l *loader) words(refs *Refs, insts []int32, bits []uint64) {
	m := l.m
	switch {
	case refs.n == 0:
		return
	case refs.list != nil:
		for i, r := range refs.list {
			insts[i], bits[i] = r.Inst, word(m.at(r.Off))
		}
		return
	}
	for i := range bits {
		bits[i] = word(m.at(refs.off + uint32(i)*ValueSize))
	}
	if refs.insts == nil {
		insts[0] = -1
		return
	}
	for i := range refs.insts {
		insts[i] = refs.insts[i].Internal
	}
}

func (l *loader) floats(refs *Refs, single bool) {
	insts, bits := l.room(refs.n)
	if !l.sentinel {
		l.words(refs, insts, bits)
		if single {
			for i, b := range bits {
				bits[i] = uint64(first32(b))
			}
		}
		l.n += refs.n
		return
	}
	k := 0
	for i := range refs.n {
		r := refs.At(i)
		b := word(l.m.at(r.Off))
		nan := b<<1 > 0x7ff<<53
		if single {
			b = uint64(first32(b))
			nan = b&0x7fffffff > 0x7f800000
		}
		if nan {
			continue
		}
		insts[k], bits[k] = r.Inst, b
		k++
	}
	l.n += k
}

func (l *loader) elapsed(refs *Refs) {
	insts, bits := l.room(refs.n)
	now, k := time.Now().UnixMicro(), 0
	for i := range refs.n {
		r := refs.At(i)
		b := word(l.m.at(r.Off))
		if b == allOnes && l.sentinel {
			continue
		}
		if extra := int64(word(l.m.at(r.Off + 8))); extra < 0 { // a section is being timed
			b += uint64(now + extra)
		}
		insts[k], bits[k] = r.Inst, b
		k++
	}
	l.n += k
}

// strings appends the strings to strs and returns it.
func (l *loader) strings(refs *Refs, strs []byte) []byte {
	insts, bits := l.room(refs.n)
	k := 0
	for i := range refs.n {
		r := refs.At(i)
		off := word(l.m.at(r.Off + 8))
		if off < max(HeaderSize, uint64(l.m.start)) || off >= uint64(l.m.size) {
			continue
		}
		at := len(strs)
		strs = l.m.appendString(strs, off)
		n := len(strs) - at
		if n == 0 && l.sentinel {
			continue
		}
		insts[k], bits[k] = r.Inst, uint64(at)<<8|uint64(n)
		k++
	}
	l.n += k
	return strs
}

// first32 is the word at the lower address of the 8 bytes loaded as v.
func first32(v uint64) uint32 {
	var b [8]byte
	native.PutUint64(b[:], v)
	return native.Uint32(b[:])
}
