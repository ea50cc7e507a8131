package pcpwire_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"pmdammv/pkg/pcpwire"

	"github.com/google/go-cmp/cmp"
)

// words lays out a body: numbers are big-endian words, strings raw bytes.
func words(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case string:
			b = append(b, p...)
		}
	}
	return b
}

// TestDecodeRejects has one body per check of the decoders.
func TestDecodeRejects(t *testing.T) {
	const huge = 0x7fffffff
	tests := []struct {
		name  string
		pdu   pcpwire.PDU
		body  []byte
		field string
		off   int // from the start of the PDU
		err   error
	}{
		{"creds: empty", &pcpwire.Creds{}, nil, "numcreds", 12, pcpwire.ErrShort},
		{"creds: none", &pcpwire.Creds{}, words(0), "numcreds", 12, pcpwire.ErrRange},
		{"creds: negative", &pcpwire.Creds{}, words(-1, 0), "numcreds", 12, pcpwire.ErrRange},
		{"creds: over the limit", &pcpwire.Creds{}, append(words(1025), make([]byte, 4100)...), "numcreds", 12, pcpwire.ErrRange},
		{"creds: too many", &pcpwire.Creds{}, words(2, 0x01020000), "numcreds", 12, pcpwire.ErrShort},
		{"creds: more than said", &pcpwire.Creds{}, words(1, 0x01020000, 0), "end", 20, pcpwire.ErrTrailing},

		{"error: empty", &pcpwire.ErrorPDU{}, nil, "code", 12, pcpwire.ErrShort},
		{"error: half a datum", &pcpwire.ErrorPDU{}, words(0, "ab"), "datum", 16, pcpwire.ErrShort},
		{"error: two data", &pcpwire.ErrorPDU{}, words(0, 0, 0), "end", 20, pcpwire.ErrTrailing},

		{"profile: short", &pcpwire.Profile{}, words(0, 0, 0), "pad", 24, pcpwire.ErrShort},
		{"profile: negative context", &pcpwire.Profile{}, words(-1, 0, 0, 0), "ctxid", 12, pcpwire.ErrRange},
		{"profile: negative entries", &pcpwire.Profile{}, words(0, 0, -1, 0), "numprof", 20, pcpwire.ErrRange},
		{"profile: huge entries", &pcpwire.Profile{}, words(0, 0, huge, 0), "numprof", 20, pcpwire.ErrShort},
		{"profile: entry cut off", &pcpwire.Profile{}, words(0, 0, 1, 0, 7, 0, 0), "entries", 28, pcpwire.ErrShort},
		{"profile: negative instances", &pcpwire.Profile{}, words(0, 0, 1, 0, 7, 0, -1, 0), "numinst", 36, pcpwire.ErrRange},
		{"profile: huge instances", &pcpwire.Profile{}, words(0, 0, 1, 0, 7, 0, huge, 0, 1), "numinst", 36, pcpwire.ErrShort},
		{
			"profile: sum of instances", &pcpwire.Profile{},
			words(0, 0, 2, 0, 7, 0, 1, 0, 8, 0, 2, 0, 1, 2), "numinst", 52, pcpwire.ErrShort,
		},

		{"fetch: no pmids", &pcpwire.Fetch{}, words(0, 0, 0, 0), "numpmid", 24, pcpwire.ErrRange},
		{"fetch: negative", &pcpwire.Fetch{}, words(0, 0, 0, -1, 1), "numpmid", 24, pcpwire.ErrRange},
		{"fetch: huge", &pcpwire.Fetch{}, words(0, 0, 0, huge, 1), "numpmid", 24, pcpwire.ErrShort},
		{"fetch: times four overflows", &pcpwire.Fetch{}, words(0, 0, 0, 0x40000001, 1), "numpmid", 24, pcpwire.ErrShort},
		{"fetch: more than said", &pcpwire.Fetch{}, words(0, 0, 0, 1, 1, 2), "end", 32, pcpwire.ErrTrailing},
		{"fetch: cut in the unused bytes", &pcpwire.Fetch{}, words(0, 0), "unused", 16, pcpwire.ErrShort},

		{"desc req: short", &pcpwire.DescReq{}, words("abc"), "pmid", 12, pcpwire.ErrShort},
		{"desc req: long", &pcpwire.DescReq{}, words(1, 2), "end", 16, pcpwire.ErrTrailing},
		{"desc: short", &pcpwire.Desc{}, words(1, 2, 3, 4), "units", 28, pcpwire.ErrShort},
		{"desc: long", &pcpwire.Desc{}, words(1, 2, 3, 4, 5, 6), "end", 32, pcpwire.ErrTrailing},

		{"instance req: short", &pcpwire.InstanceReq{}, words(1, 0, 0, -1), "name", 28, pcpwire.ErrShort},
		{"instance req: negative", &pcpwire.InstanceReq{}, words(1, 0, 0, -1, -1), "name", 28, pcpwire.ErrRange},
		{"instance req: name cut off", &pcpwire.InstanceReq{}, words(1, 0, 0, -1, 5, "abcd"), "name", 28, pcpwire.ErrShort},
		{"instance: negative", &pcpwire.Instance{}, words(1, -1), "numinst", 16, pcpwire.ErrRange},
		{"instance: huge", &pcpwire.Instance{}, words(1, huge, 1, 0), "numinst", 16, pcpwire.ErrShort},
		{"instance: name takes the next entry", &pcpwire.Instance{}, words(1, 2, 1, 8, 2, 0), "inst", 36, pcpwire.ErrShort},
		{"instance: trailing", &pcpwire.Instance{}, words(1, 1, 1, 0, 0), "end", 28, pcpwire.ErrTrailing},

		{"text req: short", &pcpwire.TextReq{}, words(1), "type", 16, pcpwire.ErrShort},
		{"text: short", &pcpwire.Text{}, words("ab"), "ident", 12, pcpwire.ErrShort},
		{"text: huge", &pcpwire.Text{}, words(1, huge, "abcd"), "text", 16, pcpwire.ErrShort},
		{"text: trailing", &pcpwire.Text{}, words(1, 3, "abc~", 0), "end", 24, pcpwire.ErrTrailing},

		{"ids: none", &pcpwire.IDs{}, words(0, 0), "numpmid", 16, pcpwire.ErrRange},
		{"ids: negative", &pcpwire.IDs{}, words(0, -1, 1), "numpmid", 16, pcpwire.ErrRange},
		{"ids: huge", &pcpwire.IDs{}, words(0, huge, 1), "numpmid", 16, pcpwire.ErrShort},

		{"names: short", &pcpwire.Names{}, words(0, 0), "numnames", 20, pcpwire.ErrShort},
		{"names: negative", &pcpwire.Names{}, words(0, 0, -1), "numnames", 20, pcpwire.ErrRange},
		{"names: huge", &pcpwire.Names{}, words(4, 0, huge, 3, "abc~"), "numnames", 20, pcpwire.ErrShort},
		{"names: huge with statuses", &pcpwire.Names{}, words(3, 2, 2, 1, 0, 0), "numnames", 20, pcpwire.ErrShort},
		{"names: negative nstrbytes", &pcpwire.Names{}, words(-1, 0, 1, 3, "abc~"), "nstrbytes", 12, pcpwire.ErrRange},
		{"names: nstrbytes over the length", &pcpwire.Names{}, words(33, 0, 1, 3, "abc~"), "nstrbytes", 12, pcpwire.ErrRange},
		{"names: nstrbytes too small", &pcpwire.Names{}, words(3, 0, 1, 3, "abc~"), "nstrbytes", 12, pcpwire.ErrCount},
		{"names: statuses for some", &pcpwire.Names{}, words(8, 1, 2, 3, "abc~", 3, "abc~"), "numstatus", 16, pcpwire.ErrCount},
		{"names: name cut off", &pcpwire.Names{}, words(5, 0, 1, 5, "abcd"), "name", 24, pcpwire.ErrShort},
		{"child: short", &pcpwire.Child{}, words(1), "name", 16, pcpwire.ErrShort},
		{"child: negative", &pcpwire.Child{}, words(1, -4, "abcd"), "name", 16, pcpwire.ErrRange},
		{"traverse: huge", &pcpwire.Traverse{}, words(0, huge, "abcd"), "name", 16, pcpwire.ErrShort},

		{"attr: short", &pcpwire.Attr{}, words("abc"), "key", 12, pcpwire.ErrShort},
		{"attr: over the limit", &pcpwire.Attr{}, append(words(14), make([]byte, 4096)...), "value", 16, pcpwire.ErrTooBig},

		{"label req: short", &pcpwire.LabelReq{}, words(1), "type", 16, pcpwire.ErrShort},
		{"label: short", &pcpwire.LabelPDU{}, words(1, 2, 0), "nsets", 24, pcpwire.ErrShort},
		{"label: negative sets", &pcpwire.LabelPDU{}, words(1, 2, 0, -1), "nsets", 24, pcpwire.ErrRange},
		{"label: huge sets", &pcpwire.LabelPDU{}, words(1, 2, 0, huge, 0, 0, 0, 0), "nsets", 24, pcpwire.ErrShort},
		{"label: too many labels", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 255, 44, 0), "nlabels", 32, pcpwire.ErrTooBig},
		{"label: labels cut off", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 1, 44, 0), "nlabels", 32, pcpwire.ErrShort},
		{"label: negative offset", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 0, -4, 4), "jsonoff", 36, pcpwire.ErrRange},
		{"label: offset in the header", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 0, 8, 0), "jsonoff", 36, pcpwire.ErrRange},
		{"label: negative length", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 0, 44, -1), "jsonlen", 40, pcpwire.ErrRange},
		{"label: length over the limit", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 0, 44, 65535), "jsonlen", 40, pcpwire.ErrTooBig},
		{"label: JSON cut off", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 0, 44, 3, "{}"), "jsonlen", 40, pcpwire.ErrShort},
		{"label: offset and length overflow", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 0, huge, 3, "{}"), "jsonlen", 40, pcpwire.ErrShort},
		{
			"label: name outside", &pcpwire.LabelPDU{},
			words(1, 2, 0, 1, -1, 1, 52, 2, 0x00020102, 0x00000001, "{}"), "label", 44, pcpwire.ErrRange,
		},
		{
			"label: value outside", &pcpwire.LabelPDU{},
			words(1, 2, 0, 1, -1, 1, 52, 2, 0x00000102, 0x0000ffff, "{}"), "label", 44, pcpwire.ErrRange,
		},
		{"label: trailing", &pcpwire.LabelPDU{}, words(1, 2, 0, 1, -1, 0, 44, 2, "{}abc"), "end", 46, pcpwire.ErrTrailing},
		{"label: no set, trailing", &pcpwire.LabelPDU{}, words(1, 2, 0, 0, 0), "end", 28, pcpwire.ErrTrailing},

		{"result: short", &pcpwire.Result{}, words(0, 0), "numpmid", 20, pcpwire.ErrShort},
		{"result: negative", &pcpwire.Result{}, words(0, 0, -1), "numpmid", 20, pcpwire.ErrRange},
		{"result: huge", &pcpwire.Result{}, words(0, 0, huge, 1, 0), "numpmid", 20, pcpwire.ErrShort},
		{"result: set cut off", &pcpwire.Result{}, words(0, 0, 1, 1), "numpmid", 20, pcpwire.ErrShort},
		{"result: second set cut off", &pcpwire.Result{}, words(0, 0, 2, 1, 1, 0, 3), "numval", 28, pcpwire.ErrShort},
		{"result: huge numval", &pcpwire.Result{}, words(0, 0, 1, 1, huge, 0, 3, 4), "numval", 28, pcpwire.ErrShort},
		{"result: no format", &pcpwire.Result{}, words(0, 0, 1, 1, 1), "valfmt", 32, pcpwire.ErrShort},
		{"result: bad format", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 3, -1, 9), "valfmt", 32, pcpwire.ErrRange},
		{"result: format without values", &pcpwire.Result{}, words(0, 0, 1, 1, 0, 0), "blocks", 32, pcpwire.ErrTrailing},
		{"result: format after a status", &pcpwire.Result{}, words(0, 0, 1, 1, -12358, 1), "blocks", 32, pcpwire.ErrTrailing},
		{"result: pointer before the blocks", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 10, 0x04000008, 0), "value", 40, pcpwire.ErrRange},
		{"result: pointer after the end", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 13, 0x04000008, 0), "value", 40, pcpwire.ErrRange},
		{"result: negative pointer", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, -1, 0x04000008, 0), "value", 40, pcpwire.ErrRange},
		{"result: pointer times four overflows", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 0x4000000b, 0x04000008, 0), "value", 40, pcpwire.ErrRange},
		{"result: block too short", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 11, 0x04000003, 0), "vlen", 44, pcpwire.ErrRange},
		{"result: block cut off", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 11, 0x04000009, 0), "vlen", 44, pcpwire.ErrShort},
		{"result: gap before the blocks", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 12, 0, 0x04000008, 0), "blocks", 52, pcpwire.ErrTrailing},
		{"result: trailing", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 11, 0x04000008, 0, 0), "blocks", 52, pcpwire.ErrTrailing},
		{"result: pad cut off", &pcpwire.Result{}, words(0, 0, 1, 1, 1, 1, -1, 11, 0x06000006, "a\x00"), "blocks", 44, pcpwire.ErrRange},
		{
			"result: shared block", &pcpwire.Result{},
			words(0, 0, 1, 1, 2, 1, 1, 13, 2, 13, 0x04000008, 0), "blocks", 52, pcpwire.ErrRange,
		},
		{
			// Two blocks of 8 bytes fill 16, but they overlap and start late.
			"result: blocks overlap", &pcpwire.Result{},
			words(0, 0, 1, 1, 2, 1, 1, 14, 2, 15, 0, 0x04000008, 0x04000008, 0), "blocks", 52, pcpwire.ErrRange,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.pdu.Decode(tt.body)
			var got *pcpwire.DecodeError
			if !errors.As(err, &got) {
				t.Fatalf("%v, want a DecodeError", err)
			}
			want := pcpwire.DecodeError{PDU: tt.pdu.PDUType(), Field: tt.field, Off: tt.off, Err: tt.err}
			if *got != want {
				t.Errorf("%+v, want %+v", *got, want)
			}
		})
	}
}

// TestDecodeTolerates has what is not quite as it should be and accepted all the
// same, as libpcp 6.0 does.
func TestDecodeTolerates(t *testing.T) {
	tests := []struct {
		name string
		body []byte
		want pcpwire.PDU
	}{
		{"extended error", words(-1000, 9), &pcpwire.ErrorPDU{Code: -1000}},
		{"profile, trailing", words(1, 1, 0, 0, 9), &pcpwire.Profile{Context: 1, State: 1}},
		{"profile, pads not 0", words(1, 1, 1, 9, 7, 1, 0, 9), &pcpwire.Profile{
			Context: 1, State: 1, InDoms: []pcpwire.ProfileInDom{{InDom: 7, State: 1}},
		}},
		{"fetch, time not 0", words(1, 8, 9, 1, 7), &pcpwire.Fetch{Context: 1, PMIDs: []pcpwire.PMID{7}}},
		{"instance request, time not 0", words(1, 8, 9, -1, 0), &pcpwire.InstanceReq{InDom: 1, Inst: -1}},
		{"instance request, trailing", words(1, 0, 0, -1, 1, "a~~~", 5), &pcpwire.InstanceReq{InDom: 1, Inst: -1, Name: []byte("a")}},
		{"instance request, no padding", words(1, 0, 0, -1, 1, "a"), &pcpwire.InstanceReq{InDom: 1, Inst: -1, Name: []byte("a")}},
		{"text request, trailing", words(1, 5, 0), &pcpwire.TextReq{Ident: 1, Kind: 5}},
		{"label request, trailing", words(1, 2, 0), &pcpwire.LabelReq{Ident: 1, Level: 2}},
		{"ids, trailing", words(0, 1, 7, 8), &pcpwire.IDs{IDs: []pcpwire.PMID{7}}},
		{"names, trailing", words(2, 0, 1, 1, "a~~~", 5), &pcpwire.Names{Names: list("a")}},
		{"names, nstrbytes too large", words(9, 0, 1, 1, "a~~~"), &pcpwire.Names{Names: list("a")}},
		{"names, none but counts", words(-9, 5, 0), &pcpwire.Names{}},
		{"names, other padding", words(2, 0, 1, 1, "a\x00\x00\x00"), &pcpwire.Names{Names: list("a")}},
		{"child, subtype 2", words(2, 1, "a~~~"), &pcpwire.Child{WantStatus: true, Name: []byte("a")}},
		{"child, empty name", words(0, 0), &pcpwire.Child{}},
		{"traverse, trailing", words(7, 1, "a~~~", 5), &pcpwire.Traverse{Name: []byte("a")}},
		{"attr, no NUL", words(5, "joe"), &pcpwire.Attr{Key: 5, Value: []byte("joe")}},
		{"attr, empty", words(4), &pcpwire.Attr{Key: 4}},
		{"attr, NUL only", words(5, "\x00"), &pcpwire.Attr{Key: 5, Value: []byte{}}},
		{"label, padded", words(1, 2, 0, 1, -1, 0, 44, 2, "{}~~"), &pcpwire.LabelPDU{
			Ident: 1, Level: 2, Sets: []pcpwire.LabelSet{{Inst: -1, JSON: []byte("{}")}},
		}},
		{"label, error", words(1, 2, 0, 1, -1, -12349, 44, 0), &pcpwire.LabelPDU{
			Ident: 1, Level: 2, Sets: []pcpwire.LabelSet{{Inst: -1, Err: pcpwire.ErrText}},
		}},
		{
			"result, blocks in another order",
			words(0, 0, 1, 1, 2, 1, 1, 15, 2, 13, 0x04000008, "abcd", 0x04000008, "efgh"),
			&pcpwire.Result{Sets: []pcpwire.ValueSet{{PMID: 1, NumVal: 2, Format: pcpwire.DPtr, Values: []pcpwire.Value{
				{Inst: 1, Block: pcpwire.ValueBlock{Type: pcpwire.TypeFloat, Body: []byte("efgh")}},
				{Inst: 2, Block: pcpwire.ValueBlock{Type: pcpwire.TypeFloat, Body: []byte("abcd")}},
			}}}},
		},
		{
			"result, block without a body",
			words(0, 0, 1, 1, 1, 2, 1, 11, 0x07000004),
			&pcpwire.Result{Sets: []pcpwire.ValueSet{{PMID: 1, NumVal: 1, Format: pcpwire.SPtr, Values: []pcpwire.Value{
				{Inst: 1, Block: pcpwire.ValueBlock{Type: pcpwire.TypeAggregate, Body: []byte{}}},
			}}}},
		},
		{"result, empty", words(0, 0, 0), &pcpwire.Result{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newPDU(tt.want.PDUType())
			if err := got.Decode(tt.body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// It means the same when it is said properly.
			body, err := got.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			again := newPDU(tt.want.PDUType())
			if err := again.Decode(body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, again); diff != "" {
				t.Errorf("encoded and decoded again (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAppendRejects has what no PDU can say.
func TestAppendRejects(t *testing.T) {
	one := []pcpwire.Value{{}}
	labels := func(s pcpwire.LabelSet) pcpwire.PDU {
		return &pcpwire.LabelPDU{Sets: []pcpwire.LabelSet{{}, s}}
	}
	result := func(s pcpwire.ValueSet) pcpwire.PDU {
		return &pcpwire.Result{Sets: []pcpwire.ValueSet{{}, s}}
	}
	block := func(typ pcpwire.Type, n int) []pcpwire.Value {
		return []pcpwire.Value{{Block: pcpwire.ValueBlock{Type: typ, Body: make([]byte, n)}}}
	}
	tests := []struct {
		name string
		pdu  pcpwire.PDU
		err  error
	}{
		{"creds: none", &pcpwire.Creds{}, pcpwire.ErrRange},
		{"creds: 1025", &pcpwire.Creds{Credentials: make([]pcpwire.Credential, 1025)}, pcpwire.ErrRange},
		{"profile: negative context", &pcpwire.Profile{Context: -1}, pcpwire.ErrRange},
		{"fetch: none", &pcpwire.Fetch{}, pcpwire.ErrRange},
		{"ids: none", &pcpwire.IDs{}, pcpwire.ErrRange},
		{"names: statuses", &pcpwire.Names{Status: []pcpwire.NodeStatus{0}, Names: list("a", "b")}, pcpwire.ErrCount},
		{"attr: 4095 bytes", &pcpwire.Attr{Value: make([]byte, 4095)}, pcpwire.ErrTooBig},
		{"label: 255 labels", labels(pcpwire.LabelSet{Labels: make([]pcpwire.Label, 255)}), pcpwire.ErrTooBig},
		{"label: 65535 bytes", labels(pcpwire.LabelSet{JSON: make([]byte, 65535)}), pcpwire.ErrTooBig},
		{"label: positive error", labels(pcpwire.LabelSet{Err: 1}), pcpwire.ErrRange},
		{"label: error and labels", labels(pcpwire.LabelSet{Err: -1, Labels: make([]pcpwire.Label, 1)}), pcpwire.ErrRange},
		{"label: name outside", labels(pcpwire.LabelSet{Labels: []pcpwire.Label{{NameLen: 1}}}), pcpwire.ErrRange},
		{"label: value outside", labels(pcpwire.LabelSet{Labels: []pcpwire.Label{{ValueOff: 1}}}), pcpwire.ErrRange},
		{"result: values without numval", result(pcpwire.ValueSet{Values: one}), pcpwire.ErrCount},
		{"result: values with a status", result(pcpwire.ValueSet{NumVal: -1, Values: one}), pcpwire.ErrCount},
		{"result: numval without values", result(pcpwire.ValueSet{NumVal: 1}), pcpwire.ErrCount},
		{"result: format", result(pcpwire.ValueSet{NumVal: 1, Format: 3, Values: one}), pcpwire.ErrRange},
		{"result: block type", result(pcpwire.ValueSet{NumVal: 1, Format: 1, Values: block(256, 0)}), pcpwire.ErrRange},
		{"result: negative block type", result(pcpwire.ValueSet{NumVal: 1, Format: 1, Values: block(-1, 0)}), pcpwire.ErrRange},
		{"result: block over 16 MiB", result(pcpwire.ValueSet{NumVal: 1, Format: 1, Values: block(7, 1<<24-4)}), pcpwire.ErrTooBig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dst := make([]byte, 3, 100)
			got, err := pcpwire.AppendPDU(dst, 0, tt.pdu)
			if !errors.Is(err, tt.err) {
				t.Errorf("%v, want %v", err, tt.err)
			}
			if len(got) != len(dst) {
				t.Errorf("%d bytes of a PDU that is none", len(got)-len(dst))
			}
			if body, err := tt.pdu.AppendBinary(dst); err == nil || len(body) != len(dst) {
				t.Errorf("%d bytes of a body that is none, %v", len(body)-len(dst), err)
			}
		})
	}
	if _, err := pcpwire.AppendPDU(nil, 0, result(pcpwire.ValueSet{NumVal: 1, Format: 1, Values: block(7, 1<<24-5)})); err != nil {
		t.Errorf("block of just under 16 MiB: %v", err)
	}
	if err := pcpwire.PatchLen(make([]byte, 20), 4, 15); !errors.Is(err, pcpwire.ErrTooBig) {
		t.Errorf("PDU over the ceiling: %v", err)
	}
}

// TestAppendPDU checks that offsets do not depend on what is in front.
func TestAppendPDU(t *testing.T) {
	for _, tt := range goldens {
		b, err := pcpwire.AppendPDU([]byte("in front"), tt.from, tt.pdu)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(golden(t, tt.name), b[8:]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
