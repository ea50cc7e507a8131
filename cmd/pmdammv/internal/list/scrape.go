package list

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"pmdammv/pkg/pcpwire"
)

// scrape writes metrics for scrapers: with the names, types, labels and
// instances that PCP's pmproxy gives them in answer to /metrics.
//
// The older text format (Prometheus) is that of pmproxy. OpenMetrics wants more
// of names: counters end in _total, and a name that has a unit ends in it. A
// text is there the label "value" of an info; the older format has none, nor has
// pmproxy.
type scrape struct {
	*bufio.Writer
	open  bool            // OpenMetrics
	taken map[string]bool // names of families and their samples
	lost  []string        // metrics whose names are alike once dots are underscores
}

func newScrape(w io.Writer, open bool) *scrape {
	return &scrape{Writer: bufio.NewWriter(w), open: open, taken: map[string]bool{}}
}

func (s *scrape) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) } //nolint:errcheck // Flush tells

// end ends the text.
func (s *scrape) end() error {
	if s.open {
		s.printf("# EOF\n")
	}
	return s.Flush()
}

// family is a metric as scrapers have it.
type family struct {
	name, kind, unit, suffix string
}

// family names a metric; ok is false for one that the format has no room for.
func (s *scrape) family(m *metric) (f family, ok bool) {
	f.name = strings.ReplaceAll(m.name, ".", "_")
	f.kind = "gauge"
	if m.desc.Semantics != pcpwire.SemInstant && m.desc.Semantics != pcpwire.SemDiscrete {
		f.kind = "counter"
	}
	switch {
	case m.desc.Type == pcpwire.TypeNoSupport || m.desc.Type == pcpwire.TypeString && !s.open:
		return f, false
	case !s.open:
		return f, true
	case m.desc.Type == pcpwire.TypeString:
		f.name, f.kind, f.suffix = strings.TrimSuffix(f.name, "_info"), "info", "_info"
		return f, true
	}
	if f.kind == "counter" {
		f.name, f.suffix = strings.TrimSuffix(f.name, "_total"), "_total"
	}
	if f.unit = unit(m.desc.Units); f.unit != "" && !strings.HasSuffix(f.name, "_"+f.unit) {
		f.name += "_" + f.unit
	}
	return f, true
}

// unit is the name of a unit of bytes or time, or of their rates.
func unit(u pcpwire.Units) string {
	space := [...]string{"bytes", "kibibytes", "mebibytes", "gibibytes", "tebibytes", "pebibytes", "exbibytes", "zebibytes", "yobibytes"}
	times := [...]string{"nanoseconds", "microseconds", "milliseconds", "seconds", "minutes", "hours"}
	if u.ExtraUnit() != 0 || u.ScaleSpace() >= len(space) || u.ScaleTime() >= len(times) {
		return ""
	}
	per := "per_" + strings.TrimSuffix(times[u.ScaleTime()], "s")
	switch dim := [3]int{u.DimSpace(), u.DimTime(), u.DimCount()}; dim {
	case [3]int{1, 0, 0}:
		return space[u.ScaleSpace()]
	case [3]int{0, 1, 0}:
		return times[u.ScaleTime()]
	case [3]int{1, -1, 0}:
		return space[u.ScaleSpace()] + "_" + per
	case [3]int{0, -1, 0}, [3]int{0, -1, 1}:
		return per
	default:
		return ""
	}
}

// metric writes one metric, if it has values.
func (s *scrape) metric(m *metric) {
	f, ok := s.family(m)
	if !ok || m.err != nil || len(m.values.Values) == 0 {
		return
	}
	if s.taken[f.name] || s.taken[f.name+f.suffix] {
		s.lost = append(s.lost, m.name)
		return
	}
	s.taken[f.name], s.taken[f.name+f.suffix] = true, true
	if !s.open {
		s.printf("# PCP5 %s %v %s %v %v %s\n", m.name, m.pmid, strings.ToLower(m.desc.Type.String()), m.desc.InDom, m.desc.Semantics, unitsText(m.desc.Units))
	}
	if m.oneline.err == nil {
		s.printf("# HELP %s %s\n", f.name, s.escaped(m.oneline.text, false))
	}
	s.printf("# TYPE %s %s\n", f.name, f.kind)
	if f.unit != "" {
		s.printf("# UNIT %s %s\n", f.name, f.unit)
	}
	for _, v := range m.values.Values {
		s.value(m, f, v.Inst, v.Atom)
	}
}

func (s *scrape) value(m *metric, f family, inst int32, a pcpwire.AtomValue) {
	set := m.labels
	pairs := map[string]string{}
	i, known := m.byID[inst]
	if known {
		set = m.insts[i].labels
	}
	if set.err == nil {
		for _, l := range set.set.Labels {
			name := set.set.JSON[l.NameOff : int(l.NameOff)+int(l.NameLen)]
			value := set.set.JSON[l.ValueOff : int(l.ValueOff)+int(l.ValueLen)]
			pairs[labelName(string(name))] = labelValue(value)
		}
	}
	if known {
		if _, ok := pairs["instname"]; !ok {
			pairs["instname"] = m.insts[i].Name
		}
		if _, ok := pairs["instid"]; !ok {
			pairs["instid"] = strconv.FormatUint(uint64(uint32(inst)), 10)
		}
	}
	text := sample(a)
	if f.kind == "info" {
		pairs["value"], text = string(a.Str), "1"
	}
	if s.open && f.kind == "counter" && (text == "NaN" || strings.HasPrefix(text, "-")) {
		return // no counter's value there
	}
	names := make([]string, 0, len(pairs))
	for n := range pairs {
		names = append(names, n)
	}
	slices.Sort(names)
	s.printf("%s%s", f.name, f.suffix)
	for k, n := range names {
		s.printf("%s%s=\"%s\"", map[bool]string{true: "{", false: ","}[k == 0], n, s.escaped(pairs[n], true))
	}
	if len(names) > 0 {
		s.printf("}")
	}
	s.printf(" %s\n", text)
}

// labelName makes a label's name of one of PCP's, which may have dots and may
// begin with a digit.
func labelName(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c == '.' {
			b[i] = '_'
		}
	}
	if len(b) > 0 && '0' <= b[0] && b[0] <= '9' {
		return "_" + string(b)
	}
	return string(b)
}

// labelValue is the text of a value in JSON: of a string what it says, of
// anything else how it is written.
func labelValue(value []byte) string {
	var s string
	if json.Unmarshal(value, &s) == nil && len(value) > 0 && value[0] == '"' {
		return s
	}
	return strings.Trim(string(value), `"`)
}

// escaped is a text as it may stand in a HELP line, or quoted.
func (s *scrape) escaped(text string, quoted bool) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, `\`, `\\`)
	text = strings.ReplaceAll(text, "\n", `\n`)
	if quoted || s.open {
		text = strings.ReplaceAll(text, `"`, `\"`)
	}
	return text
}

// sample is a number as scrapers take it.
func sample(a pcpwire.AtomValue) string {
	var f float64
	switch a.Type {
	case pcpwire.TypeFloat:
		f = float64(a.Float())
	case pcpwire.TypeDouble:
		f = a.Double()
	default:
		return printed(a)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return scraped(f)
	}
	return printed(a)
}
