package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Command is a sub-command: its options and its help.
type Command struct {
	Name  string
	Args  string // after the options, such as "[file | directory]..."
	Short string // a few words on it
	About string // a paragraph
	Notes string // after the options
	// Completes says what the arguments are, for shells: "files", "names" or
	// a list of words.
	Completes string
	Flags     *pflag.FlagSet

	groups []group
	help   bool
}

// group is a heading in the list of options.
type group struct {
	title string
	from  int // options before it
}

// NewCommand makes a command without options but for -?.
func NewCommand(name, args, about string) *Command {
	c := &Command{Name: name, Args: args, About: about}
	c.Flags = pflag.NewFlagSet(name, pflag.ContinueOnError)
	c.Flags.SetOutput(io.Discard)
	c.Flags.SortFlags = false
	return c
}

// Group puts a heading before the options that are defined next.
func (c *Command) Group(title string) { c.groups = append(c.groups, group{title, c.count()}) }

func (c *Command) count() int {
	n := 0
	c.Flags.VisitAll(func(*pflag.Flag) { n++ })
	return n
}

// Parse reads the options. It returns false when there is nothing left to do:
// help was asked for and given, or the options are wrong and that was said.
func (c *Command) Parse(e *Env, args []string) (status int, ok bool) {
	c.defineHelp()
	if err := c.Flags.Parse(args); errors.Is(err, pflag.ErrHelp) { // -h, of which pflag knows
		c.help = true
	} else if err != nil {
		return c.Misused(e, err), false
	}
	if c.help {
		if _, err := io.WriteString(e.Stdout, c.Help(e.Program)); err != nil {
			return Failed, false
		}
		return OK, false
	}
	return OK, true
}

// Options are all options, also -?.
func (c *Command) Options() *pflag.FlagSet {
	c.defineHelp()
	return c.Flags
}

func (c *Command) defineHelp() {
	if c.Flags.Lookup("help") == nil {
		c.Flags.BoolVarP(&c.help, "help", "?", false, "show this usage message and exit")
	}
}

// Misused says that the command line is wrong and returns the exit status.
func (c *Command) Misused(e *Env, err error) int {
	e.Say("%s %s: %v\nTry '%s %s --help'.", e.Program, c.Name, err, e.Program, c.Name)
	return Usage
}

// Help is the usage message, in the style of PCP's tools.
func (c *Command) Help(program string) string {
	c.defineHelp()
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s [options]", program, c.Name)
	if c.Args != "" {
		b.WriteString(" " + c.Args)
	}
	b.WriteString("\n\n" + c.About + "\n")
	n, groups := 0, c.groups
	if len(groups) == 0 || groups[0].from > 0 {
		b.WriteString("\nOptions:\n")
	}
	c.Flags.VisitAll(func(f *pflag.Flag) {
		for len(groups) > 0 && groups[0].from == n {
			fmt.Fprintf(&b, "\n%s:\n", groups[0].title)
			groups = groups[1:]
		}
		n++
		b.WriteString(optionHelp(f))
	})
	if c.Notes != "" {
		b.WriteString("\n" + c.Notes + "\n")
	}
	return b.String()
}

// optionHelp is like "  -t DELTA, --interval=DELTA\n                        text\n".
func optionHelp(f *pflag.Flag) string {
	arg, text := OptionArg(f)
	left := "  "
	if f.Shorthand != "" {
		left += "-" + f.Shorthand
		if arg != "" {
			left += " " + arg
		}
		left += ", "
	}
	left += "--" + f.Name
	if arg != "" {
		left += "=" + arg
	}
	const column = 24
	indent := "\n" + strings.Repeat(" ", column)
	text = strings.ReplaceAll(text, "\n", indent)
	if len(left) >= column {
		return left + indent + text + "\n"
	}
	return left + strings.Repeat(" ", column-len(left)) + text + "\n"
}

// OptionArg is the name of an option's argument, "" for none, and its help: in
// the help it stands in backquotes.
func OptionArg(f *pflag.Flag) (arg, text string) {
	if f.Value.Type() == "bool" {
		return "", f.Usage
	}
	arg, text = pflag.UnquoteUsage(f)
	return strings.ToUpper(arg), text
}
