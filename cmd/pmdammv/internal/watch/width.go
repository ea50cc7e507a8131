package watch

import (
	"strings"
	"unicode"
)

// runeWidth is how many columns a character takes.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r), r == 0x200b, r == 0x200d:
		return 0
	case r >= 0x1100 && r <= 0x115f, // Hangul
		r >= 0x2e80 && r <= 0xa4cf,   // CJK
		r >= 0xac00 && r <= 0xd7a3,   // Hangul
		r >= 0xf900 && r <= 0xfaff,   // CJK
		r >= 0xfe30 && r <= 0xfe6f,   // CJK
		r >= 0xff00 && r <= 0xff60,   // full width
		r >= 0xffe0 && r <= 0xffe6,   // full width
		r >= 0x1f300 && r <= 0x1f64f, // pictures
		r >= 0x1f900 && r <= 0x1f9ff, // pictures
		r >= 0x20000 && r <= 0x3fffd: // CJK
		return 2
	default:
		return 1
	}
}

func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// cut is s without what does not fit into n columns.
func cut(s string, n int) string {
	w := 0
	for i, r := range s {
		w += runeWidth(r)
		if w <= n {
			continue
		}
		if n < 1 {
			return ""
		}
		// The last column tells that there is more.
		s = s[:i]
		for w = width(s); w > n-1; w = width(s) {
			s = s[:len(s)-len(lastRune(s))]
		}
		return s + "…"
	}
	return s
}

func lastRune(s string) string {
	last := ""
	for _, r := range s {
		last = string(r)
	}
	return last
}

func pad(s string, n int) string {
	s = cut(s, n)
	return s + strings.Repeat(" ", max(0, n-width(s)))
}

func padLeft(s string, n int) string {
	s = cut(s, n)
	return strings.Repeat(" ", max(0, n-width(s))) + s
}
