package pcpwire

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Type is the type of a metric's values (PM_TYPE_*).
type Type int32

// The types. TypeUnknown occurs in value blocks only.
const (
	TypeNoSupport       Type = -1
	TypeI32             Type = 0
	TypeU32             Type = 1
	TypeI64             Type = 2
	TypeU64             Type = 3
	TypeFloat           Type = 4
	TypeDouble          Type = 5
	TypeString          Type = 6
	TypeAggregate       Type = 7
	TypeAggregateStatic Type = 8
	TypeEvent           Type = 9
	TypeHighResEvent    Type = 10
	TypeUnknown         Type = 255
)

// String returns the name that pmTypeStr gives, such as "U64".
func (t Type) String() string {
	switch t {
	case TypeNoSupport:
		return "NO_SUPPORT"
	case TypeI32:
		return "32"
	case TypeU32:
		return "U32"
	case TypeI64:
		return "64"
	case TypeU64:
		return "U64"
	case TypeFloat:
		return "FLOAT"
	case TypeDouble:
		return "DOUBLE"
	case TypeString:
		return "STRING"
	case TypeAggregate:
		return "AGGREGATE"
	case TypeAggregateStatic:
		return "AGGREGATE_STATIC"
	case TypeEvent:
		return "EVENT"
	case TypeHighResEvent:
		return "HIGHRES_EVENT"
	case TypeUnknown:
		return "UNKNOWN"
	default:
		return "???"
	}
}

// Semantics says how a metric's values relate over time (PM_SEM_*).
type Semantics int32

// The semantics.
const (
	SemCounter  Semantics = 1
	SemInstant  Semantics = 3
	SemDiscrete Semantics = 4
)

// String returns the name that pmSemStr gives, such as "counter".
func (s Semantics) String() string {
	switch s {
	case SemCounter:
		return "counter"
	case SemInstant:
		return "instant"
	case SemDiscrete:
		return "discrete"
	default:
		return "???"
	}
}

// AtomValue is one value with its type (pmAtomValue). Numbers are in Bits: those
// of 64 bits as they are, those of 32 bits in the low half, the rest zero.
// Strings (without NUL) and aggregates are in Str.
type AtomValue struct {
	Type Type
	Bits uint64
	Str  []byte
}

// AtomI32 is a value of TypeI32.
func AtomI32(v int32) AtomValue { return AtomValue{Type: TypeI32, Bits: uint64(uint32(v))} }

// AtomU32 is a value of TypeU32.
func AtomU32(v uint32) AtomValue { return AtomValue{Type: TypeU32, Bits: uint64(v)} }

// AtomI64 is a value of TypeI64.
func AtomI64(v int64) AtomValue { return AtomValue{Type: TypeI64, Bits: uint64(v)} }

// AtomU64 is a value of TypeU64.
func AtomU64(v uint64) AtomValue { return AtomValue{Type: TypeU64, Bits: v} }

// AtomFloat is a value of TypeFloat.
func AtomFloat(v float32) AtomValue {
	return AtomValue{Type: TypeFloat, Bits: uint64(math.Float32bits(v))}
}

// AtomDouble is a value of TypeDouble.
func AtomDouble(v float64) AtomValue {
	return AtomValue{Type: TypeDouble, Bits: math.Float64bits(v)}
}

// AtomString is a value of TypeString; s, without NUL, is kept.
func AtomString(s []byte) AtomValue { return AtomValue{Type: TypeString, Str: s} }

// I32 returns the low 32 bits, for TypeI32.
func (a AtomValue) I32() int32 { return int32(a.Bits) }

// U32 returns the low 32 bits, for TypeU32.
func (a AtomValue) U32() uint32 { return uint32(a.Bits) }

// I64 returns the bits, for TypeI64.
func (a AtomValue) I64() int64 { return int64(a.Bits) }

// U64 returns the bits, for TypeU64.
func (a AtomValue) U64() uint64 { return a.Bits }

// Float returns the low 32 bits as a float, for TypeFloat.
func (a AtomValue) Float() float32 { return math.Float32frombits(uint32(a.Bits)) }

// Double returns the bits as a double, for TypeDouble.
func (a AtomValue) Double() float64 { return math.Float64frombits(a.Bits) }

// Convert returns the value as one of another type, by the rules of
// pmExtractValue: ErrSign for a negative value to an unsigned type, ErrTrunc for
// one that does not fit (also where pmExtractValue wraps around), ErrConv where
// there is no conversion. Fractions are cut off. Str is shared with the result.
func (a AtomValue) Convert(to Type) (AtomValue, error) {
	if a.Type == to {
		return a, nil
	}
	switch a.Type {
	case TypeI32:
		return convertInt(int64(a.I32()), to)
	case TypeI64:
		return convertInt(a.I64(), to)
	case TypeU32:
		return convertInt(int64(a.U32()), to)
	case TypeU64:
		return convertU64(a.Bits, to)
	case TypeFloat:
		return convertFloat(float64(a.Float()), to)
	case TypeDouble:
		return convertFloat(a.Double(), to)
	default:
		return AtomValue{}, ErrConv
	}
}

func convertInt(v int64, to Type) (AtomValue, error) {
	switch to {
	case TypeI32:
		if v != int64(int32(v)) {
			return AtomValue{}, ErrTrunc
		}
		return AtomI32(int32(v)), nil
	case TypeI64:
		return AtomI64(v), nil
	case TypeFloat:
		return AtomFloat(float32(v)), nil
	case TypeDouble:
		return AtomDouble(float64(v)), nil
	default:
	}
	if v < 0 && (to == TypeU32 || to == TypeU64) {
		return AtomValue{}, ErrSign
	}
	return convertU64(uint64(v), to)
}

func convertU64(v uint64, to Type) (AtomValue, error) {
	switch to {
	case TypeI32:
		if v > math.MaxInt32 {
			return AtomValue{}, ErrTrunc
		}
		return AtomI32(int32(v)), nil
	case TypeU32:
		if v > math.MaxUint32 {
			return AtomValue{}, ErrTrunc
		}
		return AtomU32(uint32(v)), nil
	case TypeI64:
		if v > math.MaxInt64 {
			return AtomValue{}, ErrTrunc
		}
		return AtomI64(int64(v)), nil
	case TypeU64:
		return AtomU64(v), nil
	case TypeFloat:
		return AtomFloat(float32(v)), nil
	case TypeDouble:
		return AtomDouble(float64(v)), nil
	default:
		return AtomValue{}, ErrConv
	}
}

func convertFloat(v float64, to Type) (AtomValue, error) {
	// Each test is true only if the value fits, so that a NaN fails it.
	switch {
	case to == TypeFloat:
		return AtomFloat(float32(v)), nil
	case to == TypeDouble:
		return AtomDouble(v), nil
	case v < 0 && (to == TypeU32 || to == TypeU64):
		return AtomValue{}, ErrSign
	case to == TypeI32 && v > -math.MaxInt32 && v < math.MaxInt32:
		return AtomI32(int32(v)), nil
	case to == TypeU32 && v < math.MaxUint32:
		return AtomU32(uint32(v)), nil
	case to == TypeI64 && v >= math.MinInt64 && v < math.MaxInt64:
		return AtomI64(int64(v)), nil
	case to == TypeU64 && v < math.MaxUint64:
		return AtomU64(uint64(v)), nil
	case to == TypeI32 || to == TypeU32 || to == TypeI64 || to == TypeU64:
		return AtomValue{}, ErrTrunc
	}
	return AtomValue{}, ErrConv
}

// ValueFormat says where the values of a value set are (PM_VAL_*).
type ValueFormat int32

// The formats. DPtr and SPtr mean the same on the wire.
const (
	InSitu ValueFormat = 0 // in the word of the value
	DPtr   ValueFormat = 1 // in a value block
	SPtr   ValueFormat = 2 // in a value block; PCP's agents send it for events and static aggregates
)

// ValueBlock is a typed run of bytes (pmValueBlock): numbers are big endian, the
// NUL of a string is part of it.
type ValueBlock struct {
	Type Type // 0..255 on the wire
	Body []byte
}

const (
	blockHeader = 4        // type and length of a value block
	maxBlock    = 0xffffff // header and body, without the padding: the length has 24 bits
)

// Value is one instance's value in a value set (pmValue).
type Value struct {
	Inst  int32
	Word  uint32     // InSitu: the value; otherwise 0
	Block ValueBlock // DPtr, SPtr: the value; otherwise empty
}

// Extract returns the value, which is of type t and in a set of the given
// format, without conversion: ErrConv if it cannot be of that type. A value in
// situ has no type of its own; it may be TypeI32 or TypeU32, and TypeFloat as
// old agents send it; they also leave the type of a block 0, which is taken for
// t. The result's Str is part of the block.
func (v *Value) Extract(format ValueFormat, t Type) (AtomValue, error) {
	if format == InSitu {
		if t != TypeI32 && t != TypeU32 && t != TypeFloat {
			return AtomValue{}, ErrConv
		}
		return AtomValue{Type: t, Bits: uint64(v.Word)}, nil
	}
	body := v.Block.Body
	if v.Block.Type != t && v.Block.Type != TypeI32 { // old agents leave the type 0
		return AtomValue{}, ErrConv
	}
	switch t {
	case TypeFloat:
		if len(body) == 4 {
			return AtomValue{Type: t, Bits: uint64(binary.BigEndian.Uint32(body))}, nil
		}
	case TypeI64, TypeU64, TypeDouble:
		if len(body) == 8 {
			return AtomValue{Type: t, Bits: binary.BigEndian.Uint64(body)}, nil
		}
	case TypeString:
		s, _, _ := bytes.Cut(body, []byte{0})
		return AtomValue{Type: t, Str: s}, nil
	case TypeAggregate, TypeAggregateStatic, TypeEvent, TypeHighResEvent:
		return AtomValue{Type: t, Str: body}, nil
	default:
	}
	return AtomValue{}, ErrConv
}

// Stuff returns a as the value of an instance, and the format that its value set
// must have (__pmStuffValue). Blocks are new memory, but aggregates are kept.
// ErrType for a type that no value can have.
func (a AtomValue) Stuff(inst int32) (Value, ValueFormat, error) {
	v := Value{Inst: inst}
	switch a.Type {
	case TypeI32, TypeU32:
		v.Word = uint32(a.Bits)
		return v, InSitu, nil
	case TypeFloat:
		v.Block = ValueBlock{a.Type, appendU32(nil, uint32(a.Bits))}
	case TypeI64, TypeU64, TypeDouble:
		v.Block = ValueBlock{a.Type, binary.BigEndian.AppendUint64(nil, a.Bits)}
	case TypeString:
		v.Block = ValueBlock{a.Type, append(bytes.Clone(a.Str), 0)}
	case TypeAggregate:
		v.Block = ValueBlock{a.Type, a.Str}
	case TypeAggregateStatic, TypeEvent, TypeHighResEvent:
		v.Block = ValueBlock{a.Type, a.Str}
		return v, SPtr, nil
	default:
		return Value{}, InSitu, ErrType
	}
	return v, DPtr, nil
}
