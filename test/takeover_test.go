package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"pmdammv/test/mmvimage"
)

// TestTakeOver puts this agent in the place of PCP's in a running pmcd. What clients are told of the same files stays the same.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	p := startPMCDWith(t, pcpAgent(t), "-U", me(t))
	for name, image := range goodImages() {
		switch name {
		case "running": // its values change
		case "nans", "gaps", "empty_indom": // listed differences
		default:
			write(t, filepath.Join(p.mmv, name), image)
		}
	}
	ask := func() string {
		all := p.pminfo(t, "-dfmtT", "mmv") + withoutHost(t, p.pminfo(t, "-l", "mmv"))
		// Each metric is a paragraph. Those of the agent itself have texts of its own.
		return regexp.MustCompile(`(?ms)^mmv\.control\..*?(\n\n|\z)`).ReplaceAllString(all, "")
	}
	before := ask()
	if n := strings.Count(before, "PMID: 70."); n < 75 {
		t.Fatalf("only %d metrics:\n%s", n, before)
	}

	agent := must[string](t)(agentPath())
	file := filepath.Join(p.dir, "etc", "pmcd.conf")
	text := string(must[[]byte](t)(os.ReadFile(file)))
	line := "mmv 70 pipe binary " + agent + " -d 70"
	text = regexp.MustCompile(`(?m)^mmv .*$`).ReplaceAllString(text, line)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // pmcd's configuration is no secret
		t.Fatal(err)
	}
	if err := syscall.Kill(p.pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "pmcd starts the other agent", func() bool {
		p.pminfo(t, "mmv.control.files") // pmcd heeds the signal when a client comes
		p.agent = p.child(t, agent)
		return p.agent != 0
	})
	if d := diff(before, ask()); d != "" {
		t.Errorf("(-PCP's agent +this one)\n%s", d)
	}
}

// TestRestart: numbers that the agent chose are the same after a restart, whatever files have come in between.
func TestRestart(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	agent := must[string](t)(agentPath())
	auto := mmvimage.New(1).
		InDom(9, "", "", mmvimage.Inst{ID: 0, Name: "a"}).
		Metric(mmvimage.Metric{Name: "value", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 9}).Build()
	names := []string{"mmv.m.value", "mmv.p.value", "mmv.q.value"}
	ask := func(d *dbpmda) string {
		var b strings.Builder
		for _, n := range names {
			b.WriteString(d.ask(t, "pmid "+n) + d.ask(t, "desc "+n))
		}
		return b.String()
	}
	for _, f := range []string{"p", "q", "m"} {
		write(t, filepath.Join(mmv, f), auto)
	}
	d := startDbpmda(t, env, agent)
	before := ask(d)
	if got := len(pmidText.FindAllString(before, -1)); got != len(names) {
		t.Fatalf("%d metrics of %d:\n%s", got, len(names), before)
	}
	d.end(t)
	for _, f := range []string{"a", "n", "z"} {
		write(t, filepath.Join(mmv, f), auto)
	}
	d = startDbpmda(t, env, agent)
	expect(t, "a new file", d.ask(t, "fetch mmv.a.value"), "value 0")
	if diff := diff(before, ask(d)); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

// TestFirstRequest: labels and texts, of indoms too, are there when nothing else was asked before.
func TestFirstRequest(t *testing.T) {
	t.Parallel()
	agent := must[string](t)(agentPath())
	for command, want := range map[string]string{
		"label cluster 70.333":      "zz=1",
		"label indom 70.681985":     "indom=true",
		"label instances 70.681985": "inst=null",
		"label item 70.333.1":       "item=[1,2]",
		"text indom 70.681985":      "[one-line]\nfull text",
		"text 70.333.1":             "[short]\nhelp",
	} {
		mmv, env := agentDir(t)
		write(t, filepath.Join(mmv, "full"), fullImage(3).Build())
		expect(t, command, startDbpmda(t, env, agent).ask(t, command), want)
	}
}
