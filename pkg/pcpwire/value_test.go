package pcpwire_test

import (
	"errors"
	"math"
	"testing"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

// TestConvert has the rules of pmExtractValue.
func TestConvert(t *testing.T) {
	var (
		i32 = pcpwire.AtomI32
		u32 = pcpwire.AtomU32
		i64 = pcpwire.AtomI64
		u64 = pcpwire.AtomU64
		flt = pcpwire.AtomFloat
		dbl = pcpwire.AtomDouble
		str = func(s string) pcpwire.AtomValue { return pcpwire.AtomString([]byte(s)) }
	)
	tests := []struct {
		name string
		from pcpwire.AtomValue
		want pcpwire.AtomValue // its type is converted to
		err  error
	}{
		{"same", i32(-7), i32(-7), nil},
		{"32 to 64", i32(-7), i64(-7), nil},
		{"32 to U32", i32(7), u32(7), nil},
		{"32 to U32, negative", i32(-7), u32(0), pcpwire.ErrSign},
		{"32 to U64, negative", i32(-7), u64(0), pcpwire.ErrSign},
		{"32 to FLOAT", i32(-7), flt(-7), nil},
		{"32 to DOUBLE", i32(-7), dbl(-7), nil},
		{"32 to STRING", i32(7), str(""), pcpwire.ErrConv},
		{"U32 to 32", u32(7), i32(7), nil},
		{"U32 to 32, too large", u32(1 << 31), i32(0), pcpwire.ErrTrunc},
		{"U32 to 64", u32(math.MaxUint32), i64(math.MaxUint32), nil},
		{"64 to 32", i64(math.MinInt32), i32(math.MinInt32), nil},
		{"64 to 32, too large", i64(math.MaxInt32 + 1), i32(0), pcpwire.ErrTrunc},
		{"64 to 32, too small", i64(math.MinInt32 - 1), i32(0), pcpwire.ErrTrunc},
		{"64 to U32, too large", i64(math.MaxUint32 + 1), u32(0), pcpwire.ErrTrunc},
		{"U64 to 32, too large", u64(math.MaxInt32 + 1), i32(0), pcpwire.ErrTrunc},
		{"U64 to 64, too large", u64(math.MaxInt64 + 1), i64(0), pcpwire.ErrTrunc},
		{"U64 to 64", u64(math.MaxInt64), i64(math.MaxInt64), nil},
		{"U64 to FLOAT", u64(1 << 63), flt(1 << 63), nil},
		{"U64 to DOUBLE", u64(1 << 63), dbl(1 << 63), nil},
		{"FLOAT to 32", flt(-7.9), i32(-7), nil},
		{"FLOAT to DOUBLE", flt(1.5), dbl(1.5), nil},
		{"DOUBLE to FLOAT", dbl(1.5), flt(1.5), nil},
		{"DOUBLE to 32", dbl(7.9), i32(7), nil},
		{"DOUBLE to 32, at the limit", dbl(math.MaxInt32), i32(0), pcpwire.ErrTrunc},
		{"DOUBLE to 32, at the lower limit", dbl(math.MinInt32), i32(0), pcpwire.ErrTrunc},
		{"DOUBLE to U32, negative", dbl(-0.5), u32(0), pcpwire.ErrSign},
		{"DOUBLE to U32", dbl(math.MaxUint32 - 1), u32(math.MaxUint32 - 1), nil},
		{"DOUBLE to 64", dbl(-1 << 40), i64(-1 << 40), nil},
		{"DOUBLE to 64, too large", dbl(1 << 63), i64(0), pcpwire.ErrTrunc},
		{"DOUBLE to 64, too small", dbl(-1e30), i64(0), pcpwire.ErrTrunc},
		{"DOUBLE to U64", dbl(1 << 63), u64(1 << 63), nil},
		{"DOUBLE to U64, too large", dbl(1 << 64), u64(0), pcpwire.ErrTrunc},
		{"DOUBLE to 32, no number", dbl(math.NaN()), i32(0), pcpwire.ErrTrunc},
		{"DOUBLE to STRING", dbl(1), str(""), pcpwire.ErrConv},
		{"STRING to STRING", str("x"), str("x"), nil},
		{"STRING to 32", str("7"), i32(0), pcpwire.ErrConv},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.from.Convert(tt.want.Type)
			if tt.err != nil {
				if !errors.Is(err, tt.err) {
					t.Errorf("%v, want %v", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAtomAccessors(t *testing.T) {
	if a := pcpwire.AtomI32(-7); a.I32() != -7 || a.Bits != 0xfffffff9 {
		t.Errorf("%+v", a)
	}
	if a := pcpwire.AtomU32(math.MaxUint32); a.U32() != math.MaxUint32 {
		t.Errorf("%+v", a)
	}
	if a := pcpwire.AtomI64(-7); a.I64() != -7 {
		t.Errorf("%+v", a)
	}
	if a := pcpwire.AtomU64(1 << 63); a.U64() != 1<<63 {
		t.Errorf("%+v", a)
	}
	if a := pcpwire.AtomFloat(1.5); a.Float() != 1.5 || a.Bits != 0x3fc00000 {
		t.Errorf("%+v", a)
	}
	if a := pcpwire.AtomDouble(3.25); a.Double() != 3.25 || a.Bits != 0x400a000000000000 {
		t.Errorf("%+v", a)
	}
}

// TestStuffExtract puts values into value sets and takes them out again.
func TestStuffExtract(t *testing.T) {
	aggregate := func(t pcpwire.Type) pcpwire.AtomValue { return pcpwire.AtomValue{Type: t, Str: []byte("\x00raw")} }
	tests := []struct {
		atom   pcpwire.AtomValue
		format pcpwire.ValueFormat
	}{
		{pcpwire.AtomI32(-7), pcpwire.InSitu},
		{pcpwire.AtomU32(7), pcpwire.InSitu},
		{pcpwire.AtomI64(-7), pcpwire.DPtr},
		{pcpwire.AtomU64(7), pcpwire.DPtr},
		{pcpwire.AtomFloat(1.5), pcpwire.DPtr},
		{pcpwire.AtomDouble(1.5), pcpwire.DPtr},
		{pcpwire.AtomString([]byte("text")), pcpwire.DPtr},
		{aggregate(pcpwire.TypeAggregate), pcpwire.DPtr},
		{aggregate(pcpwire.TypeAggregateStatic), pcpwire.SPtr},
		{aggregate(pcpwire.TypeEvent), pcpwire.SPtr},
		{aggregate(pcpwire.TypeHighResEvent), pcpwire.SPtr},
	}
	for _, tt := range tests {
		t.Run(tt.atom.Type.String(), func(t *testing.T) {
			v, format, err := tt.atom.Stuff(3)
			if err != nil || format != tt.format || v.Inst != 3 {
				t.Fatalf("format %d, inst %d, %v", format, v.Inst, err)
			}
			got, err := v.Extract(format, tt.atom.Type)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.atom, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// A value of another kind it is not.
			other := pcpwire.TypeString
			if tt.atom.Type == other {
				other = pcpwire.TypeU64
			}
			if _, err := v.Extract(format, other); !errors.Is(err, pcpwire.ErrConv) {
				t.Errorf("as %v: %v", other, err)
			}
		})
	}
	for _, typ := range []pcpwire.Type{pcpwire.TypeNoSupport, pcpwire.TypeUnknown} {
		if _, _, err := (pcpwire.AtomValue{Type: typ}).Stuff(0); !errors.Is(err, pcpwire.ErrType) {
			t.Errorf("%v: %v", typ, err)
		}
	}
}

func TestExtractOldForms(t *testing.T) {
	float := pcpwire.Value{Word: 0x3fc00000}
	if a, err := float.Extract(pcpwire.InSitu, pcpwire.TypeFloat); err != nil || a.Float() != 1.5 {
		t.Errorf("float in situ: %v, %v", a, err)
	}
	untyped := pcpwire.Value{Block: pcpwire.ValueBlock{Body: []byte("a\x00b")}}
	if a, err := untyped.Extract(pcpwire.DPtr, pcpwire.TypeString); err != nil || string(a.Str) != "a" {
		t.Errorf("block without a type: %q, %v", a.Str, err)
	}
	short := pcpwire.Value{Block: pcpwire.ValueBlock{Type: pcpwire.TypeU64, Body: make([]byte, 7)}}
	if _, err := short.Extract(pcpwire.DPtr, pcpwire.TypeU64); !errors.Is(err, pcpwire.ErrConv) {
		t.Errorf("block of 7 bytes: %v", err)
	}
}
