// Package complete makes completion scripts for shells, of the commands' own
// options, so that they cannot be out of date.
package complete

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"pmdammv/cmd/pmdammv/internal/cli"
)

// Program is what is completed.
type Program struct {
	Name     string
	Agent    *pflag.FlagSet // options without a sub-command
	Commands []*cli.Command
}

const about = `Print a completion script for a shell. For this session:

  source <(pmdammv completion bash)
  source <(pmdammv completion zsh)
  pmdammv completion fish | source

For all: put it where the shell looks for such files, for instance as
/usr/share/bash-completion/completions/pmdammv,
/usr/share/zsh/site-functions/_pmdammv or
/usr/share/fish/vendor_completions.d/pmdammv.fish.`

// NewCommand is "pmdammv completion".
func NewCommand() *cli.Command {
	c := cli.NewCommand("completion", "bash | zsh | fish", about)
	c.Short, c.Completes = "print a completion script for a shell", "bash zsh fish"
	return c
}

// Run is the command; it returns the exit status.
func Run(e *cli.Env, p Program, args []string) int {
	c := NewCommand()
	if status, ok := c.Parse(e, args); !ok {
		return status
	}
	script := map[string]func(Program) string{"bash": bash, "zsh": zsh, "fish": fish}[c.Flags.Arg(0)]
	if c.Flags.NArg() != 1 || script == nil {
		return c.Misused(e, errors.New("which shell? bash, zsh or fish"))
	}
	if _, err := fmt.Fprint(e.Stdout, script(p)); err != nil {
		e.Complain(c.Name, err)
		return cli.Failed
	}
	return cli.OK
}

// value says how an option's argument is completed: "" for an option without
// one, "files", "directories", "users", "any", or words.
func value(f *pflag.Flag) string {
	arg, _ := cli.OptionArg(f)
	switch {
	case arg == "":
		return ""
	case f.Name == "process-check":
		return "host any strict off"
	case f.Name == "file-metrics":
		return "off problems all"
	case f.Name == "sort":
		return "name value change"
	case arg == "FILE" || arg == "PATH":
		return "files"
	case arg == "DIRECTORY":
		return "directories"
	case arg == "USER":
		return "users"
	default:
		return "any"
	}
}

// flags calls f with each option of a command.
func flags(set *pflag.FlagSet, f func(*pflag.Flag)) { set.VisitAll(f) }

// words are an option's spellings.
func words(f *pflag.Flag) []string {
	out := []string{}
	if f.Shorthand != "" {
		out = append(out, "-"+f.Shorthand)
	}
	return append(out, "--"+f.Name)
}

// oneLine is the help of an option on one line.
func oneLine(f *pflag.Flag) string {
	_, text := cli.OptionArg(f)
	return strings.ReplaceAll(text, "\n", " ")
}
