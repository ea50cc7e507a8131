package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const systemdAnalyze = "/usr/bin/systemd-analyze"

// units are the units with the paths of this machine filled in.
func units(t testing.TB) (service, socket string) {
	t.Helper()
	need(t, systemdAnalyze)
	dir := shared(t)
	text := string(must[[]byte](t)(os.ReadFile("../systemd/pmdammv.service")))
	adm := filepath.Join(dir, "pmdas", "pmdammv")
	if err := os.MkdirAll(adm, 0o755); err != nil { //nolint:gosec // a directory of programs
		t.Fatal(err)
	}
	link(t, must[string](t)(agentPath()), filepath.Join(adm, "pmdammv"))
	service, socket = filepath.Join(dir, "pmdammv.service"), filepath.Join(dir, "pmdammv.socket")
	writeText(t, service, strings.ReplaceAll(text, "@PMDASADM@", filepath.Join(dir, "pmdas")))
	writeText(t, socket, string(must[[]byte](t)(os.ReadFile("../systemd/pmdammv.socket"))))
	return service, socket
}

// TestUnits: systemd finds nothing wrong with the units.
func TestUnits(t *testing.T) {
	t.Parallel()
	service, socket := units(t)
	if out, err := command(limit(t), systemdAnalyze, "verify", "--man=no", service, socket).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExposure: the sandbox is as tight as the instructions say.
func TestExposure(t *testing.T) {
	t.Parallel()
	service, _ := units(t)
	out, err := command(limit(t), systemdAnalyze, "security", "--offline=true", service).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for pmdammv.service: (\S+)`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if exposure := must[float64](t)(strconv.ParseFloat(string(m[1]), 64)); exposure >= 2 {
		t.Errorf("exposure %v\n%s", exposure, out)
	}
	expect(t, "docs/INSTALL.md", string(must[[]byte](t)(os.ReadFile("../docs/INSTALL.md"))), "an exposure of "+string(m[1]))
}
