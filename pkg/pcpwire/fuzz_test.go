package pcpwire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

// newPDU returns an empty PDU of a type.
func newPDU(t pcpwire.PDUType) pcpwire.PDU {
	for _, g := range goldens {
		if g.pdu.PDUType() == t {
			return reflect.New(reflect.TypeOf(g.pdu).Elem()).Interface().(pcpwire.PDU)
		}
	}
	return &pcpwire.Unknown{Type: t}
}

// walk looks at everything in v and checks that no slice can grow into its neighbour.
func walk(tb testing.TB, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		walk(tb, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(tb, v.Field(i))
			}
		}
	case reflect.Slice:
		if k := v.Type().Elem().Kind(); (k == reflect.Uint8 || k == reflect.Int32) && v.Cap() != v.Len() {
			tb.Errorf("%v of %d with capacity for %d", v.Type(), v.Len(), v.Cap())
		}
		for i := range v.Len() {
			walk(tb, v.Index(i))
		}
	default:
		_, _ = fmt.Fprint(io.Discard, v)
	}
}

// fuzzPDU fuzzes the decoder of one type of PDU: it must give a located error or
// a PDU, which encodes to a body that decodes to the same PDU and encodes to the
// same body again, whatever its receiver held before.
func fuzzPDU(f *testing.F, t pcpwire.PDUType) {
	used := newPDU(t)
	seed := func(pdu []byte) []byte {
		if pcpwire.PDUType(binary.BigEndian.Uint32(pdu[4:])) != t {
			return nil
		}
		body := pdu[pcpwire.HeaderSize:]
		f.Add(body)
		if err := used.Decode(bytes.Clone(body)); err != nil {
			f.Fatal(err)
		}
		return body
	}
	conversations(f, func(_ string, pdu []byte) { seed(pdu) })
	for _, g := range goldens {
		body := seed(golden(f, g.name))
		if body == nil {
			continue
		}
		f.Add(body[:len(body)-1])
		f.Add(append(bytes.Clone(body), 0))
		// The nasty lengths, in each word.
		for off := 0; off+4 <= len(body); off += 4 {
			for _, n := range []uint32{0, 0xffffffff, 0x7fffffff, 0x80000000, 0x40000000, 0x10000000, uint32(len(body))} {
				b := bytes.Clone(body)
				binary.BigEndian.PutUint32(b[off:], n)
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(tt *testing.T, body []byte) {
		keep := bytes.Clone(body)
		p := newPDU(t)
		err := p.Decode(body)
		if !bytes.Equal(body, keep) {
			tt.Fatal("Decode changed its input")
		}
		if err2 := used.Decode(body); (err == nil) != (err2 == nil) {
			tt.Fatalf("%v, but %v into a used PDU", err, err2)
		}
		if err != nil {
			checkDecodeError(tt, err, t, len(body))
			return
		}
		walk(tt, reflect.ValueOf(p))
		first, err := p.AppendBinary(nil)
		if err != nil {
			tt.Fatalf("cannot be encoded: %v", err)
		}
		if again, err := used.AppendBinary(nil); err != nil || !bytes.Equal(first, again) {
			tt.Fatalf("decoded into a used PDU: %v (-fresh +used):\n%s", err, cmp.Diff(p, used))
		}
		q := newPDU(t)
		if err := q.Decode(first); err != nil {
			tt.Fatalf("cannot be decoded again: %v", err)
		}
		if !reflect.DeepEqual(p, q) {
			tt.Fatalf("decoded again (-first +second):\n%s", cmp.Diff(p, q))
		}
		second, err := q.AppendBinary(nil)
		if err != nil || !bytes.Equal(first, second) {
			tt.Fatalf("encoded again: %v\n%x\n%x", err, first, second)
		}
	})
}

// equateEmpty makes cmp take nil and empty slices for the same.
func equateEmpty() cmp.Option {
	return cmp.FilterValues(func(x, y any) bool {
		v, w := reflect.ValueOf(x), reflect.ValueOf(y)
		return v.IsValid() && w.IsValid() && v.Kind() == reflect.Slice && w.Kind() == reflect.Slice && v.Len() == 0 && w.Len() == 0
	}, cmp.Comparer(func(_, _ any) bool { return true }))
}

// checkDecodeError checks that err is a DecodeError and names a place in the PDU.
func checkDecodeError(tb testing.TB, err error, t pcpwire.PDUType, bodyLen int) {
	tb.Helper()
	var de *pcpwire.DecodeError
	switch {
	case !errors.As(err, &de):
		tb.Fatalf("not a DecodeError: %v", err)
	case de.PDU != t, de.Field == "", de.Err == nil, de.Off < pcpwire.HeaderSize, de.Off > pcpwire.HeaderSize+bodyLen:
		tb.Fatalf("%+v for a body of %d bytes", de, bodyLen)
	}
}

func FuzzCreds(f *testing.F)       { fuzzPDU(f, pcpwire.PDUCreds) }
func FuzzErrorPDU(f *testing.F)    { fuzzPDU(f, pcpwire.PDUError) }
func FuzzProfile(f *testing.F)     { fuzzPDU(f, pcpwire.PDUProfile) }
func FuzzFetch(f *testing.F)       { fuzzPDU(f, pcpwire.PDUFetch) }
func FuzzResult(f *testing.F)      { fuzzPDU(f, pcpwire.PDUResult) }
func FuzzDescReq(f *testing.F)     { fuzzPDU(f, pcpwire.PDUDescReq) }
func FuzzDesc(f *testing.F)        { fuzzPDU(f, pcpwire.PDUDesc) }
func FuzzInstanceReq(f *testing.F) { fuzzPDU(f, pcpwire.PDUInstanceReq) }
func FuzzInstance(f *testing.F)    { fuzzPDU(f, pcpwire.PDUInstance) }
func FuzzTextReq(f *testing.F)     { fuzzPDU(f, pcpwire.PDUTextReq) }
func FuzzText(f *testing.F)        { fuzzPDU(f, pcpwire.PDUText) }
func FuzzIDs(f *testing.F)         { fuzzPDU(f, pcpwire.PDUPMNSIDs) }
func FuzzNames(f *testing.F)       { fuzzPDU(f, pcpwire.PDUPMNSNames) }
func FuzzChild(f *testing.F)       { fuzzPDU(f, pcpwire.PDUPMNSChild) }
func FuzzTraverse(f *testing.F)    { fuzzPDU(f, pcpwire.PDUPMNSTraverse) }
func FuzzAttr(f *testing.F)        { fuzzPDU(f, pcpwire.PDUAttr) }
func FuzzLabelReq(f *testing.F)    { fuzzPDU(f, pcpwire.PDULabelReq) }
func FuzzLabelPDU(f *testing.F)    { fuzzPDU(f, pcpwire.PDULabel) }

// FuzzConn reads PDUs from a stream of bytes until it ends or fails, at once and
// in single bytes: both must give the same, and the PDUs must add up to the stream.
func FuzzConn(f *testing.F) {
	var all []byte
	conversations(f, func(_ string, pdu []byte) {
		if len(all) < 4<<10 {
			all = append(all, pdu...)
		}
	})
	f.Add(all)
	f.Add(all[:len(all)-3])
	for _, g := range goldens {
		f.Add(golden(f, g.name))
	}
	for _, n := range []int{0, 11, 12, 13, 1 << 20, 0x7fffffff, -1, -0x80000000} {
		f.Add(words(n, 0x7003, 0, 0))
		f.Add(append(words(16, 0x7000, 0, -12391), words(n, -1, 0, 0)...))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const most = 1 << 16
		a := readAll(t, bytes.NewReader(stream), pcpwire.WithMaxBody(most))
		b := readAll(t, iotest.OneByteReader(bytes.NewReader(stream)), pcpwire.WithMaxBody(most))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("at once and byte by byte differ:\n%s", diff)
		}
		if n := a.bytes; n > len(stream) || a.end == io.EOF.Error() && n != len(stream) {
			t.Errorf("PDUs of %d bytes out of %d, then %s", n, len(stream), a.end)
		}
	})
}

// transcript is what came out of a connection.
type transcript struct {
	PDUs  []string
	bytes int
	end   string
}

func (a transcript) Equal(b transcript) bool { return reflect.DeepEqual(a, b) }

func readAll(tb testing.TB, r io.Reader, opts ...pcpwire.ConnOption) transcript {
	tb.Helper()
	c := pcpwire.NewConn(r, nil, opts...)
	var tr transcript
	for {
		h, p, err := c.ReadPDU()
		var de *pcpwire.DecodeError
		switch {
		case errors.As(err, &de):
			checkDecodeError(tb, err, h.Type, int(h.Len)-pcpwire.HeaderSize)
			tr.PDUs = append(tr.PDUs, fmt.Sprintf("%+v %v", h, err))
		case err != nil:
			if !errors.Is(err, io.EOF) && !errors.Is(err, pcpwire.ErrIPC) {
				tb.Fatalf("neither the end nor fatal: %v", err)
			}
			tr.end = err.Error()
			return tr
		default:
			walk(tb, reflect.ValueOf(p))
			tr.PDUs = append(tr.PDUs, fmt.Sprintf("%+v %+v", h, p))
		}
		tr.bytes += int(h.Len)
	}
}
