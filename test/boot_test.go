//go:build !race

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// packages are built once: an older one, a newer one, and the older one again.
var packages = sync.OnceValues(func() (dir string, err error) {
	// Other programs read these files, so go test has to be shown that they matter.
	for _, dir := range []string{"../configs", "../docs", "../packaging", "../systemd"} {
		if err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(built, "packages")
	for name, version := range map[string]string{"old": "1.0", "new": "1.1", "again": "1.0"} {
		cmd := command(context.Background(), "../packaging/build.sh", filepath.Join(dir, name))
		cmd.Env = append(cmd.Env, "PACKAGE_VERSION="+version, "FORMATS=deb rpm", "ARCHS="+runtime.GOARCH)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
		}
		for _, format := range []string{"deb", "rpm"} {
			found, err := filepath.Glob(filepath.Join(dir, name, "pmdammv?"+version+"*."+format))
			if err != nil || len(found) != 1 {
				return "", fmt.Errorf("packages %v: %w", found, err)
			}
			if err := os.Rename(found[0], filepath.Join(dir, name+"."+format)); err != nil {
				return "", err
			}
		}
	}
	return dir, nil
})

// TestPackage: the same source gives the same package, and Debian's checker has nothing to say.
func TestPackage(t *testing.T) {
	dir := must[string](t)(packages())
	one := filepath.Join(dir, "old.deb")
	for _, format := range []string{"deb", "rpm"} {
		if !bytes.Equal(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "old."+format))), must[[]byte](t)(os.ReadFile(filepath.Join(dir, "again."+format)))) {
			t.Errorf("two builds of the %s differ", format)
		}
	}
	const lintian = "/usr/bin/lintian"
	need(t, lintian)
	out, err := command(limit(t), lintian, "--fail-on", "error,warning", "--tag-display-limit", "0", one).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBoot boots systemd in a copy of this machine that is thrown away, and lets a script check things there. Each line
// "ok NAME" and "FAIL NAME" of it is a test here.
func TestBoot(t *testing.T) {
	for _, name := range []string{"packages", "lifecycle"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, mmvHeader, "/usr/bin/dpkg", "/lib/systemd/systemd")
			in := t.TempDir()
			debs := must[string](t)(packages())
			for from, to := range map[string]string{
				filepath.Join(debs, "old.deb"): "old.deb", filepath.Join(debs, "new.deb"): "new.deb", filepath.Join(debs, "new.rpm"): "new.rpm",
				must[string](t)(writerPath()): "writer", "../docs/INSTALL.md": "INSTALL.md", "../README.md": "README.md", "boot/lib.sh": "lib.sh",
				"boot/" + name + ".sh": name + ".sh", "boot/before-" + name + ".sh": "before-boot",
			} {
				if err := os.WriteFile(filepath.Join(in, to), must[[]byte](t)(os.ReadFile(from)), 0o755); err != nil { //nolint:gosec // read by all users there
					t.Fatal(err)
				}
			}
			cmd := command(t.Context(), "boot/boot.sh", in, name+".sh") // has a limit of its own
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
		if name, ok := strings.CutPrefix(line, "skip "); ok {
			t.Run(name, func(t *testing.T) { t.Skip("not installed here") })
		}
		if strings.HasPrefix(line, "time ") {
			t.Log(line)
		}
	}
	if checks < 20 {
		t.Errorf("only %d checks\n%s", checks, out)
	}
}
