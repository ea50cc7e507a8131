package test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// difference is one way in which this agent's answers differ from those of PCP's own on purpose.
type difference struct {
	reason  string
	command *regexp.Regexp // which commands' answers it is about
	lines   *regexp.Regexp // which lines of either answer it is about; nil: all
}

var differences = []difference{
	{
		reason:  "help texts of control metrics are each agent's own words",
		command: regexp.MustCompile(`^text (mmv\.control\.|70\.0\.)`),
	},
	{
		reason:  "control metrics that PCP's agent does not have",
		command: regexp.MustCompile(`^(traverse|children) mmv(\.control)?$`),
		lines:   regexp.MustCompile(`\.control\.(pending|rejected|reloads|faults|file\..*)$|leaf (pending|rejected|reloads|faults|file)$`),
	},
	{
		reason:  "PCP's agent shows a NaN that says there is no value (flag SENTINEL)",
		command: regexp.MustCompile(`^fetch .*mmv\.nans\.`),
		lines:   regexp.MustCompile(`^  70\.27\.[12] |^   value nan$`),
	},
	{
		reason:  "PCP's agent denies that there is a metric without values when asked for its texts",
		command: regexp.MustCompile(`^text mmv\.(gaps\.nothing|gaps\.none|empty_indom\.none)$`),
		lines:   regexp.MustCompile(`^Error PDU: (Unknown or illegal metric identifier|One-line or help text is not available)$`),
	},
	{
		reason:  "while a file is incomplete, mmv.control.reload is 1 even if 0 was just stored",
		command: regexp.MustCompile(`^store mmv\.control\.reload "1"$`),
		lines:   regexp.MustCompile(`^70\.0\.0: [01] -> 1$`),
	},
	{
		reason:  "PCP 6 knows no help texts of indoms, and PCP 7 does not find them",
		command: regexp.MustCompile(`^text indom `),
	},
}

// explained gives the reasons for the difference between two answers, none when it is not listed.
func explained(command, pcp, ours string) []string {
	var reasons []string
	for _, d := range differences {
		if !d.command.MatchString(command) {
			continue
		}
		reasons = append(reasons, d.reason)
		if d.lines == nil {
			return reasons
		}
		if pcp, ours = without(d.lines, pcp), without(d.lines, ours); pcp == ours {
			return reasons
		}
	}
	return nil
}

func without(lines *regexp.Regexp, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !lines.MatchString(strings.TrimRight(line, "\n")) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// compare runs one session with PCP's agent and with this one, each on the same files, and fails on every difference
// that is not listed. plan makes the session, asking PCP's agent what there is.
func compare(t *testing.T, files map[string][]byte, plan func(d *dbpmda) []string) {
	t.Helper()
	need(t, pcpConf, dbpmdaBin)
	start := func(agent string) *dbpmda {
		mmv, env := agentDir(t)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			write(t, filepath.Join(mmv, name), files[name])
		}
		d := startDbpmda(t, env, agent, "-U", me(t))
		d.ask(t, "getdesc on")
		d.ask(t, "getiname on")
		return d
	}
	planner := start(pcpAgent(t))
	planner.ask(t, "fetch mmv.control.files")
	commands := plan(planner)
	if len(commands) < 30 {
		t.Fatalf("the session is too short to tell anything: %q", commands)
	}
	pcp, ours := start(pcpAgent(t)), start(must[string](t)(agentPath()))
	lines, reasons := 0, map[string]int{}
	for _, c := range commands {
		want, got := pcp.ask(t, c), ours.ask(t, c)
		lines += 1 + strings.Count(want, "\n")
		if want == got {
			continue
		}
		why := explained(c, want, got)
		for _, reason := range why {
			reasons[reason]++
		}
		if len(why) == 0 {
			t.Errorf("%s (-PCP's agent +this one)\n%s", c, diff(want, got))
		}
	}
	t.Logf("%d commands, %d lines; listed differences: %v", len(commands), lines, reasons)
}

// TestCompareAll: one long session on the files of real writers and generated ones, all at once.
func TestCompareAll(t *testing.T) {
	t.Parallel()
	files := goodImages()
	maps.Copy(files, writtenFiles(t))
	compare(t, files, func(d *dbpmda) []string {
		// What PCP's agent loads at its first request that is not about labels.
		ask := append([]string{"fetch mmv.control.files"}, questions(d, t, "mmv")...)
		for _, name := range []string{"mmv.full1.t2.each", "mmv.c3.disk.reads", "mmv.extreme_numbers.each", "mmv.gaps.some"} {
			ask = append(ask, profiles(d, t, name)...)
		}
		return append(ask, errands()...)
	})
}

// TestCompareEach: a session on each file alone.
func TestCompareEach(t *testing.T) {
	t.Parallel()
	for name, image := range goodImages() {
		t.Run(name, func(t *testing.T) {
			compare(t, map[string][]byte{name: image}, func(d *dbpmda) []string {
				return append([]string{"fetch mmv.control.files"}, questions(d, t, "mmv")...)
			})
		})
	}
}

// writtenFiles are what libpcp_mmv writes in each version.
func writtenFiles(t *testing.T) map[string][]byte {
	t.Helper()
	need(t, mmvHeader)
	writerBin := must[string](t)(writerPath())
	mmv, env := agentDir(t)
	out := map[string][]byte{}
	for _, version := range []string{"1", "2", "3"} {
		name := "c" + version
		startWriter(t, env, writerBin, version, name, "10"+version, "0").end(t)
		out[name] = must[[]byte](t)(os.ReadFile(filepath.Join(mmv, name)))
	}
	return out
}
