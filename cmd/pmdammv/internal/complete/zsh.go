package complete

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// zsh makes a script for zsh's completion system; it can be sourced, or be
// loaded as a function.
func zsh(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %[1]s\n# zsh completion for %[1]s; made by '%[1]s completion zsh'\n_%[1]s() {\n", p.Name)
	fmt.Fprintf(&b, `	local program=$words[1]
	if ((CURRENT > 2)); then
		case $words[2] in
`)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "		%s)\n			shift words\n			((CURRENT--))\n			_arguments -s %s\\\n				'*: :%s'\n			return\n			;;\n",
			c.Name, zshFlags(c.Options(), "				"), zshAction(c.Completes))
	}
	fmt.Fprintf(&b, "		esac\n	fi\n	_arguments -s %s\\\n		'1: :((", zshFlags(p.Agent, "		"))
	for i, c := range p.Commands {
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, `%s\:"%s"`, c.Name, zshText(c.Short))
	}
	fmt.Fprintf(&b, `))'
}
_%[1]s_names() {
	local -a names=(${(f)"$($program list 2>/dev/null)"})
	_multi_parts . names
}
if [[ $funcstack[1] == _%[1]s ]]; then
	_%[1]s "$@"
else
	compdef _%[1]s %[1]s
fi
`, p.Name)
	return b.String()
}

func zshFlags(set *pflag.FlagSet, indent string) string {
	var b strings.Builder
	flags(set, func(f *pflag.Flag) {
		v := value(f)
		for _, w := range words(f) {
			arg := ""
			if v != "" {
				arg = ": :" + zshAction(v)
				if strings.HasPrefix(w, "--") {
					w += "="
				} else {
					w += "+"
				}
			}
			fmt.Fprintf(&b, "\\\n%s'*%s[%s]%s' ", indent, w, zshText(oneLine(f)), arg)
		}
	})
	return b.String()
}

// zshAction is how _arguments completes an argument.
func zshAction(v string) string {
	switch v {
	case "files":
		return "_files"
	case "directories":
		return "_files -/"
	case "users":
		return "_users"
	case "names":
		return "_pmdammv_names"
	case "any":
		return " "
	default:
		return "(" + v + ")"
	}
}

// zshText is text between brackets or quotes.
func zshText(s string) string {
	return strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`, `"`, "", "`", "").Replace(s)
}
