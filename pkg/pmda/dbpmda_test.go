package pmda_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"pmdammv/pkg/pmda"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// agentEnv makes the test binary the sample agent, to be started by dbpmda.
const agentEnv = "PMDA_SAMPLE_AGENT"

func runSampleAgent() int {
	signal.Ignore(syscall.SIGPIPE)
	agent := pmda.New(pmda.Config{Name: "sample", Domain: domain}, newSample(), nil)
	if err := agent.Serve(context.Background(), pmda.NewPipe(0, 1).Conn()); err != nil {
		fmt.Fprintln(os.Stderr, "sample agent:", err)
		return 1
	}
	return 0
}

// TestDbpmda runs the sample agent under PCP's own debugger of agents.
func TestDbpmda(t *testing.T) {
	dbpmda, err := exec.LookPath("dbpmda")
	if err != nil {
		t.Skipf("PCP is not installed, so this agent is not tried with it: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input, err := os.ReadFile("testdata/dbpmda.in")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := os.WriteFile(root, []byte("root { sample 253:*:* }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, dbpmda, "-f", "-e", "-n", root) //nolint:gosec // found in PATH
	cmd.Env = append(os.Environ(), agentEnv+"=1")
	cmd.Stdin = bytes.NewReader(bytes.ReplaceAll(input, []byte("@AGENT@"), []byte(self)))
	cmd.Stdout = &out
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("dbpmda: %v\n%s%s", err, out.Bytes(), stderr.Bytes())
	}
	got := out.String()
	for _, r := range []struct{ pattern, with string }{
		{regexp.QuoteMeta(self), "@AGENT@"},
		{regexp.QuoteMeta(filepath.Base(self)), "@AGENT@"},
		{`(?m)^_*pmResult dump from .* numpmid`, "pmResult: numpmid"},
	} {
		got = regexp.MustCompile(r.pattern).ReplaceAllLiteralString(got, r.with)
	}
	const golden = "testdata/dbpmda.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("dbpmda's output (-want +got):\n%s", diff)
	}
}
