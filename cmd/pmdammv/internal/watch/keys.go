package watch

import (
	"time"
	"unicode"
	"unicode/utf8"
)

// action is what a key asks for beyond a change of the model.
type action int

const (
	nothing action = iota
	quit
	suspend
	redraw
	retime // the interval has changed
)

// Keys that are not runes.
const (
	keyUp rune = -iota - 1
	keyDown
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyEscape
	keyUnknown
)

func ctrl(r rune) rune { return r & 0x1f }

// decode takes one key from what a terminal has sent.
func decode(b []byte) (k rune, n int) {
	if b[0] != 0x1b {
		return utf8.DecodeRune(b)
	}
	if len(b) == 1 {
		return keyEscape, 1
	}
	if b[1] != '[' && b[1] != 'O' {
		return keyEscape, 1
	}
	n = 2
	for n < len(b) && (b[n] < 0x40 || b[n] > 0x7e) {
		n++
	}
	if n == len(b) {
		return keyUnknown, n
	}
	seq := string(b[2 : n+1])
	for _, s := range []struct {
		seq string
		key rune
	}{
		{"A", keyUp},
		{"B", keyDown},
		{"5~", keyPageUp},
		{"6~", keyPageDown},
		{"H", keyHome},
		{"1~", keyHome},
		{"F", keyEnd},
		{"4~", keyEnd},
	} {
		if s.seq == seq {
			return s.key, n + 1
		}
	}
	return keyUnknown, n + 1
}

// key does what a key means.
func (m *model) key(k rune) action {
	if m.edit != nil {
		return m.typed(k)
	}
	if m.help && k != 'q' && k != ctrl('C') && k != ctrl('Z') {
		m.help = false
		return nothing
	}
	page := max(1, m.tableHeight()-1)
	switch k {
	case 'q', 'Q', ctrl('C'), ctrl('D'):
		return quit
	case ctrl('Z'):
		return suspend
	case ctrl('L'):
		return redraw
	case ' ', 'p':
		m.paused = !m.paused
	case 's':
		m.sort = (m.sort + 1) % orders
	case 'r':
		m.raw = !m.raw
	case 'f':
		m.files = !m.files
	case '?', 'h':
		m.help = true
	case '/':
		text := m.filter
		m.edit = &text
	case keyEscape:
		m.filter = ""
	case '+':
		m.interval = min(m.interval*2, 24*time.Hour)
		return retime
	case '-':
		m.interval = max(m.interval/2, 10*time.Millisecond)
		return retime
	case keyUp, 'k':
		m.top--
	case keyDown, 'j':
		m.top++
	case keyPageUp:
		m.top -= page
	case keyPageDown:
		m.top += page
	case keyHome, 'g':
		m.top = 0
	case keyEnd, 'G':
		m.top = 1 << 30 // brought back into range with the frame
	}
	return nothing
}

// typed edits the filter.
func (m *model) typed(k rune) action {
	text := m.edit
	switch {
	case k == ctrl('C'):
		return quit
	case k == '\r', k == '\n':
		m.filter, m.edit, m.top = *text, nil, 0
	case k == keyEscape:
		m.edit = nil
	case k == 0x7f, k == ctrl('H'):
		_, n := utf8.DecodeLastRuneInString(*text)
		*text = (*text)[:len(*text)-n]
	case k == ctrl('U'):
		*text = ""
	case k >= 0 && unicode.IsPrint(k) && len(*text) < 200:
		*text += string(k)
	}
	return nothing
}
