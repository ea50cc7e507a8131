package complete

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// bash makes a script that needs nothing but bash.
func bash(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# bash completion for %[1]s; made by '%[1]s completion bash'\n_%[1]s()\n{\n", p.Name)
	b.WriteString(`	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= options= arguments= words
	if [[ $prev == = ]]; then # --option=value comes as three words
		prev=${COMP_WORDS[COMP_CWORD-2]}
	elif [[ $cur == = ]]; then
		cur=
	fi
	((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}
	case $command in
`)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "	%s)\n		options='%s' arguments='%s'\n%s		;;\n", c.Name, bashWords(c.Options()), c.Completes, bashValues(c.Options()))
	}
	names := make([]string, len(p.Commands))
	for i, c := range p.Commands {
		names[i] = c.Name
	}
	fmt.Fprintf(&b, "	*)\n		options='%s'\n		[[ -z $command ]] && arguments='%s'\n%s		;;\n	esac\n", bashWords(p.Agent), strings.Join(names, " "), bashValues(p.Agent))
	fmt.Fprintf(&b, `	if [[ $cur == -* ]]; then
		arguments=$options
	fi
	case $arguments in
	files) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	directories) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	users) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
	names)
		words=$("${COMP_WORDS[0]}" list 2>/dev/null)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		;;
	any) COMPREPLY=() ;;
	*) mapfile -t COMPREPLY < <(compgen -W "$arguments" -- "$cur") ;;
	esac
}
complete -o filenames -F _%[1]s %[1]s
`, p.Name)
	return b.String()
}

func bashWords(set *pflag.FlagSet) string {
	var all []string
	flags(set, func(f *pflag.Flag) { all = append(all, words(f)...) })
	return strings.Join(all, " ")
}

// bashValues is what follows an option with an argument.
func bashValues(set *pflag.FlagSet) string {
	byValue := map[string][]string{}
	var order []string
	flags(set, func(f *pflag.Flag) {
		v := value(f)
		if v == "" {
			return
		}
		if !slices.Contains(order, v) {
			order = append(order, v)
		}
		byValue[v] = append(byValue[v], words(f)...)
	})
	if len(order) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("		case $prev in\n")
	for _, v := range order {
		fmt.Fprintf(&b, "		%s) arguments='%s' ;;\n", strings.Join(byValue[v], " | "), v)
	}
	b.WriteString("		esac\n")
	return b.String()
}
