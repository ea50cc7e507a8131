package check_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/cmd/pmdammv/internal/check"
	"pmdammv/cmd/pmdammv/internal/cli"
	img "pmdammv/test/mmvimage"
)

// run runs the command as on a host whose PCP_TMP_DIR is tmp.
func run(t testing.TB, conf map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &cli.Env{
		Program: "pmdammv", Stdout: &out, Err: &errs, Conf: func(name string) string { return conf[name] },
		ConfFile: func(name string) string { return conf["pcp.conf "+name] },
	}
	status = check.NewCommand(e).Run(args)
	return status, out.String(), errs.String()
}

// golden compares with a file of testdata.
func golden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(read(t, file)), got); d != "" {
		t.Errorf("%s (-want +got)\n%s", name, d)
	}
}

// host is a directory with a bit of everything.
func host(t testing.TB) (dir string, conf map[string]string) {
	t.Helper()
	dir = directory(t, map[string][]byte{
		"bakery":   image(5, 0, one("loaves", 1), one("oven.heat", 2)),
		"client-1": image(0, 0, one("calls", 1)),
		"half":     img.New(2).Generations(5, 0).Metric(one("m", 1)).Build(),
		"notes":    []byte("{\"a\": \"\x1b[31m\"}"),
		"shop":     image(5, 0, one("sales", 1), one("a-b", 2), one("c\x1bd", 3), one("sales", 4), one("big", 5000)),
	})
	return dir, map[string]string{"PCP_TMP_DIR": filepath.Dir(dir), "PCP_VAR_DIR": filepath.Dir(dir), "PCP_VERSION": "7.2.1", "PCP_PMCDCONF_PATH": filepath.Join(dir, "..", "pmcd.conf")}
}

func TestCommand(t *testing.T) {
	dir, conf := host(t)
	if err := os.WriteFile(conf["PCP_PMCDCONF_PATH"], []byte("# mmv 70\nlinux 60 dso linux_init pmda_linux.so\nmmv 4 pipe binary /x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clean := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, dir, "DIR"), filepath.Dir(dir), "TMP")
	}
	status, out, errs := run(t, conf)
	if status != 2 || errs != "" || strings.Contains(out, "\x1b") {
		t.Errorf("status %d, %s", status, errs)
	}
	golden(t, "host.txt", clean(out))

	_, out, _ = run(t, conf, "--json", dir)
	golden(t, "host.json", clean(out))
	var doc struct {
		Status  int             `json:"status"`
		Reports []*check.Report `json:"reports"`
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil || doc.Status != 2 || len(doc.Reports) != 1 || len(doc.Reports[0].Files) != 5 {
		t.Errorf("%v %+v", err, doc)
	}
}

// TestEnvironment: a PCP_TMP_DIR of one's own is told of, and where files are
// instead.
func TestEnvironment(t *testing.T) {
	dir, conf := host(t)
	conf["pcp.conf PCP_TMP_DIR"], conf["PCP_TMP_DIR"] = conf["PCP_TMP_DIR"], t.TempDir()
	if err := os.Mkdir(filepath.Join(conf["PCP_TMP_DIR"], "mmv"), 0o700); err != nil {
		t.Fatal(err)
	}
	status, out, _ := run(t, conf)
	for _, s := range []string{"  note     PCP_TMP_DIR is set in the environment; for what is started without it, it is " + filepath.Dir(dir), "; but 4 in " + dir} {
		if !strings.Contains(out, s) {
			t.Errorf("no %q in\n%s", s, out)
		}
	}
	if status != 1 {
		t.Errorf("status %d", status)
	}
}

func TestArguments(t *testing.T) {
	dir, conf := host(t)
	for _, c := range []struct {
		name   string
		args   []string
		status int
		out    []string // some of it
		errs   []string
	}{
		{"a file of the directory, among the others", []string{filepath.Join(dir, "shop")}, 2, []string{"shop: exported as mmv.shop, PMIDs 70.1.*", "which \"bakery\" has"}, nil},
		{"a good one", []string{"--quiet", filepath.Join(dir, "bakery")}, 0, nil, nil},
		{"a file elsewhere", []string{filepath.Join(hostile, "ok_v1_simple.mmv")}, 0, []string{"alone in the directory: exported as mmv.ok_v1_simple.mmv, PMIDs 70.5.*: 1 metric\n"}, nil},
		{"not there", []string{"/not/there"}, 2, nil, []string{"pmdammv check: lstat /not/there: no such file or directory\nHint: "}},
		{"an empty directory", []string{t.TempDir()}, 1, []string{"there are no files in it"}, nil},
		{"a wrong option", []string{"-x"}, 2, nil, []string{"unknown shorthand flag", "Try 'pmdammv check --help'."}},
		{"a wrong value", []string{"--process-check=maybe"}, 2, nil, []string{"is none of host, any, strict, off"}},
		{"no such user", []string{"-U", "nobody-at-all"}, 2, nil, []string{`no user "nobody-at-all"`, "Try 'pmdammv check --help'."}},
		{"short help", []string{"-h"}, 0, []string{"Usage: pmdammv check [options] [file | directory]...\n"}, nil},
		{"sanitized", []string{"--sanitize-names", dir}, 2, []string{"client-1: exported as mmv.client_1, PMIDs 70.1.*", "shop: exported as mmv.shop, PMIDs 70.2.*"}, nil},
		{"help", []string{"-?"}, 0, []string{"Usage: pmdammv check [options] [file | directory]...\n", "  -a, --all             list every finding"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errs := run(t, conf, c.args...)
			if status != c.status {
				t.Errorf("status %d, want %d\n%s%s", status, c.status, out, errs)
			}
			for _, s := range c.out {
				if !strings.Contains(out, s) {
					t.Errorf("no %q in\n%s", s, out)
				}
			}
			for _, s := range c.errs {
				if !strings.Contains(errs, s) {
					t.Errorf("no %q in\n%s", s, errs)
				}
			}
			if c.out == nil && out != "" || c.errs == nil && errs != "" {
				t.Errorf("%s%s", out, errs)
			}
		})
	}
}
