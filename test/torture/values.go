package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// eachFrom is the first item of metrics with instances.
const eachFrom = 500

// kindOf is the type of a metric, which its item tells.
func kindOf(item uint32) int32 {
	return [...]int32{
		mmvimage.U64, mmvimage.I64, mmvimage.U32, mmvimage.I32, mmvimage.Double, mmvimage.Float, mmvimage.String,
	}[item%7]
}

// identity is what a value must be of: a file's tag (15 bits), a metric and an instance.
func identity(tag, item uint32, inst int32) uint32 { return tag<<16 | item<<6 | uint32(inst+1)&63 }

// short is an identity for types that have no room for it.
func short(id uint32) uint32 { return id * 2654435761 >> 16 }

// mark is the other part of a value: how many of its low bits a type has room for.
func markBits(typ int32) uint32 {
	switch typ {
	case mmvimage.Double:
		return 1<<21 - 1
	case mmvimage.U32, mmvimage.I32:
		return 1<<16 - 1
	case mmvimage.Float:
		return 1<<8 - 1
	default:
		return math.MaxUint32
	}
}

// number puts identity and mark together, as the bits of a slot; those of 32-bit types in the low half.
func number(typ int32, id, mark uint32) uint64 {
	mark &= markBits(typ)
	switch typ {
	case mmvimage.Double:
		return math.Float64bits(float64(uint64(id)<<21 | uint64(mark)))
	case mmvimage.Float:
		return uint64(math.Float32bits(float32(short(id)<<8 | mark)))
	case mmvimage.U32, mmvimage.I32:
		return uint64(short(id)<<16 | mark)
	default:
		return uint64(id)<<32 | uint64(mark)
	}
}

func text(id, mark uint32) string { return fmt.Sprintf("%08x %d", id, mark) }

// value is the same for an image.
func value(typ int32, id, mark uint32) mmvimage.Value {
	switch bits := number(typ, id, mark); typ {
	case mmvimage.String:
		return mmvimage.Text(text(id, mark))
	case mmvimage.U32, mmvimage.I32:
		return mmvimage.Int32(int32(bits))
	case mmvimage.Float:
		return mmvimage.Float32(math.Float32frombits(uint32(bits)))
	default:
		return mmvimage.Uint(bits)
	}
}

// markOf takes a value apart. ok says whether it has that identity.
func markOf(v pcpwire.AtomValue, id uint32) (mark uint32, ok bool) {
	switch v.Type {
	case pcpwire.TypeDouble:
		n := uint64(v.Double())
		return uint32(n) & (1<<21 - 1), n>>21 == uint64(id) && float64(n) == v.Double()
	case pcpwire.TypeFloat:
		n := uint32(v.Float())
		return n & 0xff, n>>8 == short(id)&0xffff && float32(n) == v.Float()
	case pcpwire.TypeU32, pcpwire.TypeI32:
		return v.U32() & 0xffff, v.U32()>>16 == short(id)&0xffff
	case pcpwire.TypeString:
		of, rest, _ := strings.Cut(string(v.Str), " ")
		n, err1 := strconv.ParseUint(of, 16, 32)
		m, err2 := strconv.ParseUint(rest, 10, 32)
		return uint32(m), err1 == nil && err2 == nil && uint32(n) == id
	default:
		return uint32(v.Bits), uint32(v.Bits>>32) == id
	}
}

// show is a value for people.
func show(v pcpwire.AtomValue) string {
	switch v.Type {
	case pcpwire.TypeString:
		return fmt.Sprintf("%q", v.Str)
	case pcpwire.TypeDouble:
		return fmt.Sprintf("%#x (as a number %#x)", v.Bits, uint64(v.Double()))
	case pcpwire.TypeFloat:
		return fmt.Sprintf("%#x (as a number %#x)", v.Bits, uint32(v.Float()))
	default:
		return fmt.Sprintf("%#x", v.Bits)
	}
}
