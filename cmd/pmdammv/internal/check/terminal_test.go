package check_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"pmdammv/cmd/pmdammv/internal/check"
	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/test/vt"
)

// TestColours: a terminal gets colours, but nothing that the files have in them.
func TestColours(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	dir := directory(t, map[string][]byte{"shop": image(5, 0, one("sales", 1), one("c\x1b[31md", 2)), "x\x1b[31m\ny": nil})
	conf := map[string]string{"PCP_TMP_DIR": filepath.Dir(dir), "PCP_VAR_DIR": filepath.Dir(dir)}
	master, tty, err := vt.Open(200, 50)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // a test's
	var screen bytes.Buffer
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&screen, master) // ends with an error when the terminal is closed
	}()
	e := cli.NewEnv(cli.Env{Program: "pmdammv", Out: tty, Err: io.Discard, Conf: func(name string) string { return conf[name] }})
	check.NewCommand(e).Run(nil)
	_ = tty.Close()
	<-copied
	got := screen.String()
	for _, want := range []string{"\x1b[1mshop\x1b[0m: \x1b[32mexported", `c\x1b[31md`, "\x1b[1mx\\x1b[31m\\ny\x1b[0m"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%q", want, got)
		}
	}
	if strings.Contains(got, "\x1b[31md") || strings.Contains(got, "\x1b[31m\r\n") {
		t.Errorf("an escape of a file is in\n%q", got)
	}
}
