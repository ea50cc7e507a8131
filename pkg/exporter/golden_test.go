package exporter_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// difference is an answer that is not as PCP's agent gives it.
type difference struct {
	line   int // of its answer
	answer string
	why    string
}

const (
	indomText   = "texts of indoms are served, and an unknown one is PM_ERR_INDOM"
	labelCount  = "a map as an instance's label counts as the labels that it is"
	labelFlat   = "a map is flattened to dotted names, also when it is the only label"
	labelDotted = "dotted names of a map are right, whatever labels come after it"
	labelArray  = "the index of an array with white space in it is right"
)

// differences are all there are, by conversation.
var differences = map[string][]difference{
	"dbpmda.log": {
		{42, "000000100000700000000000ffffcfb9", indomText},
		{44, "000000100000700000000000ffffcfb9", indomText},
	},
	"dbpmda2.log": {
		{4, "0000001c000070090000000005688211000000056c6f6164737e7e7e", indomText},
		{6, "000000240000700900000000056882110000000d6c6f61642061766572616765737e7e7e", indomText},
		{31, "0000008a000070130000000011826805000000200000000000000003000000010000000000000064000000000000000500000001000000640000000f00020420000800060000000f000000020000007300000017000204e000080001000b04e0001100057b22696e7374223a2266697665227d7b226d702e61223a312c226d702e62223a5b312c325d7d", labelCount},
	},
	"dbpmda3.log": {
		{6, "00000068000070130000000011813801000000100000000000000001ffffffff00000003000000440000002400020650000a00050011065000190001001c0450002200017b226d702e612e79223a5b312c325d2c226d702e612e7a223a312c226d702e62223a327d", labelFlat},
		{8, "0000008e000070130000000011813802000000100000000000000001ffffffff00000005000000540000003a00020290000600080010039000150001001806500020000500270650002f000100320450003800017b226162223a227365636f6e64222c22616263223a312c226d702e612e79223a5b312c325d2c226d702e612e7a223a312c226d702e62223a327d", labelDotted},
		{10, "00000043000070130000000011813803000000100000000000000001ffffffff00000001000000340000000f00020310000700077b22617272223a5b312c322c335d7d", labelArray},
	},
	"pmcd-mmv.log": {
		{37, "0000008a000070130000000011826805000000200000000000000003000000010000000000000064000000000000000500000001000000640000000f00020420000800060000000f000000020000007300000017000204e000080001000b04e0001100057b22696e7374223a2266697665227d7b226d702e61223a312c226d702e62223a5b312c325d7d", labelCount},
	},
}

// TestConversations has the agent answer what PCP's own has answered.
func TestConversations(t *testing.T) {
	for log, file := range map[string]string{"dbpmda.log": "gold", "dbpmda2.log": "gold", "dbpmda3.log": "lab", "pmcd-mmv.log": "gold"} {
		t.Run(log, func(t *testing.T) {
			b := newBox(t, func(o *exporter.Options) { o.PCPVersion, o.FileMetrics = "6.0.3", exporter.FileMetricsOff })
			image, err := os.ReadFile("testdata/mmv-" + file)
			if err != nil {
				t.Fatal(err)
			}
			b.write(file, image)
			b.opts.Debug = func(string) error { return nil }
			b.start()
			converse(t, b.e, log)
		})
	}
}

// converse plays a conversation and compares.
func converse(t *testing.T, e *exporter.Exporter, log string) {
	lines, err := os.ReadFile("testdata/" + log)
	if err != nil {
		t.Fatal(err)
	}
	fromPeer, toAgent := io.Pipe()
	fromAgent, toPeer := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- pmda.New(pmda.Config{Name: "mmv", Domain: domain}, e, nil).Serve(t.Context(), pcpwire.NewConn(fromPeer, toPeer))
		_ = toPeer.Close()
	}()
	left := differences[log]
	request := ""
	answers := 0
	for n, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
		dir, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if text == "EOF" {
			continue
		}
		pdu, err := hex.DecodeString(text)
		if err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		if dir == ">" {
			request = text
			if _, err := toAgent.Write(pdu); err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			continue
		}
		got, err := readPDU(fromAgent)
		if err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		answers++
		if answers == 1 { // CREDS: the pid is another one
			copy(got[8:12], pdu[8:12])
		}
		if bytes.Equal(got, pdu) {
			continue
		}
		if len(left) > 0 && left[0].line == n+1 && left[0].answer == hex.EncodeToString(got) {
			left = left[1:]
			continue
		}
		t.Errorf("line %d:\nasked %s\ngot   %x\nwant  %x", n+1, request, got, pdu)
	}
	_ = toAgent.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n, err := fromAgent.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("more after the end: %d bytes, %v", n, err)
	}
	for _, d := range left {
		t.Errorf("line %d does not differ as expected: %s", d.line, d.why)
	}
	if answers < 10 {
		t.Errorf("only %d answers compared", answers)
	}
}

// readPDU reads one PDU, header included.
func readPDU(r io.Reader) ([]byte, error) {
	head := make([]byte, pcpwire.HeaderSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := int(head[2])<<8 | int(head[3])
	if head[0] != 0 || head[1] != 0 || n < len(head) {
		return nil, errors.New("bad length")
	}
	pdu := append(head, make([]byte, n-len(head))...)
	_, err := io.ReadFull(r, pdu[len(head):])
	return pdu, err
}
