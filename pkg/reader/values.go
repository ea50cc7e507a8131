package reader

import (
	"runtime/debug"
	"slices"
	"time"
)

// Want asks for the values of one metric.
type Want struct {
	Type Type
	Refs []ValueRef // of a Catalog of the same file
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
	if f.m.base != nil && f.load(wants, v) {
		return true
	}
	v.cut(values, ends, strs)
	for range wants {
		v.End = append(v.End, values)
	}
	return false
}

func (f *File) load(wants []Want, v *Values) (ok bool) {
	var fault bool
	defer func() {
		if fault && f.dir != nil {
			f.dir.faults.Add(1)
		}
		if fault || !ok {
			f.suspect()
			ok = false
		}
	}()
	old := debug.SetPanicOnFault(true)
	defer guard(old, &fault)
	sentinel := f.Catalog.Header.Flags&FlagSentinel != 0
	for i := range wants {
		w := &wants[i]
		n := len(v.Insts)
		v.Insts, v.Bits = slices.Grow(v.Insts, len(w.Refs)), slices.Grow(v.Bits, len(w.Refs))
		insts, bits := v.Insts[n:n+len(w.Refs)], v.Bits[n:n+len(w.Refs)]
		k := 0
		switch w.Type {
		case TypeI64, TypeU64:
			k = f.loadInts(w.Refs, insts, bits, sentinel)
		case TypeI32, TypeU32:
			k = f.loadInts(w.Refs, insts, bits, sentinel)
			for j := range bits[:k] {
				bits[j] = uint64(first32(bits[j]))
			}
		case TypeFloat, TypeDouble:
			k = f.loadFloats(w.Refs, insts, bits, w.Type == TypeFloat, sentinel)
		case TypeElapsed:
			k = f.loadElapsed(w.Refs, insts, bits, sentinel)
		case TypeString:
			k = f.loadStrings(w.Refs, insts, bits, sentinel, v)
		case TypeNoSupport:
		}
		v.Insts, v.Bits = v.Insts[:n+k], v.Bits[:n+k]
		v.End = append(v.End, n+k)
	}
	return f.current()
}

// current tells whether the file still has the generation it was loaded with.
// It may fault.
func (f *File) current() bool {
	g := f.Catalog.Header.Generation1
	return f.m.word(offGeneration1) == g && f.m.word(offGeneration2) == g
}

const allOnes = ^uint64(0) // the sentinel of integers, whatever their size

func (f *File) loadInts(refs []ValueRef, insts []int32, bits []uint64, sentinel bool) int {
	m, k := f.m, 0
	insts, bits = insts[:len(refs)], bits[:len(refs)]
	for _, r := range refs {
		b := m.word(r.Off)
		if b == allOnes && sentinel {
			continue
		}
		insts[k], bits[k] = r.Inst, b
		k++
	}
	return k
}

func (f *File) loadFloats(refs []ValueRef, insts []int32, bits []uint64, single, sentinel bool) int {
	k := 0
	for _, r := range refs {
		b := f.m.word(r.Off)
		nan := b<<1 > 0x7ff<<53
		if single {
			b = uint64(first32(b))
			nan = b&0x7fffffff > 0x7f800000
		}
		if nan && sentinel {
			continue
		}
		insts[k], bits[k] = r.Inst, b
		k++
	}
	return k
}

func (f *File) loadElapsed(refs []ValueRef, insts []int32, bits []uint64, sentinel bool) int {
	now, k := time.Now().UnixMicro(), 0
	for _, r := range refs {
		b := f.m.word(r.Off)
		if b == allOnes && sentinel {
			continue
		}
		if extra := int64(f.m.word(r.Off + 8)); extra < 0 { // a section is being timed
			b += uint64(now + extra)
		}
		insts[k], bits[k] = r.Inst, b
		k++
	}
	return k
}

func (f *File) loadStrings(refs []ValueRef, insts []int32, bits []uint64, sentinel bool, v *Values) int {
	k := 0
	for _, r := range refs {
		off := f.m.word(r.Off + 8)
		if off < HeaderSize || off >= uint64(f.m.size) {
			continue
		}
		at := len(v.strs)
		v.strs = f.m.appendString(v.strs, off)
		n := len(v.strs) - at
		if n == 0 && sentinel {
			continue
		}
		insts[k], bits[k] = r.Inst, uint64(at)<<8|uint64(n)
		k++
	}
	return k
}

// first32 is the word at the lower address of the 8 bytes loaded as v.
func first32(v uint64) uint32 {
	var b [8]byte
	native.PutUint64(b[:], v)
	return native.Uint32(b[:])
}
