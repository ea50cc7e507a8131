package pcpwire_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pmdammv/pkg/pcpwire"
)

// TestSingular compares the one call with a call for each metric, over random
// types, also where fewer values come than were reserved.
func TestSingular(t *testing.T) {
	kinds := []pcpwire.Type{
		pcpwire.TypeI32, pcpwire.TypeU32, pcpwire.TypeI64, pcpwire.TypeU64,
		pcpwire.TypeFloat, pcpwire.TypeDouble, pcpwire.TypeNoSupport,
	}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test chooses it
	var one, each pcpwire.ResultBuilder
	for range 500 {
		n := r.IntN(40)
		pmids, types, bits := make([]pcpwire.PMID, n), make([]pcpwire.Type, n), make([]uint64, n)
		for i := range n {
			pmids[i], types[i], bits[i] = pcpwire.PMID(r.Uint32()), kinds[r.IntN(len(kinds))], r.Uint64()
		}
		reserve := r.IntN(2 * (n + 1))
		one.Begin(0, n+1, reserve)
		each.Begin(0, n+1, reserve)
		one.Singular(pmids, types, bits)
		for i, p := range pmids {
			inst, b := []int32{pcpwire.InstNull}, bits[i:i+1]
			switch types[i] {
			case pcpwire.TypeI32, pcpwire.TypeU32:
				each.Set32(p, inst, b)
			case pcpwire.TypeFloat:
				each.SetFloat(p, inst, b)
			case pcpwire.TypeNoSupport:
				each.Status(p, 0)
			default:
				each.Set64(p, types[i], inst, b)
			}
		}
		for _, b := range []*pcpwire.ResultBuilder{&one, &each} { // what follows must find its place
			b.BeginStrings(7, 1)
			b.AddString(pcpwire.InstNull, []byte("end"))
		}
		got, err := one.Finish()
		if err != nil {
			t.Fatal(err)
		}
		want, err := each.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("types %v: got\n%x, want\n%x", types, got, want)
		}
	}
}
