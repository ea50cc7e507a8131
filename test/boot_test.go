package test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// packagePath builds the package for this machine, as that version.
func packagePath(t testing.TB, version string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := command(limit(t), "../packaging/build.sh", dir)
	cmd.Env = append(cmd.Env, "PACKAGE_VERSION="+version, "SOURCE_DATE_EPOCH=1700000000", "FORMATS=deb", "ARCHS="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return filepath.Join(dir, "pmdammv_"+version+"_"+runtime.GOARCH+".deb")
}

// TestPackage: the same source gives the same package, and Debian's checker has nothing to say.
func TestPackage(t *testing.T) {
	t.Parallel()
	one := packagePath(t, "1.0")
	if a, b := must[[]byte](t)(os.ReadFile(one)), must[[]byte](t)(os.ReadFile(packagePath(t, "1.0"))); string(a) != string(b) {
		t.Error("two builds differ")
	}
	const lintian = "/usr/bin/lintian"
	need(t, lintian)
	out, err := command(limit(t), lintian, "--fail-on", "error,warning", "--tag-display-limit", "0", one).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// bootDebs are an older and a newer package, built once.
var bootDebs = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(built, "debs")
	for name, version := range map[string]string{"old": "1.0", "new": "1.1"} {
		cmd := exec.Command("../packaging/build.sh", filepath.Join(dir, name)) //nolint:gosec // the project's own
		cmd.Env = append(os.Environ(), "PACKAGE_VERSION="+version, "FORMATS=deb", "ARCHS="+runtime.GOARCH)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.Join(err, errors.New(string(out)))
		}
		if err := os.Rename(filepath.Join(dir, name, "pmdammv_"+version+"_"+runtime.GOARCH+".deb"), filepath.Join(dir, name+".deb")); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// TestBoot boots systemd in a copy of this machine that is thrown away, and lets a script check things there. Each line
// "ok NAME" and "FAIL NAME" of it is a test here.
func TestBoot(t *testing.T) {
	for _, name := range []string{"packages", "lifecycle"} {
		t.Run(name, func(t *testing.T) {
			need(t, mmvHeader, "/usr/bin/dpkg", "/lib/systemd/systemd")
			in := t.TempDir()
			debs := must[string](t)(bootDebs())
			for from, to := range map[string]string{
				filepath.Join(debs, "old.deb"): "old.deb", filepath.Join(debs, "new.deb"): "new.deb",
				must[string](t)(writerPath()): "writer", "../docs/INSTALL.md": "INSTALL.md", "boot/lib.sh": "lib.sh",
				"boot/" + name + ".sh": name + ".sh", "boot/before-" + name + ".sh": "before-boot",
			} {
				if err := os.WriteFile(filepath.Join(in, to), must[[]byte](t)(os.ReadFile(from)), 0o755); err != nil { //nolint:gosec // read by all users there
					t.Fatal(err)
				}
			}
			cmd := command(limit(t), "boot/boot.sh", in, name+".sh")
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 77 {
				t.Skip("needs root, systemd and namespaces")
			}
			reportBoot(t, string(out))
			if err != nil && !t.Failed() {
				t.Errorf("%v\n%s", err, out)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// reportBoot makes a test of each check.
func reportBoot(t *testing.T, out string) {
	checks := 0
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "ok "); ok {
			t.Run(name, func(*testing.T) {})
			checks++
		}
		if name, ok := strings.CutPrefix(line, "FAIL "); ok {
			name, why, _ := strings.Cut(name, ": ")
			t.Run(name, func(t *testing.T) { t.Error(why) })
			checks++
		}
		if strings.HasPrefix(line, "time ") {
			t.Log(line)
		}
	}
	if checks < 20 {
		t.Errorf("only %d checks\n%s", checks, out)
	}
}
