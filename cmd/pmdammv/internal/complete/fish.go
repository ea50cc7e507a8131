package complete

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// fish makes a script of complete commands.
func fish(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# fish completion for %[1]s; made by '%[1]s completion fish'\ncomplete -c %[1]s -f\n", p.Name)
	names := make([]string, len(p.Commands))
	for i, c := range p.Commands {
		names[i] = c.Name
	}
	none := "not __fish_seen_subcommand_from " + strings.Join(names, " ")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "complete -c %s -n '%s' -a %s -d %s\n", p.Name, none, c.Name, fishText(c.Short))
	}
	b.WriteString(fishFlags(p.Name, none, p.Agent))
	for _, c := range p.Commands {
		seen := "__fish_seen_subcommand_from " + c.Name
		b.WriteString(fishFlags(p.Name, seen, c.Options()))
		fmt.Fprintf(&b, "complete -c %s -n '%s'%s\n", p.Name, seen, fishAction(p.Name, c.Completes, false))
	}
	return b.String()
}

func fishFlags(program, when string, set *pflag.FlagSet) string {
	var b strings.Builder
	flags(set, func(f *pflag.Flag) {
		fmt.Fprintf(&b, "complete -c %s -n '%s'", program, when)
		if f.Shorthand != "" {
			fmt.Fprintf(&b, " -s %s", fishText(f.Shorthand))
		}
		fmt.Fprintf(&b, " -l %s%s -d %s\n", f.Name, fishAction(program, value(f), true), fishText(oneLine(f)))
	})
	return b.String()
}

// fishAction is how an argument is completed: an option's, which is needed, or
// a command's.
func fishAction(program, v string, option bool) string {
	needed, alone := "", ""
	if option {
		needed, alone = " -r", " -x"
	}
	switch v {
	case "":
		return ""
	case "files":
		return needed + " -F"
	case "directories":
		return alone + " -a '(__fish_complete_directories)'"
	case "users":
		return alone + " -a '(__fish_complete_users)'"
	case "names":
		return alone + " -a '(" + program + " list 2>/dev/null)'"
	case "any":
		return alone
	default:
		return alone + " -a '" + v + "'"
	}
}

// fishText is a text in quotes.
func fishText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
