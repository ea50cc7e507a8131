package list_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/list"
	"pmdammv/pkg/exporter"
	img "pmdammv/test/mmvimage"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

func golden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got)\n%s", name, d)
	}
}

// host is a directory of files, and the configuration that makes it the host's.
func host(t testing.TB, files map[string][]byte) map[string]string {
	t.Helper()
	tmp := t.TempDir()
	if err := os.Mkdir(filepath.Join(tmp, "mmv"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if err := img.Write(filepath.Join(tmp, "mmv", name), b); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"PCP_TMP_DIR": tmp, "PCP_VAR_DIR": tmp, "PCP_VERSION": "7.2.1"}
}

func run(t testing.TB, conf map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &cli.Env{Program: "pmdammv", Stdout: &out, Err: &errs, Conf: func(name string) string { return conf[name] }}
	status = list.NewCommand(e).Run(args)
	return status, out.String(), errs.String()
}

const (
	counts  = 1 << 20
	bytes64 = 1<<28 | 1<<16           // Kbyte
	msec    = 1<<24 | 2<<12           // millisec
	speed   = 1<<28 | 0xf<<24 | 3<<12 // byte / sec
)

// shop is a file with every type, texts and labels.
func shop() []byte {
	metric := func(name string, item uint32, typ, sem int32, units uint32, v img.Value) img.Metric {
		return img.Metric{Name: name, Item: item, Type: typ, Sem: sem, Units: units, Values: []img.Value{v}}
	}
	help := metric("visits", 1, img.U64, img.Counter, counts, img.Uint(math.MaxUint64))
	help.Short, help.Help = "people \\ who \"came\"", "Everybody who came in.\nAnd some more.\n\n"
	sales := img.Metric{
		Name: "sales", Item: 2, Type: img.I64, Sem: img.Counter, Units: counts, InDom: 3, Short: "loaves sold",
		Values: []img.Value{img.Int(12), img.Int(7), img.None()},
	}
	return img.New(3).Cluster(42).
		InDom(3, "kinds", "Kinds of bread.", img.Inst{ID: 0, Name: "rye"}, img.Inst{ID: -5, Name: `with "quotes"`}, img.Inst{ID: 9, Name: "none yet"}).
		Metric(help).Metric(sales).
		Metric(metric("i32", 3, img.I32, img.Instant, 0, img.Int32(-1))).
		Metric(metric("mem", 4, img.U32, img.Instant, bytes64, img.Int32(-1))).
		Metric(metric("busy_milliseconds", 5, img.I64, img.Counter, msec, img.Int(1500))).
		Metric(metric("float", 6, img.Float, img.Instant, speed, img.Float32(0.1))).
		Metric(metric("double", 7, img.Double, img.Discrete, 0, img.Float64(1e100/3))).
		Metric(metric("nan", 8, img.Double, img.Instant, 0, img.Float64(math.NaN()))).
		Metric(metric("inf", 9, img.Double, img.Instant, 0, img.Float64(math.Inf(-1)))).
		Metric(metric("lost", 10, img.Double, img.Counter, 0, img.Float64(math.NaN()))).
		Metric(metric("text", 11, img.String, img.Discrete, 0, img.Text("a \"b\"\\\nc"))).
		Metric(metric("text.again", 12, img.String, img.Discrete, 0, img.Text("never seen"))).
		Metric(metric("a.b_c", 13, img.I64, img.Instant, 0, img.Int(1))).
		Metric(metric("a_b.c", 14, img.I64, img.Instant, 0, img.Int(2))).
		Metric(metric("none", 15, img.NoSupport, img.Instant, 0, img.Int(2))).
		Metric(metric("odd", 16, img.I64, 9, 0, img.Int(2))).
		Label(img.LabelCluster, 42, -1, `{"owner":"me \"too\""}`).
		Label(img.LabelItem, 2, -1, `{"map":{"a":1,"b":[1,2]}}`).
		Label(img.LabelItem, 1, -1, `{"7up":true}`).
		Label(img.LabelInDom, 3, -1, `{"kind":"bread"}`).
		Label(img.LabelInstances|img.LabelOptional, 3, 0, `{"grain":"rye"}`).
		Label(img.LabelInstances, 3, -5, `{"instname":"mine"}`).Build()
}

func TestGoldens(t *testing.T) {
	conf := host(t, map[string][]byte{"shop": shop()})
	for _, c := range []struct {
		file string
		args []string
	}{
		{"names.txt", nil},
		{"all.txt", []string{"-dfltTm", "mmv.shop"}},
		{"json.txt", []string{"--json", "mmv.shop"}},
		{"openmetrics.txt", []string{"--openmetrics", "mmv.shop"}},
		{"prometheus.txt", []string{"--prometheus", "mmv.shop"}},
		{"numbers.txt", []string{"-tlT", "70.42.2", "70.86019", "mmv.shop.i32"}},
	} {
		status, out, _ := run(t, conf, c.args...)
		if status != 0 {
			t.Errorf("%s: status %d", c.file, status)
		}
		golden(t, c.file, out)
		if c.args != nil && c.args[0] == "--json" {
			var doc []map[string]any
			if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc) != 15 {
				t.Errorf("%d metrics, %v", len(doc), err)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	conf := host(t, map[string][]byte{"shop": shop(), "client-1": shop()})
	empty := host(t, nil)
	for _, c := range []struct {
		name      string
		conf      map[string]string
		args      []string
		status    int
		out, errs []string // parts of it; nil: nothing
	}{
		{"unknown name", conf, []string{"mmv.nix", "mmv.shop.i32"}, 1, []string{"mmv.shop.i32\n"}, []string{"Error: mmv.nix: Unknown metric name\nHint: "}},
		{"unknown PMID", conf, []string{"70.1.1"}, 1, nil, []string{"Error: 70.1.1: Unknown or illegal metric identifier\n"}},
		{"a file that is not exported", conf, []string{"-f", "mmv.shop.i32"}, 0, []string{"\nmmv.shop.i32\n    value -1\n"}, []string{"'pmdammv check' tells why"}},
		{"another directory", empty, []string{"--dir", filepath.Join(conf["PCP_TMP_DIR"], "mmv"), "--sanitize-names", "mmv.client_1.i32"}, 0, []string{"mmv.client_1.i32\n"}, []string{"Hint: "}},
		{"another domain and prefix", conf, []string{"--dir", filepath.Join(conf["PCP_TMP_DIR"], "mmv"), "--prefix=pmproxy", "-m", "pmproxy.shop.i32"}, 0, []string{"pmproxy.shop.i32 PMID: 4.42.3\n"}, []string{"Hint: "}},
		{"nothing there", host(t, nil), []string{"mmv.shop"}, 1, nil, []string{"Unknown metric name"}},
		{"no directory", map[string]string{"PCP_TMP_DIR": "/not/there"}, []string{"mmv.shop"}, 1, nil, []string{"no files: ", "Unknown metric name"}},
		{"two forms", conf, []string{"--json", "--openmetrics"}, 2, nil, []string{"only one of"}},
		{"wrong prefix", conf, []string{"--prefix=a-b"}, 2, nil, []string{"cannot be a name's component"}},
		{"help", conf, []string{"--help"}, 0, []string{"Usage: pmdammv list [options] [metricname | pmid | indom]...", "  -f, --fetch           fetch and print values"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errs := run(t, c.conf, c.args...)
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			for _, x := range []struct {
				want []string
				got  string
			}{{c.out, out}, {c.errs, errs}} {
				for _, s := range x.want {
					if !strings.Contains(x.got, s) {
						t.Errorf("no %q in %q", s, x.got)
					}
				}
				if x.want == nil && x.got != "" {
					t.Errorf("unexpected: %q", x.got)
				}
			}
		})
	}
}

// TestIdentities: PMIDs are those that the agent has given, and nothing is
// written.
func TestIdentities(t *testing.T) {
	image := img.New(1).Metric(img.Metric{Name: "m", Item: 1, Type: img.I64, Sem: img.Instant}).Build()
	conf := host(t, map[string][]byte{"b": image})
	mmv, dir := filepath.Join(conf["PCP_TMP_DIR"], "mmv"), filepath.Join(conf["PCP_VAR_DIR"], "config", "pmda")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	contents := func() string {
		var all strings.Builder
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(e.Name() + "\n" + string(b))
		}
		return all.String()
	}
	if _, out, _ := run(t, conf, "-m", "mmv.b"); out != "mmv.b.m PMID: 70.1.1\n" || contents() != "" {
		t.Error(out, contents())
	}
	agent, err := exporter.New(exporter.Options{Dir: mmv, Prefix: "mmv", Domain: 70, Identities: filepath.Join(dir, "mmv.70.identities")})
	if err != nil {
		t.Fatal(err)
	}
	agent.Refresh()
	agent.Close()
	before := contents()
	if err := img.Write(filepath.Join(mmv, "a"), image); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := run(t, conf, "-m", "mmv.b"); out != "mmv.b.m PMID: 70.1.1\n" {
		t.Error(out, errs)
	}
	if _, out, _ := run(t, conf, "-m", "--identities=none", "mmv.b"); out != "mmv.b.m PMID: 70.2.1\n" {
		t.Error(out)
	}
	if d := cmp.Diff(before, contents()); before == "" || d != "" {
		t.Errorf("what the agent had written has changed: %s", d)
	}
}
