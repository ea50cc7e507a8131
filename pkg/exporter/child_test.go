package exporter_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/exporter"
)

// childEnv makes the test binary another process: what it is to do, and the
// directory to do it in.
const childEnv = "EXPORTER_TEST_CHILD"

// runChild does what a test wants another process to do, when this is one.
func runChild() (code int, ok bool) {
	what, top, ok := strings.Cut(os.Getenv(childEnv), " ")
	if !ok {
		return 0, false
	}
	if err := child(what, top); err != nil {
		fmt.Println("error:", err) //nolint:forbidigo // not an agent
		return 1, true
	}
	return 0, true
}

// child opens an Exporter in top and prints its events.
func child(what, top string) error {
	switch what {
	case "full": // as on a disk with room for some hundred bytes
		signal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 300, Max: 300}); err != nil {
			return err
		}
	case "nobody": // who may write nothing
		if err := unix.Setresuid(65534, 65534, 65534); err != nil {
			return err
		}
	}
	e, err := exporter.New(exporter.Options{
		Dir: filepath.Join(top, "mmv"), Identities: filepath.Join(top, "identities"), Domain: domain,
		Event: func(ev exporter.Event) { fmt.Println(ev.File+":", ev.Text) }, //nolint:forbidigo // not an agent
	})
	if err != nil {
		return err
	}
	e.Refresh()
	e.Close()
	return nil
}

// asChild runs child in another process and returns what it prints.
func asChild(t *testing.T, what, top string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self) //nolint:gosec // this test
	cmd.Env = append(os.Environ(), childEnv+"="+what+" "+top)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	return out.String()
}
