package complete_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"pmdammv/cmd/pmdammv/internal/check"
	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/complete"
	"pmdammv/cmd/pmdammv/internal/list"
	"pmdammv/cmd/pmdammv/internal/watch"
)

func program(e *cli.Env) complete.Program {
	agent := pflag.NewFlagSet("pmdammv", pflag.ContinueOnError)
	agent.StringP("log", "l", "", "log `file`, - for [standard] error: it's \"there\"")
	agent.String("file-metrics", "problems", "metrics about the files: off, problems or all")
	return complete.Program{Name: "pmdammv", Agent: agent, Commands: []*cli.Command{
		check.NewCommand(e).Command, list.NewCommand(e).Command, watch.NewCommand(e).Command, complete.NewCommand(),
	}}
}

func run(t testing.TB, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &cli.Env{Program: "pmdammv", Stdout: &out, Err: &errs, Conf: func(string) string { return "" }}
	status = complete.Run(e, program(e), args)
	return status, out.String(), errs.String()
}

// script writes a shell's script into a file.
func script(t testing.TB, shell string) string {
	t.Helper()
	status, out, errs := run(t, shell)
	if status != 0 || errs != "" {
		t.Fatalf("%s: status %d, %s", shell, status, errs)
	}
	path := filepath.Join(t.TempDir(), shell)
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestShells: each shell that is here takes its script, in which each option is.
func TestShells(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			path := script(t, shell)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := program(&cli.Env{Program: "pmdammv"})
			for _, c := range p.Commands {
				if !strings.Contains(string(text), c.Name) {
					t.Errorf("no %s", c.Name)
				}
				c.Options().VisitAll(func(f *pflag.Flag) {
					if want := map[string]string{"fish": " -l " + f.Name + " "}[shell]; !strings.Contains(string(text), want) || !strings.Contains(string(text), f.Name) {
						t.Errorf("no --%s of %s", f.Name, c.Name)
					}
				})
			}
			bin, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not installed", shell)
			}
			if out, err := exec.Command(bin, "-n", path).CombinedOutput(); err != nil { //nolint:gosec // the test chooses it
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestBash asks bash's script for completions.
func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	stub := filepath.Join(dir, "pmdammv") // says what names there are
	if err := os.WriteFile(stub, []byte("#!/bin/sh\n[ \"$1\" = list ] && printf 'mmv.shop.sales\\nmmv.shop.queue\\nmmv.bakery.loaves\\n'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := script(t, "bash")
	for _, c := range []struct {
		words []string // after the program's name; the last one is to be completed
		want  string
	}{
		{[]string{""}, "check list watch completion"},
		{[]string{"c"}, "check completion"},
		{[]string{"--file"}, "--file-metrics"},
		{[]string{"--file-metrics", "=", "p"}, "problems"},
		{[]string{"--file-metrics", "="}, "off problems all"},
		{[]string{"list", "--ope"}, "--openmetrics"},
		{[]string{"list", "mmv.sh"}, "mmv.shop.sales mmv.shop.queue"},
		{[]string{"watch", "--sort", ""}, "name value change"},
		{[]string{"watch", "-t", ""}, ""},
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{"check", dir + "/pm"}, stub},
	} {
		words := "pmdammv"
		for _, w := range c.words {
			words += fmt.Sprintf(" '%s'", w)
		}
		cmd := exec.Command(bash, "--norc", "-c", fmt.Sprintf(`source "$0"; COMP_WORDS=(%s); COMP_CWORD=%d; _pmdammv; echo "${COMPREPLY[*]}"`, words, len(c.words)), path) //nolint:gosec // the test chooses it
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", words, got, err, c.want)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"csh"}, {"bash", "zsh"}, {"-x"}} {
		if status, out, errs := run(t, args...); status != 2 || out != "" || errs == "" {
			t.Errorf("%q: status %d, %q, %q", args, status, out, errs)
		}
	}
	if status, out, _ := run(t, "--help"); status != 0 || !strings.HasPrefix(out, "Usage: pmdammv completion [options] bash | zsh | fish\n") {
		t.Errorf("status %d\n%s", status, out)
	}
}
