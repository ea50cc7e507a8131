package test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestManPage: the page and --help tell of the same options.
func TestManPage(t *testing.T) {
	help := must[[]byte](t)(command(limit(t), must[string](t)(agentPath()), "--help").CombinedOutput())
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-(.), )?--([a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
		want = append(want, m[1]+" "+m[2])
	}
	page := string(must[[]byte](t)(os.ReadFile("../configs/man/pmdammv.1")))
	var got, synopsis []string
	for _, m := range regexp.MustCompile(`(?m)^\.It (?:Fl (?:\\&)?(\S)(?: Ar \S+)? , )?Fl -([a-z-]+)`).FindAllStringSubmatch(page, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if len(want) < 15 {
		t.Fatalf("--help has %d options\n%s", len(want), help)
	}
	if d := diff(strings.Join(want, "\n"), strings.Join(got, "\n")); d != "" {
		t.Errorf("options (-help +page)\n%s", d)
	}
	for _, m := range regexp.MustCompile(`(?m)^\.Op Fl -?(\S+)`).FindAllStringSubmatch(page, -1) {
		synopsis = append(synopsis, m[1])
	}
	for _, o := range want {
		short, long, _ := strings.Cut(o, " ")
		if !slices.Contains(synopsis, short) && !slices.Contains(synopsis, long) && long != "help" && long != "version" {
			t.Errorf("--%s is not in the page's synopsis", long)
		}
	}
}

// TestManLint: mandoc finds nothing in the pages.
func TestManLint(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		need(t, "/usr/bin/mandoc")
	}
	out, err := command(limit(t), mandoc, "-T", "lint", "-W", "style", "../configs/man/pmdammv.1", "../configs/man/pmdammv-format.5").CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// What other pages the machine has says nothing of these.
		if !strings.Contains(line, "outdated mandoc.db") && !strings.Contains(line, "referenced manual not found") {
			t.Error(line)
		}
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
}
