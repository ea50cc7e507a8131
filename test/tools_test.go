package test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pmdammv/test/mmvimage"
)

// TestToolsDoc: what docs/TOOLS.md shows of commands is what they print. A line
// of "…" stands for any lines, one at a line's end for the rest of it.
func TestToolsDoc(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	for name, image := range docFiles() {
		write(t, filepath.Join(mmv, name), image)
	}
	const shownAs = "/var/lib/pcp/tmp/mmv"
	text := string(must[[]byte](t)(os.ReadFile("../docs/TOOLS.md")))
	blocks := regexp.MustCompile("(?s)```\n\\$ (pmdammv [^\n]*)\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) < 8 {
		t.Fatalf("only %d examples", len(blocks))
	}
	for _, b := range blocks {
		args := strings.Fields(strings.ReplaceAll(b[1], shownAs, mmv))[1:]
		if len(args) > 1 && args[0] == "check" { // the machine's own pmcd.conf and users are none of the example's
			args = append(args, "--username=root")
		}
		cmd := command(limit(t), must[string](t)(agentPath()), args...)
		cmd.Env = append(cmd.Env, append(env, "PCP_CONF=/dev/null")...)
		out, _ := cmd.CombinedOutput() // whatever its exit status
		got := strings.ReplaceAll(string(out), mmv, shownAs)
		got = regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`).ReplaceAllString(got, "12:00:00.000")
		if !shows(got, b[2]) {
			t.Errorf("%s (-TOOLS.md +printed)\n%s", b[1], diff(b[2], got))
		}
	}
}

// shows tells whether a text is what is shown of it.
func shows(text, shown string) bool {
	var re strings.Builder
	re.WriteString(`^`)
	for line := range strings.Lines(shown) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.TrimSpace(line) == "…":
			re.WriteString(`(?:.*\n)*?`)
		case strings.HasSuffix(line, "…"):
			re.WriteString(regexp.QuoteMeta(strings.TrimSuffix(line, "…")) + `.*\n`)
		default:
			re.WriteString(regexp.QuoteMeta(line) + `\n`)
		}
	}
	return regexp.MustCompile(re.String() + `$`).MatchString(text)
}

// docFiles are the files of the examples.
func docFiles() map[string][]byte {
	counter := func(name string, item uint32, short string, units uint32, v int64) mmvimage.Metric {
		return mmvimage.Metric{
			Name: name, Item: item, Type: mmvimage.U64, Sem: mmvimage.Counter, Units: units, Short: short,
			Values: []mmvimage.Value{mmvimage.Int(v)},
		}
	}
	const count, millisec = 1 << 20, 1<<24 | 2<<12
	sales := counter("sales", 1, "Breads sold, by kind", count, 0)
	sales.InDom, sales.Values = 3, []mmvimage.Value{mmvimage.Int(12), mmvimage.Int(7)}
	price := mmvimage.Metric{
		Name: "price", Item: 2, Type: mmvimage.Double, Sem: mmvimage.Instant, InDom: 3,
		Values: []mmvimage.Value{mmvimage.Float64(3.5), mmvimage.Float64(math.Pi)},
	}
	bread := mmvimage.Metric{Name: "bread", Item: 3, Type: mmvimage.String, Sem: mmvimage.Discrete, Values: []mmvimage.Value{mmvimage.Text("spelt")}}
	batch := mmvimage.New(1).Cluster(5).Metric(counter("runs", 1, "", count, 1)).Build()
	return map[string][]byte{
		"bakery": mmvimage.New(2).Cluster(12).Metric(counter("loaves", 1, "Loaves baked", count, 20)).
			Metric(counter("oven.busy", 2, "Time that the oven was in use", millisec, 4500)).Metric(bread).
			Metric(counter("oven.a-b", 4, "", 0, 1)).Metric(counter("doors", 2000, "", 0, 1)).Build(),
		"batch":      batch[:len(batch)-20],
		"client-123": mmvimage.New(1).Metric(counter("calls", 1, "", count, 1)).Build(),
		"shop": mmvimage.New(3).Cluster(42).InDom(3, "Kinds of bread", "", mmvimage.Inst{ID: 0, Name: "rye"}, mmvimage.Inst{ID: 1, Name: "wheat"}).
			Metric(sales).Metric(price).Label(mmvimage.LabelItem, 1, -1, `{"till":"front"}`).Build(),
		"worker": mmvimage.New(2).Generations(mmvimage.DefaultGeneration, 0).Metric(counter("jobs", 1, "", count, 1)).Build(),
		"notes":  []byte("to do: bake\n"),
	}
}
