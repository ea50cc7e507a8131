// Package cli is what the sub-commands have in common: where they print, their
// options, help in PCP's style, and errors that help.
package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// Exit statuses of all sub-commands, unless their help says otherwise.
const (
	OK     = 0
	Failed = 1
	Usage  = 2 // also: the thing asked about cannot be looked at
)

// Env is what a sub-command has of the process.
type Env struct {
	Program string // its name, without leading path
	Version string
	In      *os.File
	Out     *os.File
	Err     io.Writer
	// Conf looks up a variable of PCP: in the environment, pcp.conf, defaults.
	Conf func(name string) string
	// ConfFile looks it up in pcp.conf alone; nil for no such file.
	ConfFile func(name string) string

	Stdout io.Writer // Out, fit for terminals
}

// NewEnv makes an Env. What is written to Stdout of a terminal has its control
// characters made visible.
func NewEnv(e Env) *Env {
	e.Program = filepath.Base(e.Program)
	e.Stdout = e.Out
	if e.Terminal() {
		e.Stdout = &visibleWriter{w: e.Out}
	}
	return &e
}

// Terminal tells whether standard output is a terminal.
func (e *Env) Terminal() bool { return e.Out != nil && term.IsTerminal(int(e.Out.Fd())) }

// Colour tells whether to use colours: on a terminal, unless NO_COLOR is set.
func (e *Env) Colour() bool {
	return e.Terminal() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Say prints a line to standard error. Names in it may be anybody's, such as
// those that a shell made of *.
func (e *Env) Say(format string, args ...any) {
	_, _ = io.WriteString(e.Err, Visible(fmt.Sprintf(format, args...))+"\n") // where would one say that it failed?
}

// Complain prints an error, and a hint if there is one.
func (e *Env) Complain(command string, err error) {
	e.Say("%s %s: %v", e.Program, command, err)
	if h := Hint(err); h != "" {
		e.Say("Hint: %s", h)
	}
}

// visibleWriter shows control characters in place of having a terminal obey
// them: text in a file may be anybody's.
type visibleWriter struct {
	w   io.Writer
	cut bool // the last byte was the first of a character that may be a control one, and is not written yet
}

func (v *visibleWriter) Write(p []byte) (int, error) {
	s := string(p)
	if v.cut && s != "" {
		s = "\xc2" + s
	}
	if v.cut = strings.HasSuffix(s, "\xc2") || v.cut && s == ""; v.cut && s != "" {
		s = s[:len(s)-1]
	}
	if _, err := io.WriteString(v.w, Visible(s)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Visible replaces control characters other than newline and tab by their
// escapes, such as \x1b.
func Visible(s string) string {
	if !strings.ContainsFunc(s, control) && !strings.Contains(s, "\xc2") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case control(rune(c)):
			fmt.Fprintf(&b, "\\x%02x", c)
		case c == 0xc2 && i+1 < len(s) && s[i+1] >= 0x80 && s[i+1] < 0xa0: // C1, in UTF-8
			i++
			fmt.Fprintf(&b, "\\x%02x", s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Line is Visible for what must not end a line or a column, such as the name
// of a file.
func Line(s string) string {
	return strings.NewReplacer("\t", `\t`, "\n", `\n`).Replace(Visible(s))
}

func control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// FindFile is the path of a file that was asked for: a bare name that is not
// here may be one in the directory of this host's agent.
func (e *Env) FindFile(name string) string {
	if filepath.Base(name) != name {
		return name
	}
	if _, err := os.Lstat(name); err == nil {
		return name
	}
	path := filepath.Join(e.Conf("PCP_TMP_DIR"), "mmv", name)
	if _, err := os.Lstat(path); err != nil {
		return name
	}
	return path
}
