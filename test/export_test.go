package test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each test here starts a writer and compares what pminfo prints of its metrics.

// TestLibpcpMMV: the files of PCP's own library in C, of every version.
func TestLibpcpMMV(t *testing.T) {
	need(t, mmvHeader)
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			t.Parallel()
			writerBin := must[string](t)(writerPath())
			p := startPMCD(t)
			name, cluster := fmt.Sprintf("c%d", version), strconv.Itoa(100+version)
			w := startWriter(t, p.env(), writerBin, strconv.Itoa(version), name, cluster, "0")
			w.step(t)
			w.step(t)
			golden(t, name+".pminfo", p.pminfo(t, "-dfmtT", "mmv."+name)+withoutHost(t, p.pminfo(t, "-l", "mmv."+name)))
			w.step(t)
			expect(t, "mmv."+name+".count", p.pminfo(t, "-f", "mmv."+name+".count"), "value 3")
			w.end(t)
			expect(t, "the file of a program that has ended", p.pminfo(t, "-f", "mmv."+name+".count"), "value 3")
		})
	}
}

// TestFlags: names without the file's, and numbers that the agent chooses and keeps.
func TestFlags(t *testing.T) {
	need(t, mmvHeader)
	t.Parallel()
	writerBin := must[string](t)(writerPath())
	p := startPMCD(t)
	startWriter(t, p.env(), writerBin, "2", "plain", "0", "1")
	startWriter(t, p.env(), writerBin, "1", "other", "0", "0")
	expect(t, "without a prefix", p.pminfo(t, "-f", "mmv.type.double"), "value 0.001")
	expect(t, "with one", p.pminfo(t, "-f", "mmv.other.type.double"), "value 0.001")
	expect(t, "with a prefix that is not there", p.pminfo(t, "mmv.plain"), "Error: mmv.plain: Unknown metric name")

	before := p.pminfo(t, "-m", "mmv.type.double", "mmv.other.type.double")
	clusters := regexp.MustCompile(`70\.(\d+)\.7`).FindAllString(before, -1)
	if len(clusters) != 2 || clusters[0] == clusters[1] {
		t.Errorf("two files should have numbers of their own:\n%s", before)
	}
	startWriter(t, p.env(), writerBin, "1", "first", "0", "0")
	expect(t, "a file that comes first by name", p.pminfo(t, "-f", "mmv.first.type.double"), "value 0.001")
	if d := diff(before, p.pminfo(t, "-m", "mmv.type.double", "mmv.other.type.double")); d != "" {
		t.Errorf("numbers changed when another file came (-before +after)\n%s", d)
	}
}

// TestPython: the demo's shop, which uses PCP's module for Python.
func TestPython(t *testing.T) {
	need(t, python)
	t.Parallel()
	p := startPMCD(t)
	w := startWriter(t, p.env(), python, must[string](t)(filepath.Abs("demo/shop.py")), "--step")
	for range 4 {
		w.step(t)
	}
	golden(t, "shop.pminfo", p.pminfo(t, "-dfmtT", "mmv.shop")+withoutHost(t, p.pminfo(t, "-l", "mmv.shop.sales")))
	w.end(t)
	expect(t, "a file that its program has removed", p.pminfo(t, "mmv.shop"), "Error: mmv.shop: Unknown metric name")
}

// TestSpeed: the demo's bakery, which uses Speed. That library writes metrics and instances in an order that changes
// from run to run.
func TestSpeed(t *testing.T) {
	t.Parallel()
	bakery := must[string](t)(bakeryPath())
	p := startPMCD(t)
	w := startWriter(t, p.env(), bakery, "-step")
	for range 5 {
		w.step(t)
	}
	for metric, want := range map[string][]string{
		"loaves": {
			"PMID: 70.3613.803 [Loaves baked]", "Data Type: 64-bit int  InDom: PM_INDOM_NULL 0xffffffff",
			"Semantics: counter  Units: count", "Help:\nLoaves of bread baked since the bakery opened\n", "value 5\n",
		},
		"oven.heat": {
			"PMID: 70.3613.1013 [Heat of each oven]", "Data Type: double  InDom: 70.3538824 0x11b5ff88",
			"Semantics: instant  Units: none", "Help:\nDegrees Celsius, measured at the door\n",
			"inst [-937862918 or \"stone\"] value 242.5\n", "inst [235577587 or \"steam\"] value 180\n",
		},
		"oven.busy": {
			"PMID: 70.3613.466", "Data Type: 64-bit unsigned int", "Semantics: counter  Units: millisec",
			"inst [-937862918 or \"stone\"] value 150\n", "inst [235577587 or \"steam\"] value 100\n",
		},
		"bread": {"PMID: 70.3613.997", "Data Type: string", "Semantics: discrete  Units: none", "value \"spelt\"\n"},
	} {
		expect(t, metric, p.pminfo(t, "-dfmtT", "mmv.bakery."+metric), want...)
	}
	if got := p.pminfo(t, "mmv.bakery"); strings.Count(got, "\n") != 4 {
		t.Errorf("not four metrics:\n%s", got)
	}
	w.end(t)
	expect(t, "a file that its program has removed", p.pminfo(t, "mmv.bakery"), "Error: mmv.bakery: Unknown metric name")
}

// TestDemo runs what `make demo` runs.
func TestDemo(t *testing.T) {
	need(t, pcpConf, python)
	t.Parallel()
	agent, bakery := must[string](t)(agentPath()), must[string](t)(bakeryPath())
	tmp := shared(t)
	cmd := command(limit(t), "demo/run.sh", agent, bakery)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expect(t, "the demo", string(out), "$ pminfo -dfmtT mmv\n", "$ pminfo -l mmv.shop.sales\n", `"agent":"mmv"`,
		`inst [0 or "rye"] value`, "$ pmval -s 5 -t 1 mmv.bakery.loaves\n")
	_, samples, _ := strings.Cut(string(out), "interval:  1.00 sec\n")
	if got := regexp.MustCompile(`(?m)^ +\d+\.\d+ *$`).FindAllString(samples, -1); len(got) != 5 {
		t.Errorf("pmval shows %d samples, want 5:\n%s", len(got), out)
	}
	if left := must[[]string](t)(filepath.Glob(filepath.Join(tmp, "*"))); len(left) > 0 {
		t.Errorf("the demo left %q behind", left)
	}
}

// expect fails when one of the texts is not in what was printed.
func expect(t testing.TB, what, printed string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(printed, text) {
			t.Errorf("%s: no %q in\n%s", what, text, printed)
		}
	}
}
