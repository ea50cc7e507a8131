package pcpwire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

// one is the instance of a singular metric.
var one = []int32{pcpwire.InstNull}

// buildAllTypes builds the golden result-alltypes.
func buildAllTypes(b *pcpwire.ResultBuilder, nvalues int) {
	three := []int32{1, 5, 15}
	b.Begin(0, 8, nvalues)
	b.Set32(i32, one, []uint64{pcpwire.AtomI32(-7).Bits})
	b.Set32(u32, three, []uint64{0x11223344, 5, 15})
	b.Set64(i64, pcpwire.TypeI64, one, []uint64{pcpwire.AtomI64(-2).Bits})
	b.Set64(u64, pcpwire.TypeU64, three, []uint64{0x0102030405060708, 0, 42})
	b.SetFloat(flt, one, []uint64{pcpwire.AtomFloat(1.5).Bits})
	b.Set64(dbl, pcpwire.TypeDouble, one, []uint64{pcpwire.AtomDouble(3.25).Bits})
	b.BeginStrings(str, 1)
	b.AddString(pcpwire.InstNull, []byte("hello"))
	b.Status(noPM, pcpwire.ErrPMID)
}

// TestResultBuilderGolden builds a captured reply with too few, enough and too
// many values announced, into the same buffer.
func TestResultBuilderGolden(t *testing.T) {
	want := golden(t, "result-alltypes")
	var b pcpwire.ResultBuilder
	for _, nvalues := range []int{11, 0, 1, 5, 10, 12, 1000, 11, 0} {
		buildAllTypes(&b, nvalues)
		if n := b.Len(); n != 8 {
			t.Errorf("%d sets", n)
		}
		got, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(hex.EncodeToString(want), hex.EncodeToString(got)); diff != "" {
			t.Errorf("%d values announced (-want +got):\n%s", nvalues, diff)
		}
	}
}

// TestResultBuilderRandom compares replies with those of Result.AppendBinary.
func TestResultBuilderRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in every run
	var b pcpwire.ResultBuilder
	for round := range 3000 {
		want := &pcpwire.Result{Flags: rnd.Uint32()}
		n, values := rnd.IntN(12), 0
		for range n {
			s := randomSet(rnd)
			values += len(s.Values)
			want.Sets = append(want.Sets, s)
		}
		announced := values
		if rnd.IntN(2) == 0 {
			announced = rnd.IntN(2*values + 2)
		}
		b.Begin(0, n, announced)
		for _, s := range want.Sets {
			build(&b, s)
		}
		b.SetFlags(want.Flags)
		got, err := b.Finish()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		encoded, err := pcpwire.AppendPDU(nil, 0, want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encoded, got) {
			t.Fatalf("round %d, %d values of %d announced (-want +got):\n%s", round, announced, values, cmp.Diff(encoded, got))
		}
		var decoded pcpwire.Result
		if err := decoded.Decode(got[pcpwire.HeaderSize:]); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if round%100 != 0 { // this is slow
			continue
		}
		if diff := cmp.Diff(want, &decoded, equateEmpty()); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

// randomSet is a value set of any kind that the builder can make.
func randomSet(rnd *rand.Rand) pcpwire.ValueSet {
	s := pcpwire.ValueSet{PMID: pcpwire.PMID(rnd.Uint32()), NumVal: int32(rnd.IntN(6)) - 1}
	if s.NumVal < 0 {
		s.NumVal = int32(pcpwire.ErrPMID)
	}
	types := [...]pcpwire.Type{
		pcpwire.TypeI32, pcpwire.TypeU32, pcpwire.TypeI64, pcpwire.TypeU64, pcpwire.TypeFloat, pcpwire.TypeDouble, pcpwire.TypeString,
	}
	a := pcpwire.AtomValue{Type: types[rnd.IntN(len(types))]}
	for range s.NumVal {
		a.Bits = rnd.Uint64()
		a.Str = []byte("a string of at most 31 characters")[:rnd.IntN(32)]
		v, format, err := a.Stuff(int32(rnd.Uint32()))
		if err != nil {
			panic(err) // not with these types
		}
		s.Format = format
		s.Values = append(s.Values, v)
	}
	return s
}

// build adds a set to a builder.
func build(b *pcpwire.ResultBuilder, s pcpwire.ValueSet) {
	if s.NumVal <= 0 {
		b.Status(s.PMID, pcpwire.Status(s.NumVal))
		return
	}
	typ := pcpwire.TypeI32
	if s.Format != pcpwire.InSitu {
		typ = s.Values[0].Block.Type
	}
	if typ == pcpwire.TypeString {
		b.BeginStrings(s.PMID, len(s.Values))
		for _, v := range s.Values {
			b.AddString(v.Inst, bytes.TrimSuffix(v.Block.Body, []byte{0}))
		}
		return
	}
	insts := make([]int32, len(s.Values))
	bits := make([]uint64, len(s.Values))
	for i := range s.Values {
		a, err := s.Values[i].Extract(s.Format, typ)
		if err != nil {
			panic(err) // not with what randomSet makes
		}
		insts[i], bits[i] = s.Values[i].Inst, a.Bits|0xdead<<48 // only the low half counts, but for 64 bits
		if typ == pcpwire.TypeI64 || typ == pcpwire.TypeU64 || typ == pcpwire.TypeDouble {
			bits[i] = a.Bits
		}
	}
	switch typ {
	case pcpwire.TypeI32:
		b.Set32(s.PMID, insts, bits)
	case pcpwire.TypeFloat:
		b.SetFloat(s.PMID, insts, bits)
	default:
		b.Set64(s.PMID, typ, insts, bits)
	}
}

func TestResultBuilderEmptySets(t *testing.T) {
	var b pcpwire.ResultBuilder
	b.Begin(pcpwire.NamesChanged, 4, 0)
	b.Set32(1, nil, nil)
	b.Set64(2, pcpwire.TypeU64, nil, nil)
	b.SetFloat(3, nil, nil)
	b.BeginStrings(4, 0)
	got, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	want := words(24+4*8, 0x7001, 0, 0x10, 0, 4, 1, 0, 2, 0, 3, 0, 4, 0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResultBuilderErrors(t *testing.T) {
	two := []int32{1, 2}
	tests := []struct {
		name  string
		build func(b *pcpwire.ResultBuilder)
		err   error
	}{
		{"no Begin", func(b *pcpwire.ResultBuilder) { *b = pcpwire.ResultBuilder{}; b.SetFlags(8) }, pcpwire.ErrCount},
		{"no Begin, a set", func(b *pcpwire.ResultBuilder) { *b = pcpwire.ResultBuilder{}; b.Status(1, 0) }, pcpwire.ErrTooBig},
		{"set missing", func(b *pcpwire.ResultBuilder) { b.Begin(0, 2, 0); b.Status(1, 0) }, pcpwire.ErrCount},
		{"set too many", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 0); b.Status(1, 0); b.Status(1, 0) }, pcpwire.ErrCount},
		{"negative", func(b *pcpwire.ResultBuilder) { b.Begin(0, -1, 0) }, pcpwire.ErrRange},
		{"over any ceiling", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 1<<28) }, pcpwire.ErrTooBig},
		{"over any number, values", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, math.MaxInt) }, pcpwire.ErrTooBig},
		{"over any number, sets", func(b *pcpwire.ResultBuilder) { b.Begin(0, math.MaxInt, 1) }, pcpwire.ErrTooBig},
		{"types missing", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 2, 2)
			types := [...]pcpwire.Type{pcpwire.TypeU32, pcpwire.TypeU32}
			b.Singular([]pcpwire.PMID{1, 2}, types[:1], []uint64{1, 2})
		}, pcpwire.ErrCount},
		{"numbers missing", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 1, 1)
			b.Singular([]pcpwire.PMID{1}, []pcpwire.Type{pcpwire.TypeU32}, nil)
		}, pcpwire.ErrCount},
		{"string in a number", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 1, 1)
			b.Singular([]pcpwire.PMID{1}, []pcpwire.Type{pcpwire.TypeString}, []uint64{1})
		}, pcpwire.ErrRange},
		{"positive status", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 0); b.Status(1, 1) }, pcpwire.ErrRange},
		{"values missing", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 2); b.Set32(1, two, []uint64{1}) }, pcpwire.ErrCount},
		{"float missing", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 2); b.SetFloat(1, two, []uint64{1}) }, pcpwire.ErrCount},
		{"64 bits missing", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 2); b.Set64(1, pcpwire.TypeU64, two, nil) }, pcpwire.ErrCount},
		{"type", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 1); b.Set64(1, pcpwire.TypeFloat, one, []uint64{1}) }, pcpwire.ErrRange},
		{"no BeginStrings", func(b *pcpwire.ResultBuilder) { b.Begin(0, 0, 0); b.AddString(1, nil) }, pcpwire.ErrCount},
		{"negative strings", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 0); b.BeginStrings(1, -1) }, pcpwire.ErrCount},
		{"string missing at the end", func(b *pcpwire.ResultBuilder) { b.Begin(0, 1, 1); b.BeginStrings(1, 1) }, pcpwire.ErrCount},
		{"string missing", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 2, 2)
			b.BeginStrings(1, 2)
			b.AddString(1, nil)
			b.Status(1, 0)
		}, pcpwire.ErrCount},
		{"string too long", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 1, 1)
			b.BeginStrings(1, 1)
			b.AddString(1, make([]byte, 1<<24-5))
		}, pcpwire.ErrTooBig},
		{"over the ceiling, sets", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 1, 0)
			b.SetCeiling(24 + 12 + 16 - 1)
			b.Set32(1, two, []uint64{1, 2})
		}, pcpwire.ErrTooBig},
		{"over the ceiling, string", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 1, 1)
			b.SetCeiling(24 + 12 + 8 + 8 - 1)
			b.BeginStrings(1, 1)
			b.AddString(1, []byte("abc"))
		}, pcpwire.ErrTooBig},
		{"over the ceiling, blocks", func(b *pcpwire.ResultBuilder) {
			b.Begin(0, 1, 2)
			b.SetCeiling(24 + 12 + 16 + 24 - 1)
			b.Set64(1, pcpwire.TypeU64, two, []uint64{1, 2})
		}, pcpwire.ErrTooBig},
	}
	var b pcpwire.ResultBuilder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.build(&b)
			if pdu, err := b.Finish(); !errors.Is(err, tt.err) || pdu != nil {
				t.Errorf("%x, %v, want %v", pdu, err, tt.err)
			}
			buildAllTypes(&b, 11)
			if pdu, err := b.Finish(); err != nil || !bytes.Equal(pdu, golden(t, "result-alltypes")) {
				t.Errorf("the next reply: %x, %v", pdu, err)
			}
		})
	}
}

// TestResultBuilderLimits checks that what is just within the limits is sent.
func TestResultBuilderLimits(t *testing.T) {
	var b pcpwire.ResultBuilder
	b.Begin(0, 1, 1)
	b.BeginStrings(1, 1)
	b.AddString(-1, bytes.Repeat([]byte{'x'}, 1<<24-6))
	pdu, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var r pcpwire.Result
	if err := r.Decode(pdu[pcpwire.HeaderSize:]); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Sets[0].Values[0].Block.Body); n != 1<<24-5 {
		t.Errorf("string of %d bytes with its NUL", n)
	}

	b.Begin(0, 1, 0)
	b.SetCeiling(24 + 12 + 16 + 24)
	b.Set64(1, pcpwire.TypeU64, []int32{1, 2}, []uint64{1, 2})
	if pdu, err := b.Finish(); err != nil || len(pdu) != 24+12+16+24 {
		t.Errorf("%d bytes, %v", len(pdu), err)
	}
}

// TestResultBuilderBuffer checks that the buffer of one huge reply is let go,
// but not that of replies that are huge now and then.
func TestResultBuilderBuffer(t *testing.T) {
	var b pcpwire.ResultBuilder
	reply := func(n int) {
		t.Helper()
		b.Begin(0, 1, n)
		b.Set64(1, pcpwire.TypeU64, make([]int32, n), make([]uint64, n))
		if _, err := b.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		reply(200_000)
		for range 60 {
			reply(1)
		}
	}
	if n := b.BufferSize(); n < 4_000_000 {
		t.Fatalf("let go too early: %d bytes", n)
	}
	for range 10 {
		reply(1)
	}
	if n := b.BufferSize(); n > 1<<20 {
		t.Errorf("buffer of %d bytes", n)
	}
}

func TestResultBuilderAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	var b pcpwire.ResultBuilder
	for _, nvalues := range []int{11, 0, 100} {
		n := testing.AllocsPerRun(200, func() {
			buildAllTypes(&b, nvalues)
			if _, err := b.Finish(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%d values announced: %v allocations", nvalues, n)
		}
	}
}

// TestNamesBuilder compares lists with those of Names.AppendBinary.
func TestNamesBuilder(t *testing.T) {
	tests := []struct {
		name  string
		build func(b *pcpwire.NamesBuilder)
		want  pcpwire.Names
	}{
		{"none", func(b *pcpwire.NamesBuilder) { b.Begin(false) }, pcpwire.Names{}},
		{"none with status", func(b *pcpwire.NamesBuilder) { b.Begin(true) }, pcpwire.Names{Status: []pcpwire.NodeStatus{}}},
		{"names", func(b *pcpwire.NamesBuilder) {
			b.Begin(false)
			b.Add([]byte("mmv."), []byte("gold.a"))
			b.Add(nil, []byte("mmv"))
			b.Add([]byte("mmvx"), nil)
			b.Add(nil, nil)
		}, pcpwire.Names{Names: list("mmv.gold.a", "mmv", "mmvx", "")}},
		{"statuses", func(b *pcpwire.NamesBuilder) {
			b.Begin(true)
			b.AddStatus([]byte("gold"), pcpwire.NonLeaf)
			b.AddStatus([]byte("i32"), pcpwire.Leaf)
		}, pcpwire.Names{Status: []pcpwire.NodeStatus{1, 0}, Names: list("gold", "i32")}},
	}
	var b pcpwire.NamesBuilder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.build(&b)
			if b.Len() != len(tt.want.Names) || b.WithStatus() != (tt.want.Status != nil) {
				t.Errorf("%d names, statuses %v", b.Len(), b.WithStatus())
			}
			got, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			want, err := pcpwire.AppendPDU(nil, 0, &tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for name, build := range map[string]func(){
		"no Begin":                 func() { b = pcpwire.NamesBuilder{} },
		"no Begin, a name":         func() { b = pcpwire.NamesBuilder{}; b.Add(nil, make([]byte, 100)) },
		"status in a list without": func() { b.Begin(false); b.AddStatus([]byte("a"), 0) },
		"none in a list with":      func() { b.Begin(true); b.Add(nil, []byte("a")) },
	} {
		build()
		if pdu, err := b.Finish(); !errors.Is(err, pcpwire.ErrCount) || pdu != nil {
			t.Errorf("%s: %x, %v", name, pdu, err)
		}
	}
}

func TestNamesBuilderBuffer(t *testing.T) {
	var b pcpwire.NamesBuilder
	b.Begin(false)
	b.Add(nil, make([]byte, 4<<20))
	if _, err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	small := func() {
		b.Begin(true)
		b.AddStatus([]byte("a"), pcpwire.Leaf)
		if _, err := b.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	for range 65 {
		small()
	}
	if n := b.BufferSize(); n > 1<<20 {
		t.Errorf("buffer of %d bytes", n)
	}
	if n := testing.AllocsPerRun(100, small); n != 0 && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkResultBuilder(b *testing.B) {
	const n = 10_000
	insts := make([]int32, n)
	bits := make([]uint64, n)
	strings := make([][]byte, n)
	pmids, types := make([]pcpwire.PMID, 1000), make([]pcpwire.Type, 1000)
	for i := range types {
		pmids[i], types[i] = pcpwire.PMID(i), pcpwire.TypeU64
	}
	for i := range insts {
		insts[i], bits[i], strings[i] = int32(i), uint64(i)<<32, []byte("thirty characters of some text")[:i%31]
	}
	for _, bb := range []struct {
		name   string
		values int
		build  func(r *pcpwire.ResultBuilder)
	}{
		{"Set64x10000", n, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1, n)
			r.Set64(1, pcpwire.TypeU64, insts, bits)
		}},
		{"Set64x10000mended", n, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1, n+1)
			r.Set64(1, pcpwire.TypeU64, insts, bits)
		}},
		{"Set32x10000", n, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1, n)
			r.Set32(1, insts, bits)
		}},
		{"SetFloatx10000", n, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1, n)
			r.SetFloat(1, insts, bits)
		}},
		{"Stringsx10000", n, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1, n)
			r.BeginStrings(1, n)
			for i, s := range strings {
				r.AddString(insts[i], s)
			}
		}},
		{"1000xSet64", 1000, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1000, 1000)
			for i := range 1000 {
				r.Set64(pcpwire.PMID(i), pcpwire.TypeU64, one, bits[i:i+1])
			}
		}},
		{"1000xSingular", 1000, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1000, 1000)
			r.Singular(pmids, types, bits[:1000])
		}},
		{"1000xSet32", 1000, func(r *pcpwire.ResultBuilder) {
			r.Begin(0, 1000, 1000)
			for i := range 1000 {
				r.Set32(pcpwire.PMID(i), one, bits[i:i+1])
			}
		}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var r pcpwire.ResultBuilder
			b.ReportAllocs()
			for b.Loop() {
				bb.build(&r)
				if _, err := r.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bb.values), "ns/value")
		})
	}
}
