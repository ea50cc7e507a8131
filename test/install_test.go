package test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// installable is a pmcd whose tree of agents is its own and has this agent in it, not yet installed.
type installable struct {
	*pmcd
	conf string // pmcd.conf
	here string // where Install and Remove are
}

func newInstallable(t *testing.T) *installable {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("Install and Remove want root")
	}
	// The mmv metrics are at first those of PCP's agent. It is replaced, so it is not the one that must live to the end.
	p := startPMCDWith(t, pcpAgent(t), "-U", me(t))
	p.agent = 0
	i := &installable{pmcd: p, conf: filepath.Join(p.dir, "etc", "pmcd.conf"), here: filepath.Join(p.dir, "pmdas", "pmdammv")}
	pmdas := filepath.Join(p.dir, "pmdas")
	if err := os.MkdirAll(i.here, 0o755); err != nil { //nolint:gosec // pmcd may run as another user
		t.Fatal(err)
	}
	link(t, filepath.Join(conf(t, "PCP_PMDAS_DIR"), "mmv"), filepath.Join(pmdas, "mmv"))
	configs := must[string](t)(filepath.Abs("../configs"))
	for _, name := range []string{"Install", "Remove", "common.sh", "root_mmv", "root_pmproxy"} {
		must[[]byte](t)(os.ReadFile(filepath.Join(configs, name))) // shows go test that it matters
		link(t, filepath.Join(configs, name), filepath.Join(i.here, name))
	}
	for _, name := range []string{"pmdammv", "pmdapmproxy"} {
		link(t, must[string](t)(agentPath()), filepath.Join(i.here, name))
	}
	pcpConf := filepath.Join(p.dir, "etc", "pcp.conf")
	text := string(must[[]byte](t)(os.ReadFile(pcpConf)))
	for _, v := range []string{"PCP_PMDAS_DIR", "PCP_PMDASADM_DIR"} {
		text = strings.Replace(text, "\n"+v+"="+conf(t, v)+"\n", "\n"+v+"="+pmdas+"\n", 1)
	}
	writeText(t, pcpConf, text)
	return i
}

func link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func writeText(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // no secrets
		t.Fatal(err)
	}
}

func (i *installable) text(t testing.TB) string {
	t.Helper()
	return string(must[[]byte](t)(os.ReadFile(i.conf)))
}

// try runs Install or Remove; the answers are its input.
func (i *installable) try(t testing.TB, script, answers string, args ...string) (string, error) {
	t.Helper()
	cmd := i.client(t, filepath.Join(i.here, script), args...)
	cmd.Dir = i.here
	cmd.Stdin = strings.NewReader(answers)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (i *installable) run(t testing.TB, script, answers string, args ...string) string {
	t.Helper()
	out, err := i.try(t, script, answers, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, i.logs())
	}
	return out
}

// from tells whose mmv metrics pmcd has: "pcp", "ours" or "none".
func (i *installable) from(t testing.TB) string {
	t.Helper()
	switch {
	case strings.Contains(i.pminfo(t, "-f", "mmv.control.rejected"), "value 0"):
		return "ours"
	case strings.Contains(i.pminfo(t, "-f", "mmv.control.files"), "value "):
		return "pcp"
	default:
		return "none"
	}
}

func (i *installable) mustBe(t testing.TB, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := i.from(t)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the metrics are %s, not %s\n%s", got, want, i.logs())
		}
	}
}

func (i *installable) hangup(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(i.pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

const accessSection = "\n[access]\nallow \".*\" : all;\nallow \":*\" : all;\nallow \"local:*\" : all;\n"

// TestInstallRemove: a round trip leaves pmcd.conf as it was, to the byte, whatever it looks like.
func TestInstallRemove(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	pmcdLine := "pmcd 2 dso pmcd_init " + conf(t, "PCP_PMDAS_DIR") + "/pmcd/pmda_pmcd.so\n"
	mmv := conf(t, "PCP_PMDAS_DIR") + "/mmv"
	dso := "mmv\t70\tdso\tmmv_init\t" + mmv + "/pmda_mmv.so\n"
	proxy := "pmproxy\t4\tdso\tpmproxy_init\t" + mmv + "/pmda_mmv.so\n"
	ours := "mmv\t70\tpipe\tbinary\t\t" + i.here + "/pmdammv -d 70\n"
	for _, c := range []struct{ name, before, with, whose string }{
		{"dso", "# comment\n\n" + proxy + pmcdLine + dso + "# end\n" + accessSection, "# comment\n\n" + proxy + pmcdLine + ours + "# end\n" + accessSection, "pcp"},
		{"pipe", "  mmv  70 pipe binary " + mmv + "/pmdammv -U root # x\n" + pmcdLine + accessSection, ours + pmcdLine + accessSection, "pcp"},
		{"several lines", pmcdLine + "mmv 70 dso \\\n\tmmv_init\\\n " + mmv + "/pmda_mmv.so\n# mmv\n" + accessSection, pmcdLine + ours + "# mmv\n" + accessSection, "pcp"},
		{"none", "# no mmv\n#mmv 70 \\\n\n" + pmcdLine + accessSection, "# no mmv\n#mmv 70 \\\n\n" + ours + pmcdLine + accessSection, "none"},
		{"last, without an end", pmcdLine + strings.TrimSuffix(dso, "\n"), pmcdLine + ours, "pcp"},
		{"after the access section it is none", pmcdLine + dso + accessSection + "# mmv 70", pmcdLine + ours + accessSection + "# mmv 70", "pcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			writeText(t, i.conf, c.before)
			if err := os.Chmod(i.conf, 0o604); err != nil { //nolint:gosec // an odd mode, to be kept
				t.Fatal(err)
			}
			if err := os.Chown(i.conf, 0, 4242); err != nil {
				t.Fatal(err)
			}
			i.hangup(t)
			i.mustBe(t, c.whose)
			names := string(must[[]byte](t)(os.ReadFile(filepath.Join(i.dir, "var", "pmns", "root"))))
			for range 2 {
				out := i.run(t, "Install", "")
				if !strings.Contains(out, "Check mmv metrics have appeared ... ") || !strings.Contains(out, " metrics and ") {
					t.Errorf("Install says\n%s", out)
				}
				if d := diff(c.with, i.text(t)); d != "" {
					t.Fatalf("pmcd.conf (-want +got)\n%s", d)
				}
				i.mustBe(t, "ours")
			}
			for range 2 {
				i.run(t, "Remove", "")
				if d := diff(c.before, i.text(t)); d != "" {
					t.Fatalf("pmcd.conf (-want +got)\n%s", d)
				}
				i.mustBe(t, c.whose)
			}
			st := must[fs.FileInfo](t)(os.Stat(i.conf))
			if s := st.Sys().(*syscall.Stat_t); st.Mode() != 0o604 || s.Uid != 0 || s.Gid != 4242 {
				t.Errorf("pmcd.conf is %v %d:%d", st.Mode(), s.Uid, s.Gid)
			}
			if got := string(must[[]byte](t)(os.ReadFile(filepath.Join(i.dir, "var", "pmns", "root")))); got != names {
				t.Errorf("the name space was\n%s\nand is\n%s", names, got)
			}
			i.tidy(t)
		})
	}
}

// tidy checks that nothing is left behind.
func (i *installable) tidy(t testing.TB) {
	t.Helper()
	for _, dir := range []string{i.here, filepath.Dir(i.conf), filepath.Join(i.dir, "tmpfile"), filepath.Join(i.dir, "var", "pmns")} {
		for _, e := range must[[]fs.DirEntry](t)(os.ReadDir(dir)) {
			switch e.Name() {
			case "Install", "Remove", "common.sh", "root_mmv", "root_pmproxy", "pmdammv", "pmdapmproxy", "pcp.conf", "pmcd.conf", "labels", "root":
			default:
				t.Errorf("%s is left in %s", e.Name(), dir)
			}
		}
	}
}

// TestInstallOtherEdits: what others change in pmcd.conf between Install and Remove stays.
func TestInstallOtherEdits(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	before := i.text(t)
	i.run(t, "Install", "")
	line, _, _ := strings.Cut(must[string](t)(find(i.text(t), "mmv\t70\tpipe")), "\n")

	// Options that somebody adds to the entry stay with another Install.
	edited := "# one more comment\n" + strings.Replace(i.text(t), line, line+" --file-metrics=off", 1)
	writeText(t, i.conf, edited)
	i.run(t, "Install", "")
	if d := diff(edited, i.text(t)); d != "" {
		t.Errorf("after another Install (-want +got)\n%s", d)
	}
	i.run(t, "Remove", "")
	if d := diff("# one more comment\n"+before, i.text(t)); d != "" {
		t.Errorf("after Remove (-want +got)\n%s", d)
	}

	// An entry that is not this agent's any more is not touched.
	i.run(t, "Install", "")
	theirs := strings.Replace(i.text(t), line, "mmv 70 dso mmv_init "+conf(t, "PCP_PMDAS_DIR")+"/mmv/pmda_mmv.so", 1)
	writeText(t, i.conf, theirs)
	if out := i.run(t, "Remove", ""); !strings.Contains(out, "not this agent's any more") {
		t.Errorf("Remove says\n%s", out)
	}
	if d := diff(theirs, i.text(t)); d != "" {
		t.Errorf("after Remove (-want +got)\n%s", d)
	}
	i.tidy(t)
}

// find is the text from that word on.
func find(text, word string) (string, error) {
	n := strings.Index(text, word)
	if n < 0 {
		return "", fmt.Errorf("no %q in\n%s", word, text)
	}
	return text[n:], nil
}

// TestInstallSocket: over a socket, with pmproxy's metrics too, and back to a pipe.
func TestInstallSocket(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	before := i.text(t)
	path := filepath.Join(i.dir, "of-its-own", "mmv.socket")
	agent := startAgent(t, i.pmcd, "-u", path)
	out := i.run(t, "Install", "neither\nsocket\n"+path+"\ny\n", "-e")
	if !strings.Contains(i.text(t), "\nmmv\t70\tsocket\tunix\t"+path+"\n") || !strings.Contains(i.text(t), "pmproxy\t4\tpipe\tbinary\t\t") {
		t.Errorf("pmcd.conf\n%s\nInstall says\n%s", i.text(t), out)
	}
	if !strings.Contains(out, "[pipe] neither\n") || !strings.Contains(out, "Check pmproxy metrics have appeared ... ") {
		t.Errorf("Install -e says\n%s", out)
	}
	i.mustBe(t, "ours")
	if out := i.pminfo(t, "-f", "pmproxy.control.files"); !strings.Contains(out, "value 0") {
		t.Error(out)
	}
	// The way that there is already is what is offered.
	if out := i.run(t, "Install", "\n"+path+"\n\n"); !strings.Contains(out, "[socket]") {
		t.Errorf("Install says\n%s", out)
	}
	i.run(t, "Install", "pipe\n")
	if !strings.Contains(i.text(t), "\nmmv\t70\tpipe\tbinary\t\t"+i.here) {
		t.Errorf("pmcd.conf\n%s", i.text(t))
	}
	i.mustBe(t, "ours")
	i.run(t, "Remove", "")
	if d := diff(before, i.text(t)); d != "" {
		t.Errorf("after Remove (-want +got)\n%s", d)
	}
	i.mustBe(t, "pcp")
	i.tidy(t)
	agent.mustRun(t)
}

// TestInstallSilent is what pmcd's start script does: no input, no output, and the status tells.
func TestInstallSilent(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	before := i.text(t)
	silent := func(script string) error {
		cmd := i.client(t, filepath.Join(i.here, script))
		cmd.Env = append(cmd.Env, "PMDA_SETUP_RUNNING=yes")
		cmd.Dir = i.here
		return cmd.Run()
	}
	if err := silent("Install"); err != nil {
		t.Fatal(err)
	}
	i.mustBe(t, "ours")
	if err := silent("Remove"); err != nil {
		t.Fatal(err)
	}
	// The files' directory is made when it is missing.
	if err := os.RemoveAll(i.mmv); err != nil {
		t.Fatal(err)
	}
	if err := silent("Install"); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(i.mmv); err != nil || st.Mode().Perm() != 0o775 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := silent("Remove"); err != nil {
		t.Fatal(err)
	}
	// An agent that does not work is not left in pmcd.conf.
	agent := filepath.Join(i.here, "pmdammv")
	if err := os.Remove(agent); err != nil {
		t.Fatal(err)
	}
	if err := silent("Install"); err == nil {
		t.Error("Install without a program succeeds")
	}
	if d := diff(before, i.text(t)); d != "" {
		t.Errorf("without a program (-want +got)\n%s", d)
	}
	link(t, "/bin/false", agent)
	out, err := i.try(t, "Install", "")
	if err == nil || !strings.Contains(out, "the agent does not answer") {
		t.Errorf("Install of a program that fails: %v\n%s", err, out)
	}
	if d := diff(before, i.text(t)); d != "" {
		t.Errorf("with a program that fails (-want +got)\n%s", d)
	}
	i.mustBe(t, "pcp")
	i.tidy(t)
}

// TestInstallRefuses: what cannot be done is said, with a failing status, and nothing is changed.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	good := i.text(t)
	for _, c := range []struct {
		name, conf, says string
		env              []string
		args             []string
	}{
		{"two entries", strings.Replace(good, "mmv 70", "mmv 70 dso mmv_init /x\nmmv 70", 1), "more than one entry", nil, nil},
		{"number taken", strings.Replace(good, "mmv 70", "other 70", 1), "other has the number 70", nil, nil},
		{"ROOT", good, "use -R", []string{"ROOT=/elsewhere"}, nil},
		{"unknown option", good, "Usage: Install", nil, []string{"-x"}},
		{"argument", good, "Usage: Install", nil, []string{"x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			writeText(t, i.conf, c.conf)
			cmd := i.client(t, filepath.Join(i.here, "Install"), c.args...)
			cmd.Env = append(cmd.Env, c.env...)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, and says\n%s", err, out)
			}
			if d := diff(c.conf, i.text(t)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			i.tidy(t)
		})
	}
}

// TestInstallElsewhere: -R changes another tree and tells no pmcd; -n is for another name space; what has been lost does
// not keep Remove from its work.
func TestInstallElsewhere(t *testing.T) {
	t.Parallel()
	i := newInstallable(t)
	before := i.text(t)
	other := t.TempDir()
	tree := &installable{pmcd: i.pmcd, conf: filepath.Join(other, i.conf), here: filepath.Join(other, i.here)}
	for _, dir := range []string{filepath.Dir(tree.conf), filepath.Dir(tree.here)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("cp", "-r", i.here, tree.here).CombinedOutput(); err != nil { //nolint:gosec // the test's own files
		t.Fatalf("%v\n%s", err, out)
	}
	writeText(t, tree.conf, before)
	i.run(t, "Install", "", "-R", other)
	if d := diff(before, i.text(t)); d != "" {
		t.Errorf("Install -R changed this tree (-want +got)\n%s", d)
	}
	if want := "\tpipe\tbinary\t\t" + i.here + "/pmdammv -d 70\n"; !strings.Contains(tree.text(t), want) {
		t.Errorf("pmcd.conf of the other tree has no %q\n%s", want, tree.text(t))
	}
	if st, err := os.Stat(filepath.Join(other, i.mmv)); err != nil || !st.IsDir() {
		t.Error(err)
	}
	i.run(t, "Remove", "", "-R", other)
	if d := diff(before, tree.text(t)); d != "" {
		t.Errorf("after Remove -R (-want +got)\n%s", d)
	}
	i.mustBe(t, "pcp")

	// A name space without mmv gets it, and loses it again.
	names := filepath.Join(i.dir, "names")
	without := "root {\n\tpmcd\n}\npmcd {\n\tversion\t2:0:3\n}\n"
	writeText(t, names, without)
	out := i.run(t, "Install", "", "-n", names, "-V")
	if !strings.Contains(out, "Adding mmv to the name space") || !strings.Contains(out, "\nmmv.control.files 1 ") {
		t.Errorf("Install -n -V says\n%s", out)
	}
	if err := os.Remove(filepath.Join(i.here, ".mmv.replaced")); err != nil {
		t.Fatal(err)
	}
	i.run(t, "Remove", "", "-n", names)
	if text := string(must[[]byte](t)(os.ReadFile(names))); strings.Contains(text, "mmv") {
		t.Errorf("name space\n%s", text)
	}
	want := "mmv\t70\tdso\tmmv_init\t" + filepath.Dir(i.here) + "/mmv/pmda_mmv.so"
	if !strings.Contains(i.text(t), "\n"+want+"\n") {
		t.Errorf("pmcd.conf has no %q\n%s", want, i.text(t))
	}
	i.mustBe(t, "pcp")
	i.tidy(t)
}

// daemon is an agent that listens.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// startAgent starts one for the test, in the place where that pmcd's programs look.
func startAgent(t testing.TB, p *pmcd, args ...string) *daemon {
	t.Helper()
	log := filepath.Join(p.dir, "log", "pmcd", "mmv.log")
	ctx, cancel := context.WithCancel(context.Background())
	d := &daemon{cmd: command(ctx, must[string](t)(agentPath()), append([]string{"-d", "70", "-l", log}, args...)...), done: make(chan struct{})}
	d.cmd.Env = append(d.cmd.Env, p.env()...)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.done)
		_ = d.cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-d.done
	})
	return d
}

func (d *daemon) mustRun(t testing.TB) {
	t.Helper()
	select {
	case <-d.done:
		t.Errorf("the agent has ended: %v", d.cmd.ProcessState)
	default:
	}
}

// kill ends the agent and waits for its end.
func (d *daemon) kill(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	<-d.done
}
