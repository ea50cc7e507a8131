package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUninstall: what install.sh has put into a tree, install.sh -u takes away, but not while pmcd uses it.
func TestUninstall(t *testing.T) {
	t.Parallel()
	dest := t.TempDir()
	for _, dir := range []string{"../configs", "../packaging", "../systemd"} { // shows go test that they matter
		if err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Fatal(err)
		}
	}
	files := func() (list []string) {
		err := filepath.WalkDir(dest, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	install := func(args ...string) (string, error) {
		cmd := command(limit(t), "../packaging/install.sh", args...)
		cmd.Env = append(cmd.Env, "DESTDIR="+dest, "PREFIX=/usr", "PMDASADM=/adm", "PMDAS=/pmdas", "CONFIG=/etc/pcp", "UNITS=/units", "BINARY="+must[string](t)(agentPath()))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := install(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	had := files()
	unit := string(must[[]byte](t)(os.ReadFile(filepath.Join(dest, "units", "pmdammv.service"))))
	if len(had) < 20 || !strings.Contains(unit, "man:pmdammv(1mmv)") {
		t.Errorf("%d files, unit:\n%s", len(had), unit)
	}
	used := filepath.Join(dest, "pmdas", "pmdammv", ".mmv.installed")
	writeText(t, used, "mmv\n")
	if out, err := install("-u"); err == nil || !strings.Contains(out, "run /pmdas/pmdammv/Remove first") || len(files()) != len(had)+1 {
		t.Errorf("while it is used: %v, %d files, %s", err, len(files()), out)
	}
	if err := os.Remove(used); err != nil {
		t.Fatal(err)
	}
	if out, err := install("-u"); err != nil || len(files()) != 0 {
		t.Errorf("%v, left: %v\n%s", err, files(), out)
	}
}
