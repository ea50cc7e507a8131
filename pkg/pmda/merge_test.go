package pmda_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func TestMergeLabels(t *testing.T) {
	const item, insts = pcpwire.LabelItem, pcpwire.LabelInstances
	tests := []struct {
		name    string
		level   pcpwire.LabelLevel
		records []string // "?" in front: optional
		want    string
		err     error
	}{
		{"nothing", item, nil, `-1`, nil},
		{"no members", item, []string{`{}`, ` { } `}, `-1`, nil},
		{"one record keeps its order", item, []string{` { "b" : 1 , "a" : "x y" } `}, `-1 {"b":1,"a":"x y"} a/10="x y" b/10=1`, nil},
		{"but for instances", insts, []string{`{"b":1,"a":2}`}, `-1 {"a":2,"b":1} a/20=2 b/20=1`, nil},
		{
			"every kind of value", item,
			[]string{`{"s":"","n":-1.5e+3,"t":true,"f":false,"z":null,"l":[1,{"x":"}"}],"m":{}}`},
			`-1 {"s":"","n":-1.5e+3,"t":true,"f":false,"z":null,"l":[1,{"x":"}"}],"m":{}}` +
				` f/10=false l/10=[1,{"x":"}"}] m/50={} n/10=-1.5e+3 s/10="" t/10=true z/10=null`, nil,
		},
		{
			"values are verbatim", item,
			[]string{`{"big":123456789012345678901234567890,"e":"\u00e9\"\\","é":1,"u":"é"}`},
			`-1 {"big":123456789012345678901234567890,"e":"\u00e9\"\\","u":"é"} big/10=123456789012345678901234567890 e/10="\u00e9\"\\" u/10="é"`, pmda.ErrLabelName,
		},
		{"white space in a list", item, []string{`{"arr":[1, 2, 3]}`}, `-1 {"arr":[1,2,3]} arr/10=[1,2,3]`, nil},
		{"white space in a string stays", item, []string{`{"a": " b  c "}`}, `-1 {"a":" b  c "} a/10=" b  c "`, nil},
		{
			"sorted by bytes, the shorter first", item,
			[]string{`{"ab":1}`, `{"abc":2}`, `{"B":3}`, `{"a_":4}`},
			`-1 {"B":3,"a_":4,"ab":1,"abc":2} B/10=3 a_/10=4 ab/10=1 abc/10=2`, nil,
		},
		{
			"the later wins, with its flags", item,
			[]string{`{"ab":"q"}`, `?{"abc":1}`, `?{"ab":"second"}`},
			`-1 {"ab":"second","abc":1} ab/90="second" abc/90=1`, nil,
		},
		{
			"a map", item,
			[]string{`{"mp":{"b":2,"a":{"z":1,"y":[1, 2]}}}`},
			`-1 {"mp.a.y":[1,2],"mp.a.z":1,"mp.b":2} mp.a.y/50=[1,2] mp.a.z/50=1 mp.b/50=2`, nil,
		},
		{
			"a map and more", item,
			[]string{`{"mp":{"b":2,"a":{"z":1,"y":[1,2]}}}`, `{"ab":"q"}`, `?{"abc":1}`, `?{"ab":"second"}`},
			`-1 {"ab":"second","abc":1,"mp.a.y":[1,2],"mp.a.z":1,"mp.b":2} ab/90="second" abc/90=1 mp.a.y/50=[1,2] mp.a.z/50=1 mp.b/50=2`, nil,
		},
		{"an optional map", insts, []string{`?{"m":{"a":1}}`}, `-1 {"m.a":1} m.a/e0=1`, nil},
		{
			"a map for a value and the other way round", item,
			[]string{`{"a":1,"b":{"c":2}}`, `{"a":{"d":3},"b":4}`},
			`-1 {"a":1,"a.d":3,"b":4,"b.c":2} a/10=1 a.d/50=3 b/10=4 b.c/50=2`, nil,
		},
		{"same name in two maps", item, []string{`{"a":{"x":1},"b":{"x":2},"x":3}`}, `-1 {"a.x":1,"b.x":2,"x":3} a.x/50=1 b.x/50=2 x/10=3`, nil},
		{"digits and underscores", item, []string{`{"1a":1,"_":2,"9":3}`}, `-1 {"1a":1,"_":2,"9":3} 1a/10=1 9/10=3 _/10=2`, nil},
		{"a bad name", item, []string{`{"c":3,"a-b":1,"a":2}`}, `-1 {"a":2,"c":3} a/10=2 c/10=3`, pmda.ErrLabelName},
		{"a bad name alone", item, []string{`{"good":1}`, `{"a b":1}`}, `-1 {"good":1} good/10=1`, pmda.ErrLabelName},
		{"a dot", item, []string{`{"a.b":1}`}, `-1`, pmda.ErrLabelName},
		{"an empty name", item, []string{`{"":1}`}, `-1`, pmda.ErrLabelName},
		{"an escape in a name", item, []string{`{"\u0061":1,"a\"":2}`}, `-1`, pmda.ErrLabelName},
		{"a map with a bad name", item, []string{`{"a-b":{"c":1},"d":{"e-f":[{"g":1}],"h":2}}`}, `-1 {"d.h":2} d.h/50=2`, pmda.ErrLabelName},
		{"twice", item, []string{`{"a":1,"b":2,"a":1}`, `{"c":3}`}, `-1 {"c":3} c/10=3`, pmda.ErrLabelTwice},
		{"twice in a map", item, []string{`{"m":{"a":1,"a":2}}`}, `-1`, pmda.ErrLabelTwice},
		{"a map twice", item, []string{`{"m":{"a":1},"m":{"a":2}}`}, `-1`, pmda.ErrLabelTwice},
		{"empty", item, []string{``}, `-1`, pmda.ErrLabelJSON},
		{"a list", item, []string{`[{"a":1}]`}, `-1`, pmda.ErrLabelJSON},
		{"a number", item, []string{`1`}, `-1`, pmda.ErrLabelJSON},
		{"a string", item, []string{`"{}"`}, `-1`, pmda.ErrLabelJSON},
		{"two objects", item, []string{`{"a":1}{"b":2}`}, `-1`, pmda.ErrLabelJSON},
		{"unterminated object", item, []string{`{"a":1`}, `-1`, pmda.ErrLabelJSON},
		{"unterminated string", item, []string{`{"a":"x\"}`}, `-1`, pmda.ErrLabelJSON},
		{"unterminated list", item, []string{`{"a":[1}`}, `-1`, pmda.ErrLabelJSON},
		{"bad number", item, []string{`{"a":01}`}, `-1`, pmda.ErrLabelJSON},
		{"bad word", item, []string{`{"a":nil}`}, `-1`, pmda.ErrLabelJSON},
		{"bad escape", item, []string{`{"a":"\x41"}`}, `-1`, pmda.ErrLabelJSON},
		{"control character", item, []string{"{\"a\":\"\n\"}"}, `-1`, pmda.ErrLabelJSON},
		{"NUL", item, []string{"{\"a\":1}\x00"}, `-1`, pmda.ErrLabelJSON},
		{"comma at the end", item, []string{`{"a":1,}`}, `-1`, pmda.ErrLabelJSON},
		{"a bad record does not make a good one anew", item, []string{`{`, `{"b":1,"a":2}`}, `-1 {"b":1,"a":2} a/10=2 b/10=1`, pmda.ErrLabelJSON},
		{"deep lists", item, []string{`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`}, `-1`, pmda.ErrLabelJSON},
		{"deep maps", item, []string{strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)}, `-1`, pmda.ErrLabelName},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var in []pmda.LabelRecord
			for _, r := range tt.records {
				text, optional := strings.CutPrefix(r, "?")
				in = append(in, pmda.LabelRecord{JSON: []byte(text), Optional: optional})
			}
			set, err := pmda.MergeLabels(tt.level, in)
			if got := showLabels(set); got != tt.want {
				t.Errorf("set\n got %s\nwant %s", got, tt.want)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			checkSet(t, set)
		})
	}
}

// numbered is a record with labels x000, x001, ...
func numbered(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"x%05d":%d`, from+i, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func TestMergeLabelsLimits(t *testing.T) {
	name := func(n int) string { return `{"` + strings.Repeat("n", n) + `":1}` }
	text := func(n int) string { return `{"t":"` + strings.Repeat("t", n-len(`{"t":""}`)) + `"}` }
	deepName := strings.Repeat("n", 126)
	tests := []struct {
		name    string
		records []string
		labels  int
		err     error
	}{
		{"name of 254 bytes", []string{name(254)}, 1, nil},
		{"name of 255 bytes", []string{name(255)}, 0, pmda.ErrLabelName},
		{"dotted name of 254 bytes", []string{`{"` + deepName + `":{"` + deepName + `m":1}}`}, 1, nil},
		{"dotted name of 255 bytes", []string{`{"` + deepName + `":{"` + deepName + `mm":1}}`}, 0, pmda.ErrLabelName},
		{"254 labels", []string{numbered(0, 254)}, 254, nil},
		{"255 labels", []string{numbered(0, 255)}, 0, pmda.ErrLabelSize},
		{"10000 labels", []string{numbered(0, 5000)}, 0, pmda.ErrLabelSize},
		{"254 labels in two records", []string{numbered(0, 200), numbered(300, 54)}, 254, nil},
		{"255 labels in two records", []string{numbered(0, 200), numbered(300, 55)}, 200, pmda.ErrLabelSize},
		{"the same labels again", []string{numbered(0, 254), numbered(0, 254)}, 254, nil},
		{"something smaller still fits", []string{numbered(0, 200), numbered(300, 55), numbered(400, 54)}, 254, pmda.ErrLabelSize},
		{"65533 bytes", []string{text(65533)}, 1, nil},
		{"65534 bytes", []string{text(65534)}, 0, pmda.ErrLabelSize},
		{"65533 bytes in two records", []string{text(65533 - len(`,"a":1`)), `{"a":1}`}, 2, nil},
		{"65534 bytes in two records", []string{text(65534 - len(`,"a":1`)), `{"a":1}`}, 1, pmda.ErrLabelSize},
		{"too long with dotted names", []string{`{"` + strings.Repeat("m", 240) + `":` + text(65000) + `,"b":2}`, `{"a":1}`}, 3, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := pmda.MergeLabels(pcpwire.LabelItem, records(tt.records...))
			if len(set.Labels) != tt.labels {
				t.Errorf("%d labels, want %d", len(set.Labels), tt.labels)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			checkSet(t, set)
		})
	}
}

// checkSet makes sure that a set can be sent and read: its text is an object,
// and its index has the names and values in it, sorted by name.
func checkSet(t testing.TB, set pcpwire.LabelSet) {
	t.Helper()
	if set.Inst != pcpwire.InstNull || set.Err != 0 {
		t.Errorf("instance %d, error %d", set.Inst, set.Err)
	}
	if len(set.Labels) == 0 {
		if set.JSON != nil {
			t.Errorf("text without labels: %q", set.JSON)
		}
		return
	}
	if _, err := (&pcpwire.LabelPDU{Sets: []pcpwire.LabelSet{set}}).AppendBinary(nil); err != nil {
		t.Fatalf("cannot be sent: %v", err)
	}
	if len(set.JSON) > 65533 || len(set.Labels) > 254 {
		t.Errorf("%d labels of %d bytes", len(set.Labels), len(set.JSON))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(set.JSON, &members); err != nil {
		t.Fatalf("%v: %s", err, set.JSON)
	}
	if len(members) != len(set.Labels) {
		t.Errorf("%d labels for %d members", len(set.Labels), len(members))
	}
	var last []byte
	for _, l := range set.Labels {
		name := set.JSON[l.NameOff:][:l.NameLen]
		value := set.JSON[l.ValueOff:][:l.ValueLen]
		if bytes.Compare(last, name) >= 0 {
			t.Errorf("%q comes after %q", name, last)
		}
		if !bytes.Equal(members[string(name)], value) {
			t.Errorf("%q is %s, and %s in the text", name, value, members[string(name)])
		}
		last = name
	}
}

// FuzzMergeLabels takes records separated by NUL.
func FuzzMergeLabels(f *testing.F) {
	for _, s := range []string{
		`{"a":1}`, `{"b":1,"a":2}` + "\x00" + `{"a":{"c":[1,{"d":"}"}]}}`, `{"a":"\"\\"}`, `{"a":{}}`, "{\"a\":\"\xff\"}",
		`{"m":{"a":1,"a":2}}`, `{"a-b":{"c":1}}` + "\x00[]", `{"a":` + strings.Repeat("[", 100), strings.Repeat(`{"a":`, 200), `{"a":"x`,
		`{"a":{"b":{"c":{}}}}` + "\x00" + `{"a":null}`, ` { "a" : [ ] , "b" : { } } `, numbered(0, 255), numbered(0, 250) + "\x00" + numbered(250, 5),
	} {
		f.Add([]byte(s), uint8(pcpwire.LabelItem))
		f.Add([]byte(s), uint8(pcpwire.LabelInstances))
	}
	f.Fuzz(func(t *testing.T, data []byte, level uint8) {
		texts := bytes.Split(data, []byte{0})
		in := make([]pmda.LabelRecord, len(texts))
		for i, text := range texts {
			in[i] = pmda.LabelRecord{JSON: text, Optional: i%2 == 1}
		}
		set, err := pmda.MergeLabels(pcpwire.LabelLevel(level), in)
		checkSet(t, set)
		if err == nil {
			checkComplete(t, set, in)
		}
	})
}

// checkComplete makes sure that a set has just the labels of its records, by
// decoding them in another way.
func checkComplete(t *testing.T, set pcpwire.LabelSet, in []pmda.LabelRecord) {
	t.Helper()
	want := map[string]bool{}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		m, ok := v.(map[string]any)
		if !ok || len(m) == 0 && prefix != "" {
			want[prefix] = true
			return
		}
		for name, v := range m {
			walk(strings.TrimPrefix(prefix+"."+name, "."), v)
		}
	}
	for _, r := range in {
		var v any
		if err := json.Unmarshal(r.JSON, &v); err != nil {
			t.Fatalf("no error for %q: %v", r.JSON, err)
		}
		walk("", v)
	}
	if len(set.Labels) != len(want) {
		t.Errorf("%d labels, want %v", len(set.Labels), want)
	}
	for _, l := range set.Labels {
		if name := string(set.JSON[l.NameOff:][:l.NameLen]); !want[name] {
			t.Errorf("label %q, want %v", name, want)
		}
	}
}
