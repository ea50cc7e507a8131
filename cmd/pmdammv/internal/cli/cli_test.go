package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/pcpwire"
	"pmdammv/test/vt"
)

func TestVisible(t *testing.T) {
	for s, want := range map[string]string{
		"plain text\twith\nlines": "plain text\twith\nlines",
		"\x1b[2J":                 `\x1b[2J`,
		"a\rb\x00c\x7f":           `a\x0db\x00c\x7f`,
		"é日\u0085":                `é日\x85`,
	} {
		if got := cli.Visible(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestHelp(t *testing.T) {
	c := cli.NewCommand("try", "[file]...", "Try it.")
	c.Notes = "That is all."
	c.Flags.BoolP("all", "a", false, "try everything")
	c.Group("More options")
	c.Flags.StringP("interval", "t", "", "sampling interval `delta`")
	c.Flags.String("a-very-long-option", "", "`name` of it,\nwhatever that is")
	want := `Usage: pmdammv try [options] [file]...

Try it.

Options:
  -a, --all             try everything

More options:
  -t DELTA, --interval=DELTA
                        sampling interval delta
  --a-very-long-option=NAME
                        name of it,
                        whatever that is
  -?, --help            show this usage message and exit

That is all.
`
	if got := c.Help("pmdammv"); got != want {
		t.Errorf("got\n%s", got)
	}
	var out, errs bytes.Buffer
	e := &cli.Env{Program: "pmdammv", Stdout: &out, Err: &errs}
	if status, ok := c.Parse(e, []string{"-?"}); status != cli.OK || ok || out.String() != want {
		t.Errorf("%d %v %s", status, ok, out.String())
	}
	if status, ok := c.Parse(e, []string{"--nix"}); status != cli.Usage || ok || errs.String() != "pmdammv try: unknown flag: --nix\nTry 'pmdammv try --help'.\n" {
		t.Errorf("%d %v %s", status, ok, errs.String())
	}
}

func TestHints(t *testing.T) {
	for err, want := range map[error]string{
		fs.ErrNotExist:           "PCP_TMP_DIR",
		fs.ErrPermission:         "as root",
		image.ErrNotRegular:      "check DIRECTORY",
		pcpwire.ErrName:          "pmdammv list",
		errors.New("some other"): "",
	} {
		if got := cli.Hint(fmt.Errorf("x: %w", err)); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// TestTerminal: what goes to a terminal is made fit for it, what goes elsewhere
// is not touched.
func TestTerminal(t *testing.T) {
	master, tty, err := vt.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // a test's
	defer tty.Close()    //nolint:errcheck // a test's
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	e := cli.NewEnv(cli.Env{Program: "/usr/bin/pmdammv", Out: tty})
	if !e.Terminal() || !e.Colour() || e.Program != "pmdammv" {
		t.Errorf("%+v", e)
	}
	if _, err := e.Stdout.Write([]byte("a\x1b[31mb")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	n, err := master.Read(got)
	if err != nil || string(got[:n]) != `a\x1b[31mb` {
		t.Errorf("%q %v", got[:n], err)
	}
	t.Setenv("NO_COLOR", "1")
	if e.Colour() {
		t.Error("colours in spite of NO_COLOR")
	}
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a test's
	e = cli.NewEnv(cli.Env{Program: "pmdammv", Out: f})
	if _, err := e.Stdout.Write([]byte("a\x1bb")); err != nil || e.Terminal() || e.Colour() {
		t.Error(err, e.Terminal())
	}
	if b, err := os.ReadFile(f.Name()); err != nil || string(b) != "a\x1bb" {
		t.Errorf("%q %v", b, err)
	}
}

// TestFindFile: a bare name may be one in the host's directory.
func TestFindFile(t *testing.T) {
	tmp := t.TempDir()
	if err := os.MkdirAll(tmp+"/mmv", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tmp+"/mmv/shop", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &cli.Env{Conf: func(string) string { return tmp }}
	for name, want := range map[string]string{"shop": tmp + "/mmv/shop", "nix": "nix", "./shop": "./shop", "/a/b": "/a/b", "cli_test.go": "cli_test.go"} {
		if got := e.FindFile(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestTerminalInPieces: what is a control character only together with what was
// written before is made visible as well.
func TestTerminalInPieces(t *testing.T) {
	master, tty, err := vt.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // a test's
	defer tty.Close()    //nolint:errcheck // a test's
	e := cli.NewEnv(cli.Env{Program: "pmdammv", Out: tty})
	for _, piece := range []string{"a\xc2", "\x9b2Jb", "c\xc2", "", "\xa9d"} {
		if n, err := e.Stdout.Write([]byte(piece)); err != nil || n != len(piece) {
			t.Fatal(n, err)
		}
	}
	want := `a\x9b2Jbc` + "\xc2\xa9d"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(master, got); err != nil || string(got) != want {
		t.Errorf("%q %v", got, err)
	}
}

// TestSay: messages have names in them that may be anybody's.
func TestSay(t *testing.T) {
	var errs bytes.Buffer
	e := &cli.Env{Program: "pmdammv", Err: &errs}
	e.Complain("check", errors.New("open a\x1b[2J: no"))
	if errs.String() != "pmdammv check: open a\\x1b[2J: no\n" {
		t.Errorf("%q", errs.String())
	}
}
