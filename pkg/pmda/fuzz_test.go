package pmda_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// replies are the PDUs that answer a request, but for ERROR.
var replies = map[pcpwire.PDUType]pcpwire.PDUType{
	pcpwire.PDUFetch:        pcpwire.PDUResult,
	pcpwire.PDUResult:       pcpwire.PDUError,
	pcpwire.PDUDescReq:      pcpwire.PDUDesc,
	pcpwire.PDUInstanceReq:  pcpwire.PDUInstance,
	pcpwire.PDUTextReq:      pcpwire.PDUText,
	pcpwire.PDUPMNSNames:    pcpwire.PDUPMNSIDs,
	pcpwire.PDUPMNSIDs:      pcpwire.PDUPMNSNames,
	pcpwire.PDUPMNSChild:    pcpwire.PDUPMNSNames,
	pcpwire.PDUPMNSTraverse: pcpwire.PDUPMNSNames,
	pcpwire.PDULabelReq:     pcpwire.PDULabel,
}

// requests returns the types of the PDUs of a stream that want a reply, and
// whether it ends with a whole PDU.
func requestsIn(stream []byte) (types []pcpwire.PDUType, whole bool) {
	for len(stream) >= pcpwire.HeaderSize {
		n := int32(binary.BigEndian.Uint32(stream))
		typ := pcpwire.PDUType(binary.BigEndian.Uint32(stream[4:]))
		if n < pcpwire.HeaderSize || int(n) > len(stream) || int32(typ) < 0 {
			return types, false
		}
		if _, ok := replies[typ]; ok {
			types = append(types, typ)
		}
		stream = stream[n:]
	}
	return types, len(stream) == 0
}

func streams(t testing.TB) [][]byte {
	t.Helper()
	f, err := os.Open("testdata/labels.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var captured []byte
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "> "); ok {
			pdu, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			captured = append(captured, pdu...)
		}
	}
	all := [][]byte{captured, captured[:len(captured)-3]}
	var together []byte
	for _, pdu := range []pcpwire.PDU{
		&pcpwire.Fetch{PMIDs: []pcpwire.PMID{load, faults, version, pmid(3, 3)}},
		&pcpwire.Fetch{PMIDs: []pcpwire.PMID{broken}},
		&pcpwire.Fetch{PMIDs: []pcpwire.PMID{level, short}},
		&pcpwire.Profile{InDoms: []pcpwire.ProfileInDom{{InDom: minutes, State: pcpwire.ProfileExclude, Insts: []int32{5}}}},
		&pcpwire.DescReq{PMID: heat},
		&pcpwire.InstanceReq{InDom: minutes, Inst: -1},
		&pcpwire.InstanceReq{InDom: minutes, Inst: 5},
		&pcpwire.InstanceReq{InDom: fruit, Inst: -1, Name: []byte("red")},
		&pcpwire.TextReq{Ident: uint32(load), Kind: pcpwire.TextHelp | pcpwire.TextPMID},
		names("sample.load"),
		&pcpwire.IDs{IDs: []pcpwire.PMID{version}},
		&pcpwire.Child{Name: []byte("sample"), WantStatus: true},
		&pcpwire.Traverse{Name: []byte("sample.count")},
		&pcpwire.LabelReq{Ident: uint32(minutes), Level: pcpwire.LabelInstances},
		&pcpwire.LabelReq{Ident: uint32(load), Level: pcpwire.LabelItem},
		&pcpwire.Result{Sets: []pcpwire.ValueSet{{PMID: level, NumVal: 1, Values: []pcpwire.Value{{Inst: -1, Word: 5}}}}},
		&pcpwire.Attr{Key: 14, Value: []byte("1\x00")},
		status(pcpwire.ErrNotConn),
	} {
		b, err := pcpwire.AppendPDU(nil, 0, pdu)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
		together = append(together, b...)
	}
	return append(all, together, raw(0x7014, 1, 2), raw(pcpwire.PDUFetch), []byte("\x00\x00\x00\x0b"))
}

// FuzzServe plays pmcd with any bytes after the handshake.
func FuzzServe(f *testing.F) {
	for _, s := range streams(f) {
		f.Add(s)
	}
	creds, err := pcpwire.AppendPDU(nil, 1, pcpwire.NewCreds(0))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		s := newSample()
		s.failWith = pcpwire.ErrIPC
		var out bytes.Buffer
		conn := pcpwire.NewConn(io.MultiReader(bytes.NewReader(creds), bytes.NewReader(stream)), &out)
		err := pmda.New(pmda.Config{Name: "sample", Domain: domain}, s, nil).Serve(t.Context(), conn)
		want, whole := requestsIn(stream)
		if whole != (err == nil) || !whole && !errors.Is(err, pcpwire.ErrIPC) {
			t.Errorf("Serve: %v; the stream is whole: %v", err, whole)
		}
		if s.closed.Load() != 1 {
			t.Error("session not closed")
		}
		checkReplies(t, &out, want)
	})
}

// checkReplies makes sure that there is one reply for each request, of the
// right type, that pmcd can decode and that does it no harm.
func checkReplies(t *testing.T, out io.Reader, want []pcpwire.PDUType) {
	t.Helper()
	c := pcpwire.NewConn(out, nil)
	if _, pdu, err := c.ReadPDU(); err != nil || pdu.PDUType() != pcpwire.PDUCreds {
		t.Fatalf("first PDU: %v, %v", pdu, err)
	}
	for _, req := range want {
		h, pdu, err := c.ReadPDU()
		if err != nil {
			t.Fatalf("reply to %v: %v", req, err)
		}
		e, isError := pdu.(*pcpwire.ErrorPDU)
		switch {
		case isError && e.Code == 0 && req == pcpwire.PDUResult:
		case isError && e.Code >= 0, !isError && h.Type != replies[req]:
			t.Errorf("reply to %v: %v %+v", req, h.Type, pdu)
		}
		if r, ok := pdu.(*pcpwire.Result); ok && !slices.Contains([]uint32{0, 8, 16, 24}, r.Flags) {
			t.Errorf("flags %#x", r.Flags)
		}
	}
	if _, pdu, err := c.ReadPDU(); !errors.Is(err, io.EOF) {
		t.Errorf("one reply too many: %v, %v", pdu, err)
	}
}
