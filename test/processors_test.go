package test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// TestProcessors: soon after its start the agent runs on one processor at a time, unless it is told on how many.
func TestProcessors(t *testing.T) {
	t.Parallel()
	trace := regexp.MustCompile(`^SCHED (\d+)ms: gomaxprocs=(\d+) `)
	for _, told := range []string{"", "3"} {
		cmd := exec.Command(must[string](t)(agentPath()), "-l", "-", "--identities", "none", "-U", me(t))
		cmd.Env = append(os.Environ(), "PCP_TMP_DIR="+t.TempDir(), "GODEBUG=schedtrace=10", "GOMAXPROCS="+told)
		in := must[io.WriteCloser](t)(cmd.StdinPipe())
		out := must[io.ReadCloser](t)(cmd.StderrPipe())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		now := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			m := trace.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			ms := must[int](t)(strconv.Atoi(m[1]))
			now = must[int](t)(strconv.Atoi(m[2]))
			if told == "" && now == 1 || told != "" && ms > 200 || ms > 10000 {
				break
			}
		}
		if want, err := strconv.Atoi("0" + told); err != nil || now != max(want, 1) {
			t.Errorf("told %q it runs on %d", told, now)
		}
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
