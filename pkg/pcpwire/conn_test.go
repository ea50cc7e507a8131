package pcpwire_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/iotest"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

// encode returns the PDUs one after the other.
func encode(tb testing.TB, pdus ...pcpwire.PDU) []byte {
	tb.Helper()
	var b []byte
	for _, p := range pdus {
		var err error
		if b, err = pcpwire.AppendPDU(b, 7, p); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

// TestReadPDU reads one PDU of each kind from one stream, in pieces of all sizes.
func TestReadPDU(t *testing.T) {
	want := make([]pcpwire.PDU, 0, len(goldens)+2)
	for _, g := range goldens {
		want = append(want, g.pdu)
	}
	want = append(want,
		&pcpwire.Unknown{Type: pcpwire.PDUControlReq, Body: []byte("abc")},
		&pcpwire.Unknown{Type: 0x7042, Body: []byte{}})
	stream := encode(t, want...)
	for name, r := range map[string]io.Reader{
		"at once":                   bytes.NewReader(stream),
		"single bytes":              iotest.OneByteReader(bytes.NewReader(stream)),
		"halves":                    iotest.HalfReader(bytes.NewReader(stream)),
		"error with the last bytes": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			c := pcpwire.NewConn(r, nil)
			for _, w := range want {
				h, got, err := c.ReadPDU()
				if err != nil {
					t.Fatal(err)
				}
				if h.From != 7 || h.Type != w.PDUType() {
					t.Errorf("header %+v", h)
				}
				if diff := cmp.Diff(w, got, equateEmpty()); diff != "" {
					t.Fatalf("-want +got:\n%s", diff)
				}
			}
			for range 2 {
				if _, _, err := c.ReadPDU(); err != io.EOF { //nolint:errorlint // it is io.EOF itself
					t.Errorf("at the end: %v", err)
				}
			}
		})
	}
}

// TestReadPDUStream reads a long stream that comes in pieces of random sizes, so
// that PDUs lie across the end of the buffer, and some are larger than it.
func TestReadPDUStream(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same in every run
	const pdus = 2000
	stream := make([]byte, 0, 1<<21)
	sizes := make([]int, 0, pdus)
	for range pdus {
		n := 1 + rnd.IntN(300)
		if rnd.IntN(50) == 0 {
			n = 1 + rnd.IntN(10_000)
		}
		f := &pcpwire.Fetch{PMIDs: make([]pcpwire.PMID, n)}
		for i := range f.PMIDs {
			f.PMIDs[i] = pcpwire.PMID(len(sizes)<<16 | i)
		}
		sizes = append(sizes, n)
		stream = append(stream, encode(t, f)...)
	}
	c := pcpwire.NewConn(&raggedReader{bytes.NewReader(stream), rnd}, nil)
	for i, n := range sizes {
		_, p, err := c.ReadPDU()
		if err != nil {
			t.Fatal(err)
		}
		got := p.(*pcpwire.Fetch).PMIDs
		if len(got) != n || got[0] != pcpwire.PMID(i<<16) || got[n-1] != pcpwire.PMID(i<<16|n-1) {
			t.Fatalf("PDU %d: %d pmids from %v to %v", i, len(got), got[0], got[len(got)-1])
		}
	}
	if _, _, err := c.ReadPDU(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if n := c.ReadBufferSize(); n > 1<<17 {
		t.Errorf("buffer of %d bytes", n)
	}
}

// raggedReader reads less than it could.
type raggedReader struct {
	io.Reader
	rnd *rand.Rand
}

func (r *raggedReader) Read(b []byte) (int, error) {
	if len(b) > 1 && r.rnd.IntN(3) == 0 {
		b = b[:1+r.rnd.IntN(len(b)-1)]
	}
	return r.Reader.Read(b)
}

func TestReadPDUFatal(t *testing.T) {
	fetch := encode(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{1, 2}})
	tests := []struct {
		name   string
		stream []byte
		also   error
	}{
		{"header cut off", fetch[:11], io.ErrUnexpectedEOF},
		{"one byte", fetch[:1], io.ErrUnexpectedEOF},
		{"no body", fetch[:12], io.ErrUnexpectedEOF},
		{"body cut off", fetch[:len(fetch)-1], io.ErrUnexpectedEOF},
		{"length 11", words(11, 0x7003, 0, 0), nil},
		{"length 0", words(0, 0x7003, 0, 0), nil},
		{"negative length", words(-1, 0x7003, 0, 0), nil},
		{"negative type", words(12, -1, 0), nil},
		{"over the ceiling", words(12+101, 0x7003, 0), pcpwire.ErrTooBig},
		{"largest length", words(0x7fffffff, 0x7003, 0), pcpwire.ErrTooBig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stream := append(bytes.Clone(fetch), tt.stream...)
			c := pcpwire.NewConn(bytes.NewReader(stream), nil, pcpwire.WithMaxBody(100))
			if _, _, err := c.ReadPDU(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, p, err := c.ReadPDU()
				if p != nil || !errors.Is(err, pcpwire.ErrIPC) || tt.also != nil && !errors.Is(err, tt.also) {
					t.Errorf("%v, %v", p, err)
				}
				if _, ok := errors.AsType[*pcpwire.DecodeError](err); ok {
					t.Errorf("a fatal error that is a DecodeError: %v", err)
				}
			}
		})
	}
}

// TestReadPDUMalformed checks that the PDU after a malformed one is read, and that
// the malformed one leaves nothing behind.
func TestReadPDUMalformed(t *testing.T) {
	good := &pcpwire.Fetch{PMIDs: []pcpwire.PMID{1, 2}}
	bad := encode(t, good)
	bad[27] = 3 // numpmid
	c := pcpwire.NewConn(bytes.NewReader(append(bad, encode(t, good)...)), nil)
	h, p, err := c.ReadPDU()
	var de *pcpwire.DecodeError
	if !errors.As(err, &de) || p != nil || h.Type != pcpwire.PDUFetch || h.From != 7 {
		t.Errorf("%+v, %v, %v", h, p, err)
	}
	if errors.Is(err, pcpwire.ErrIPC) {
		t.Errorf("%v is fatal", err)
	}
	if _, p, err := c.ReadPDU(); err != nil || !cmp.Equal(p, pcpwire.PDU(good)) {
		t.Errorf("%v, %v", p, err)
	}
}

// TestReadPDUTemporary checks that an error of the reader in the middle of a PDU
// loses nothing.
func TestReadPDUTemporary(t *testing.T) {
	want := &pcpwire.Fetch{PMIDs: []pcpwire.PMID{1, 2}}
	b := encode(t, want)
	for _, cut := range []int{0, 5, 12, 20} {
		broken := io.MultiReader(bytes.NewReader(b[:cut]), iotest.ErrReader(os.ErrDeadlineExceeded))
		r := &switchReader{broken}
		c := pcpwire.NewConn(r, nil)
		if _, _, err := c.ReadPDU(); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, pcpwire.ErrIPC) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if n := c.Buffered(); n != cut {
			t.Errorf("cut at %d: %d buffered", cut, n)
		}
		r.Reader = bytes.NewReader(b[cut:])
		if _, p, err := c.ReadPDU(); err != nil || !cmp.Equal(p, pcpwire.PDU(want)) {
			t.Errorf("cut at %d: %v, %v", cut, p, err)
		}
	}
	c := pcpwire.NewConn(&switchReader{stuckReader{}}, nil)
	if _, _, err := c.ReadPDU(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that gives nothing: %v", err)
	}
}

// switchReader is a reader that can be exchanged.
type switchReader struct{ io.Reader }

// stuckReader gives neither bytes nor an error.
type stuckReader struct{}

func (stuckReader) Read([]byte) (int, error) { return 0, nil }

// TestReadPDUBelieves checks that a length takes memory only as the bytes come.
func TestReadPDUBelieves(t *testing.T) {
	c := pcpwire.NewConn(bytes.NewReader(words(60<<20, 0x7003, 0)), nil)
	if _, _, err := c.ReadPDU(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if n := c.ReadBufferSize(); n > 1<<20 {
		t.Errorf("buffer of %d bytes for 12", n)
	}

	big := encode(t, &pcpwire.Fetch{PMIDs: make([]pcpwire.PMID, 1<<20)})
	c = pcpwire.NewConn(iotest.HalfReader(bytes.NewReader(big)), nil)
	_, p, err := c.ReadPDU()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.(*pcpwire.Fetch).PMIDs); n != 1<<20 {
		t.Errorf("%d pmids", n)
	}
}

// TestReadBufferLetGo checks that the memory of one huge PDU is let go, but not
// that of PDUs that are huge now and then.
func TestReadBufferLetGo(t *testing.T) {
	huge := encode(t, &pcpwire.Fetch{PMIDs: make([]pcpwire.PMID, 1<<19)})
	small := encode(t, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{1}})
	r := &switchReader{bytes.NewReader(huge)}
	c := pcpwire.NewConn(r, nil)
	read := func(stream []byte) pcpwire.PDU {
		t.Helper()
		r.Reader = bytes.NewReader(stream)
		_, p, err := c.ReadPDU()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for range 3 {
		read(huge)
		for range 60 {
			read(small)
		}
	}
	if n := c.ReadBufferSize(); n < 2<<20 {
		t.Fatalf("let go too early: %d bytes", n)
	}
	var p pcpwire.PDU
	for range 10 {
		p = read(small)
	}
	if n := c.ReadBufferSize(); n > 1<<20 {
		t.Errorf("buffer of %d bytes", n)
	}
	if n := cap(p.(*pcpwire.Fetch).PMIDs); n > 1<<10 {
		t.Errorf("PDU with memory for %d pmids", n)
	}
}

func TestWritePDU(t *testing.T) {
	w := &countWriter{}
	c := pcpwire.NewConn(nil, w)
	want := make([]byte, 0, 4096)
	for i, g := range goldens {
		want = append(want, golden(t, g.name)...)
		if err := c.WritePDU(g.from, g.pdu); err != nil {
			t.Fatal(err)
		}
		if w.writes != i+1 {
			t.Fatalf("%d writes for PDU %d", w.writes, i+1)
		}
	}
	if diff := cmp.Diff(want, w.Bytes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := c.WritePDU(0, &pcpwire.Fetch{}); !errors.Is(err, pcpwire.ErrRange) || w.writes != len(goldens) {
		t.Errorf("%v after %d writes", err, w.writes)
	}
	if err := c.WriteBytes(golden(t, "error-0")); err != nil || w.writes != len(goldens)+1 {
		t.Errorf("%v after %d writes", err, w.writes)
	}

	if err := pcpwire.NewConn(nil, shortWriter{}).WritePDU(0, &pcpwire.ErrorPDU{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("short write: %v", err)
	}
	r, pw := io.Pipe()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pcpwire.NewConn(nil, pw).WritePDU(0, &pcpwire.ErrorPDU{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("closed: %v", err)
	}
}

func TestWriteBufferLetGo(t *testing.T) {
	c := pcpwire.NewConn(nil, io.Discard)
	write := func(p pcpwire.PDU) {
		t.Helper()
		if err := c.WritePDU(0, p); err != nil {
			t.Fatal(err)
		}
	}
	write(&pcpwire.Text{Text: make([]byte, 4<<20)})
	write(&pcpwire.ErrorPDU{})
	if n := c.WriteBufferSize(); n < 4<<20 {
		t.Fatalf("let go too early: %d bytes", n)
	}
	for range 65 {
		write(&pcpwire.ErrorPDU{})
	}
	if n := c.WriteBufferSize(); n > 1<<20 {
		t.Errorf("buffer of %d bytes", n)
	}
}

type countWriter struct {
	bytes.Buffer
	writes int
}

func (w *countWriter) Write(b []byte) (int, error) {
	w.writes++
	return w.Buffer.Write(b)
}

// shortWriter writes one byte less and does not say so.
type shortWriter struct{}

func (shortWriter) Write(b []byte) (int, error) { return len(b) - 1, nil }

// loopReader gives the same bytes again and again, one PDU per Read.
type loopReader struct{ pdu []byte }

func (r loopReader) Read(b []byte) (int, error) { return copy(b, r.pdu), nil }

// TestReadPDUAllocs checks that no request takes memory once the first has come.
func TestReadPDUAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, name := range []string{
		"fetch-8", "profile-all-minus", "desc-req", "instance-req-all", "instance-req-name", "pmns-names-req",
		"pmns-ids-req", "pmns-child-req", "pmns-traverse-req", "label-req-item", "text-req", "attr-processid", "end-context-1",
	} {
		t.Run(name, func(t *testing.T) {
			c := pcpwire.NewConn(loopReader{golden(t, name)}, nil)
			n := testing.AllocsPerRun(200, func() {
				if _, _, err := c.ReadPDU(); err != nil {
					t.Fatal(err)
				}
			})
			if n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

func TestWritePDUAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := pcpwire.NewConn(nil, io.Discard)
	for _, g := range goldens {
		n := testing.AllocsPerRun(100, func() {
			if err := c.WritePDU(0, g.pdu); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", g.name, n)
		}
	}
}

func BenchmarkReadPDU(b *testing.B) {
	pmids := make([]pcpwire.PMID, 1000)
	for _, bb := range []struct {
		name string
		pdu  pcpwire.PDU
	}{
		{"Fetch1", &pcpwire.Fetch{PMIDs: pmids[:1]}},
		{"Fetch1000", &pcpwire.Fetch{PMIDs: pmids}},
		{"DescReq", &pcpwire.DescReq{}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := pcpwire.NewConn(loopReader{encode(b, bb.pdu)}, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.ReadPDU(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
