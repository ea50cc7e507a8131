package test

import (
	"os"
	"strings"
	"testing"
)

// TestReadme: the options in the README are those that the agent tells of itself.
func TestReadme(t *testing.T) {
	t.Parallel()
	help := must[[]byte](t)(command(limit(t), must[string](t)(agentPath()), "--help").Output())
	readme := string(must[[]byte](t)(os.ReadFile("../README.md")))
	const begin, end = "```\n$ pmdammv --help\n", "```\n"
	before, rest, found := strings.Cut(readme, begin)
	shown, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("no %q", begin)
	}
	if *update {
		if err := os.WriteFile("../README.md", []byte(before+begin+string(help)+end+after), 0o644); err != nil { //nolint:gosec // part of the source tree
			t.Fatal(err)
		}
		return
	}
	if d := diff(string(help), shown); d != "" {
		t.Errorf("update it with -update (-help +README)\n%s", d)
	}
}
