package pcpwire_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

const (
	gold  = pcpwire.InDom(0x11826805) // 70.157701
	i32   = pcpwire.PMID(0x11813401)  // 70.77.1
	u32   = pcpwire.PMID(0x11813402)
	i64   = pcpwire.PMID(0x11813403)
	u64   = pcpwire.PMID(0x11813404)
	flt   = pcpwire.PMID(0x11813405)
	dbl   = pcpwire.PMID(0x11813406)
	str   = pcpwire.PMID(0x11813407)
	noPM  = pcpwire.PMID(0x11813463)
	loadP = pcpwire.PMID(0x11800000) // 70.0.0
)

// goldens has what each file in testdata means.
var goldens = []struct {
	name string
	from int32
	pdu  pcpwire.PDU
}{
	{"creds-agent", 0x7688, pcpwire.NewCreds(0)},
	{"creds-pmcd", 0x765a, &pcpwire.Creds{Credentials: []pcpwire.Credential{{Type: 1, Version: 2}}}},
	{"creds-agent-auth-container", 0x37bc, pcpwire.NewCreds(pcpwire.FlagAuth | pcpwire.FlagContainer)},
	{"creds-pmcd-auth", 0x37b9, &pcpwire.Creds{Credentials: []pcpwire.Credential{{Type: 1, Version: 2, Flags: 4}}}},

	{"pmns-child-req", 0, &pcpwire.Child{WantStatus: true, Name: []byte("mmv")}},
	{"pmns-names-status", 0, &pcpwire.Names{
		Status: []pcpwire.NodeStatus{pcpwire.NonLeaf, pcpwire.NonLeaf}, Names: list("gold", "control"),
	}},
	{"pmns-child-leaf-req", 0, &pcpwire.Child{WantStatus: true, Name: []byte("mmv.gold.a.i64")}},
	{"pmns-names-empty", 0, &pcpwire.Names{}},
	{"pmns-traverse-req", 0, &pcpwire.Traverse{Name: []byte("mmv")}},
	{"pmns-traverse-reply", 0, &pcpwire.Names{Names: list(
		"mmv.gold.str", "mmv.gold.a.dbl", "mmv.gold.a.flt", "mmv.gold.a.u64", "mmv.gold.a.i64",
		"mmv.gold.b.u32", "mmv.gold.b.i32", "mmv.control.files", "mmv.control.debug", "mmv.control.reload",
	)}},
	{"pmns-names-req", 0, &pcpwire.Names{Names: list("mmv.gold.b.u32")}},
	{"pmns-ids-reply", 0, &pcpwire.IDs{IDs: []pcpwire.PMID{u32}}},
	{"pmns-ids-req", 0, &pcpwire.IDs{IDs: []pcpwire.PMID{u32}}},
	{"pmns-names-reply", 0, &pcpwire.Names{Names: list("mmv.gold.b.u32")}},

	{"error-name", 0, &pcpwire.ErrorPDU{Code: pcpwire.ErrName}},
	{"error-0", 0, &pcpwire.ErrorPDU{}},
	{"error-permission", 0, &pcpwire.ErrorPDU{Code: pcpwire.ErrPermission}},
	{"error-notready", 0, &pcpwire.ErrorPDU{Code: pcpwire.ErrPMDANotReady}},
	{"error-ready", 0, &pcpwire.ErrorPDU{Code: pcpwire.ErrPMDAReady}},
	{"end-context-1", 1, &pcpwire.ErrorPDU{Code: pcpwire.ErrNotConn}},

	{"desc-req", 0, &pcpwire.DescReq{PMID: u64}},
	{"desc", 0, &pcpwire.Desc{
		PMID: u64, Type: pcpwire.TypeU64, InDom: gold, Semantics: pcpwire.SemCounter,
		Units: pcpwire.NewUnits(1, -1, 0, pcpwire.SpaceKByte, pcpwire.TimeSec, 0),
	}},
	{"text-req", 0, &pcpwire.TextReq{Ident: uint32(i32), Kind: pcpwire.TextOneLine | pcpwire.TextPMID}},
	// The ident was written in the order of a little-endian host.
	{"text", 0, &pcpwire.Text{
		Ident: binary.NativeEndian.Uint32([]byte{0x01, 0x34, 0x81, 0x11}), Text: []byte("short i32"),
	}},

	{"profile-default", 0, &pcpwire.Profile{}},
	{"profile-none-add5", 0, &pcpwire.Profile{
		InDoms: []pcpwire.ProfileInDom{{InDom: gold, State: pcpwire.ProfileExclude, Insts: []int32{5}}},
	}},
	{"profile-all-minus", 0, &pcpwire.Profile{
		InDoms: []pcpwire.ProfileInDom{{InDom: gold, State: pcpwire.ProfileInclude, Insts: []int32{5, 1}}},
	}},

	{"fetch-8", 0, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{i32, u32, i64, u64, flt, dbl, str, noPM}}},
	{"fetch-from-1", 1, &pcpwire.Fetch{PMIDs: []pcpwire.PMID{pcpwire.NewPMID(71, 1, 1)}}},
	{"result-alltypes", 0, resultAllTypes()},
	{"result-novalues", 0, &pcpwire.Result{Sets: []pcpwire.ValueSet{{PMID: u32}}}},
	{"result-names-changed", 0, &pcpwire.Result{
		Flags: pcpwire.NamesChanged, Sets: []pcpwire.ValueSet{inSitu(i32, -1, 0xfffffff9)},
	}},
	{"result-string", 0, &pcpwire.Result{Sets: []pcpwire.ValueSet{stuffed(str, nul, pcpwire.AtomString([]byte("hello")))}}},
	{"store-i32", 0, &pcpwire.Result{
		Flags: 0xaddf42cf, Sets: []pcpwire.ValueSet{inSitu(loadP+1, -1, 1)},
	}},

	{"instance-req-all", 0, &pcpwire.InstanceReq{InDom: gold, Inst: pcpwire.InstNull}},
	{"instance-req-id", 0, &pcpwire.InstanceReq{InDom: gold, Inst: 5}},
	{"instance-req-name", 0, &pcpwire.InstanceReq{InDom: gold, Inst: pcpwire.InstNull, Name: []byte("5 minute")}},
	{"instance-all", 0, &pcpwire.Instance{InDom: gold, Entries: []pcpwire.InstanceEntry{
		{Inst: 1, Name: []byte("1 minute")}, {Inst: 5, Name: []byte("5 minute")}, {Inst: 15, Name: []byte("15 minute")},
	}}},
	{"instance-name", 0, &pcpwire.Instance{InDom: gold, Entries: []pcpwire.InstanceEntry{
		{Inst: pcpwire.InstNull, Name: []byte("5 minute")},
	}}},
	{"instance-id", 0, &pcpwire.Instance{InDom: gold, Entries: []pcpwire.InstanceEntry{{Inst: 5}}}},

	{"label-req-item", 0, &pcpwire.LabelReq{Ident: uint32(u32), Level: pcpwire.LabelItem}},
	{"label-req-domain", 0, &pcpwire.LabelReq{Ident: 70, Level: pcpwire.LabelDomain}},
	{"label-req-instances", 0, &pcpwire.LabelReq{Ident: uint32(gold), Level: pcpwire.LabelInstances}},
	{"label-item", 0, &pcpwire.LabelPDU{Ident: uint32(u32), Level: pcpwire.LabelItem, Sets: []pcpwire.LabelSet{{
		Inst: pcpwire.InstNull, JSON: []byte(`{"alpha":42.5,"zeta":null}`),
		Labels: []pcpwire.Label{
			{NameOff: 2, NameLen: 5, Flags: 0x10, ValueOff: 9, ValueLen: 4},
			{NameOff: 15, NameLen: 4, Flags: 0x90, ValueOff: 21, ValueLen: 4},
		},
	}}}},
	{"label-domain", 0, &pcpwire.LabelPDU{Ident: 70, Level: pcpwire.LabelDomain, Sets: []pcpwire.LabelSet{{
		Inst: pcpwire.InstNull, JSON: []byte(`{"agent":"mmv"}`),
		Labels: []pcpwire.Label{{NameOff: 2, NameLen: 5, Flags: 2, ValueOff: 9, ValueLen: 5}},
	}}}},
	{"label-instances", 0, &pcpwire.LabelPDU{Ident: uint32(gold), Level: pcpwire.LabelInstances, Sets: []pcpwire.LabelSet{
		{Inst: 1},
		{
			Inst: 5, JSON: []byte(`{"inst":"five"}`),
			Labels: []pcpwire.Label{{NameOff: 2, NameLen: 4, Flags: 0x20, ValueOff: 8, ValueLen: 6}},
		},
		{
			Inst: 15, JSON: []byte(`{"mp.a":1,"mp.b":[1,2]}`),
			Labels: []pcpwire.Label{{NameOff: 2, NameLen: 4, Flags: 0xe0, ValueOff: 8, ValueLen: 1}},
		},
	}}},
	{"label-none", 0, &pcpwire.LabelPDU{Ident: uint32(noPM), Level: pcpwire.LabelItem}},
	{"label-instances-profile-empty", 0, &pcpwire.LabelPDU{
		Ident: 0x11827009, Level: pcpwire.LabelInstances,
		Sets: []pcpwire.LabelSet{{Inst: pcpwire.InstNull}},
	}},

	{"attr-processid", 0, &pcpwire.Attr{Key: pcpwire.AttrProcessID, Value: []byte("14312")}},
	{"attr-container", 0, &pcpwire.Attr{Key: pcpwire.AttrContainer, Value: []byte("foo")}},
}

const nul = pcpwire.InstNull

func resultAllTypes() *pcpwire.Result {
	three := inSitu(u32, 1, 0x11223344)
	three.NumVal = 3
	three.Values = append(three.Values, pcpwire.Value{Inst: 5, Word: 5}, pcpwire.Value{Inst: 15, Word: 15})
	blocks := stuffed(u64, 1, pcpwire.AtomU64(0x0102030405060708))
	blocks.NumVal = 3
	blocks.Values = append(blocks.Values,
		stuffed(u64, 5, pcpwire.AtomU64(0)).Values[0], stuffed(u64, 15, pcpwire.AtomU64(42)).Values[0])
	return &pcpwire.Result{Sets: []pcpwire.ValueSet{
		inSitu(i32, -1, 0xfffffff9),
		three,
		stuffed(i64, nul, pcpwire.AtomI64(-2)),
		blocks,
		stuffed(flt, nul, pcpwire.AtomFloat(1.5)),
		stuffed(dbl, nul, pcpwire.AtomDouble(3.25)),
		stuffed(str, nul, pcpwire.AtomString([]byte("hello"))),
		{PMID: noPM, NumVal: int32(pcpwire.ErrPMID)},
	}}
}

func list(names ...string) [][]byte {
	l := make([][]byte, 0, len(names))
	for _, n := range names {
		l = append(l, []byte(n))
	}
	return l
}

// inSitu is a set of one value in situ.
func inSitu(pmid pcpwire.PMID, inst int32, word uint32) pcpwire.ValueSet {
	return pcpwire.ValueSet{PMID: pmid, NumVal: 1, Values: []pcpwire.Value{{Inst: inst, Word: word}}}
}

// stuffed is a set of one value.
func stuffed(pmid pcpwire.PMID, inst int32, a pcpwire.AtomValue) pcpwire.ValueSet {
	v, format, err := a.Stuff(inst)
	if err != nil {
		panic(err) // a mistake in the table
	}
	return pcpwire.ValueSet{PMID: pmid, NumVal: 1, Format: format, Values: []pcpwire.Value{v}}
}

// golden returns the bytes of a file in testdata.
func golden(tb testing.TB, name string) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		tb.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestGolden decodes each captured PDU and encodes it again to the same bytes.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(goldens) {
		t.Errorf("%d files in testdata, %d in the table", len(files), len(goldens))
	}
	for _, tt := range goldens {
		t.Run(tt.name, func(t *testing.T) {
			b := golden(t, tt.name)
			c := pcpwire.NewConn(bytes.NewReader(b), nil)
			h, got, err := c.ReadPDU()
			if err != nil {
				t.Fatal(err)
			}
			want := pcpwire.Header{Len: int32(len(b)), Type: tt.pdu.PDUType(), From: tt.from}
			if h != want {
				t.Errorf("header %+v, want %+v", h, want)
			}
			if diff := cmp.Diff(tt.pdu, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			for _, p := range []pcpwire.PDU{got, tt.pdu} {
				again, err := pcpwire.AppendPDU(nil, tt.from, p)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(hex.EncodeToString(b), hex.EncodeToString(again)); diff != "" {
					t.Errorf("encoded (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// conversations calls f with every PDU of the captured conversations.
func conversations(tb testing.TB, f func(where string, pdu []byte)) {
	tb.Helper()
	files, err := filepath.Glob("testdata/conversation-*.log")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no conversations: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		for sc, n := bufio.NewScanner(bytes.NewReader(text)), 1; sc.Scan(); n++ {
			_, digits, _ := strings.Cut(sc.Text(), " ")
			if strings.TrimSpace(digits) == "EOF" {
				continue
			}
			b, err := hex.DecodeString(digits)
			if err != nil {
				tb.Fatalf("%s line %d: %v", name, n, err)
			}
			f(filepath.Base(name)+" line "+strconv.Itoa(n), b)
		}
	}
}

// TestConversations decodes every PDU of the captured conversations and encodes
// it again to the same bytes.
func TestConversations(t *testing.T) {
	n := 0
	conversations(t, func(where string, b []byte) {
		n++
		h, p, err := pcpwire.NewConn(bytes.NewReader(b), nil).ReadPDU()
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		if _, unknown := p.(*pcpwire.Unknown); unknown {
			t.Errorf("%s: unknown type %v", where, h.Type)
		}
		again, err := pcpwire.AppendPDU(nil, h.From, p)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		if diff := cmp.Diff(hex.EncodeToString(b), hex.EncodeToString(again)); diff != "" {
			t.Errorf("%s: encoded (-want +got):\n%s", where, diff)
		}
	})
	if n != 231 {
		t.Errorf("%d PDUs", n)
	}
}
