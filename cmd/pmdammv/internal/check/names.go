package check

import (
	"bytes"
	"fmt"
	"strings"
)

func first(name []byte) string {
	comp, _, _ := bytes.Cut(name, []byte{'.'})
	return string(comp)
}

// badName says what is wrong with a name of which something is.
func badName(name []byte) string {
	switch s := string(name); {
	case s == "":
		return "the name is empty"
	case strings.HasPrefix(s, "."):
		return fmt.Sprintf("%.80q begins with a dot", s)
	case strings.HasSuffix(s, "."):
		return fmt.Sprintf("%.80q ends with a dot", s)
	case strings.Contains(s, ".."):
		return fmt.Sprintf("%.80q has two dots in a row", s)
	default:
		i := strings.IndexFunc(s, func(r rune) bool { return !nameRune(r) })
		if i < 0 {
			return fmt.Sprintf("%.80q is too long", s)
		}
		r := []rune(s[i:])[0]
		return fmt.Sprintf("%.80q has a %q in it", s, r)
	}
}

func nameRune(r rune) bool {
	return r == '.' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// digitFirst tells whether a component begins with a digit or _.
func digitFirst(name []byte) bool {
	for comp := range bytes.SplitSeq(name, []byte{'.'}) {
		if len(comp) > 0 && (comp[0] == '_' || '0' <= comp[0] && comp[0] <= '9') {
			return true
		}
	}
	return false
}
