package list_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// TestPrometheus: a scraper's parser takes it, and sees what is meant.
func TestPrometheus(t *testing.T) {
	_, out, errs := run(t, host(t, map[string][]byte{"shop": shop()}), "--prometheus", "mmv.shop")
	if !strings.Contains(errs, "mmv.shop.a.b_c is left out: ") {
		t.Errorf("%q", errs)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(out))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.Metric {
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			got = append(got, fmt.Sprintf("%s %v %s %g %q", f.GetName(), f.GetType(), strings.Join(labels, " "), v, f.GetHelp()))
		}
	}
	slices.Sort(got)
	want := []string{
		`mmv_shop_a_b_c GAUGE agent=mmv owner=me "too" 2 ""`,
		`mmv_shop_busy_milliseconds COUNTER agent=mmv owner=me "too" 1500 ""`,
		`mmv_shop_double GAUGE agent=mmv owner=me "too" 3.333333333333333e+99 ""`,
		`mmv_shop_float GAUGE agent=mmv owner=me "too" 0.1 ""`,
		`mmv_shop_i32 GAUGE agent=mmv owner=me "too" -1 ""`,
		`mmv_shop_inf GAUGE agent=mmv owner=me "too" -Inf ""`,
		`mmv_shop_lost COUNTER agent=mmv owner=me "too" NaN ""`,
		`mmv_shop_mem GAUGE agent=mmv owner=me "too" 4.294967295e+09 ""`,
		`mmv_shop_nan GAUGE agent=mmv owner=me "too" NaN ""`,
		`mmv_shop_odd COUNTER agent=mmv owner=me "too" 2 ""`,
		`mmv_shop_sales COUNTER agent=mmv instid=0 instname=rye grain=rye kind=bread map_a=1 map_b=[1,2] owner=me "too" 12 "loaves sold"`,
		`mmv_shop_sales COUNTER agent=mmv instid=4294967291 instname=mine kind=bread map_a=1 map_b=[1,2] owner=me "too" 7 "loaves sold"`,
		`mmv_shop_visits COUNTER _7up=true agent=mmv owner=me "too" 1.8446744073709552e+19 "people \\ who \"came\""`,
	}
	sorted := func(lines []string) []string { // the labels
		out := slices.Clone(lines)
		for i, l := range out {
			f := strings.Fields(l)
			slices.Sort(f)
			out[i] = strings.Join(f, " ")
		}
		slices.Sort(out)
		return out
	}
	if d := cmp.Diff(sorted(want), sorted(got)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

var (
	omMeta   = regexp.MustCompile(`^# (HELP|TYPE|UNIT) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$`)
	omSample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+)\})? ([-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?|Inf|NaN))$`)
	omEscape = regexp.MustCompile(`^(?:[^"\\]|\\["\\n])*$`)
)

// TestOpenMetrics holds the text against the rules of OpenMetrics 1.0: one
// block per family, metadata first, suffixes by type, units in names, EOF last;
// and has the parser of the older format read what both have in common.
func TestOpenMetrics(t *testing.T) {
	_, out, _ := run(t, host(t, map[string][]byte{"shop": shop()}), "--openmetrics")
	lines := strings.Split(out, "\n")
	if n := len(lines); lines[n-1] != "" || lines[n-2] != "# EOF" {
		t.Fatalf("the end is %q", lines[len(lines)-2:])
	}
	var name, typ string
	seen, series := map[string]bool{}, map[string]bool{}
	for _, line := range lines[:len(lines)-2] {
		if m := omMeta.FindStringSubmatch(line); m != nil {
			if m[2] != name {
				if seen[m[2]] {
					t.Errorf("a second block of %s", m[2])
				}
				name, typ, seen[m[2]] = m[2], "", true
			}
			switch {
			case m[1] == "TYPE":
				typ = m[3]
			case m[1] == "UNIT" && !strings.HasSuffix(name, "_"+m[3]):
				t.Errorf("%s has the unit %s", name, m[3])
			case m[1] == "HELP" && !omEscape.MatchString(m[3]):
				t.Errorf("not escaped: %s", line)
			}
			continue
		}
		m := omSample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no sample: %q", line)
			continue
		}
		if suffix, ok := map[string]string{"gauge": "", "counter": "_total", "info": "_info"}[typ]; !ok || m[1] != name+suffix {
			t.Errorf("%s in the family %s of type %q", m[1], name, typ)
		}
		if series[m[1]+m[2]] {
			t.Errorf("twice: %s", line)
		}
		series[m[1]+m[2]] = true
		if typ == "counter" && (m[3] == "NaN" || m[3][0] == '-') || typ == "info" && m[3] != "1" {
			t.Errorf("value of a %s: %s", typ, line)
		}
	}
	if len(series) < 20 {
		t.Errorf("only %d series", len(series))
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := p.TextToMetricFamilies(strings.NewReader(strings.ReplaceAll(out, " info\n", " gauge\n"))); err != nil {
		t.Error(err)
	}
}
