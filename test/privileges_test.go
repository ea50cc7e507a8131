//go:build !race

package test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pmdammv/test/mmvimage"
)

// TestPrivilegesOfRoot: one that stays root cannot be made to run anything as somebody else, soon after its start.
func TestPrivilegesOfRoot(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	path := filepath.Join(i.dir, "mmv.socket")
	agent := startListening(t, i.pmcd, "-u", path, "-U", "root")
	waitUntil(t, "no_new_privs on all threads", func() bool {
		tasks := must[[]string](t)(filepath.Glob("/proc/" + strconv.Itoa(agent.cmd.Process.Pid) + "/task/*/status"))
		for _, task := range tasks {
			if text, err := os.ReadFile(task); err == nil && !strings.Contains(string(text), "\nNoNewPrivs:\t1\n") {
				return false
			}
		}
		return len(tasks) > 1
	})
	agent.kill(t, syscall.SIGTERM)
}

// TestPrivileges: started by root, the agent keeps nothing of it on any thread, and what it writes is PCP's user's.
// (The race detector brings in cgo, with which that cannot be done to threads that are there.)
func TestPrivileges(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	uid, gid := pcpIDs(t)
	dir := filepath.Join(i.dir, "of-its-own")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777)); err != nil { //nolint:gosec // as in TestSocket
		t.Fatal(err)
	}
	write(t, filepath.Join(i.mmv, "auto"), mmvimage.New(1).Metric(mmvimage.Metric{Name: "x", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant}).Build()) // gets a number, to be saved
	for user, ids := range map[string][2]string{"": {uid, gid}, uid: {uid, gid}, "4242": {"4242", "4242"}, "nobody": {"65534", "65534"}} {
		args := []string{"-u", filepath.Join(dir, "mmv.socket")}
		if user != "" {
			args = append(args, "-U", user)
		}
		saved := filepath.Join(i.dir, "var", "config", "pmda", "mmv.70.identities")
		for _, name := range must[[]string](t)(filepath.Glob(saved + "*")) {
			_ = os.Remove(name)
		}
		agent := startListening(t, i.pmcd, args...)
		writeText(t, i.conf, regexp.MustCompile(`(?m)^mmv .*$`).ReplaceAllString(i.text(t), "mmv 70 socket unix "+args[1]))
		i.rejoin(t, agent)
		tasks := must[[]string](t)(filepath.Glob("/proc/" + strconv.Itoa(agent.cmd.Process.Pid) + "/task/*/status"))
		for _, task := range tasks {
			text, err := os.ReadFile(task)
			if err != nil {
				continue // a thread that has ended
			}
			for name, want := range map[string]string{
				"Uid": strings.Repeat(ids[0]+"\t", 4), "Gid": strings.Repeat(ids[1]+"\t", 4), "NoNewPrivs": "1",
				"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000",
			} {
				if line := regexp.MustCompile(`(?m)^` + name + `:\t(.*)$`).FindSubmatch(text); strings.TrimSpace(want) != strings.TrimSpace(string(line[1])) {
					t.Errorf("-U %q: %s: %s, want %s", user, name, line[1], want)
				}
			}
		}
		if len(tasks) < 2 {
			t.Errorf("%d threads", len(tasks))
		}
		agent.kill(t, syscall.SIGTERM)
		st := must[fs.FileInfo](t)(os.Stat(saved))
		if s := st.Sys().(*syscall.Stat_t); st.Mode() != 0o644 || strconv.Itoa(int(s.Uid)) != ids[0] {
			t.Errorf("-U %q: identities are %v of %d", user, st.Mode(), s.Uid)
		}
	}
}
