// Package vt is as much of a terminal as tests of full-screen programs need: a
// pseudo-terminal, and a screen that understands the sequences that those
// programs write.
package vt

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// cell is one place on the screen. Wide characters fill one cell and leave the
// next one zero.
type cell struct {
	r     rune
	style string // numbers of SGR, such as "1;31"
}

// Screen is what a terminal shows. Its methods may be used at once from several
// goroutines.
type Screen struct {
	mu       sync.Mutex
	w, h     int
	cells    [][]cell
	row, col int
	style    string
	rest     []byte // of an unfinished sequence
	alt      bool
	unknown  []string
}

// NewScreen makes an empty screen.
func NewScreen(w, h int) *Screen {
	s := &Screen{}
	s.Resize(w, h)
	return s
}

// Resize makes the screen another size, and empty.
func (s *Screen) Resize(w, h int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w, s.h = w, h
	s.clear()
	s.row, s.col = 0, 0
}

func (s *Screen) clear() {
	s.cells = make([][]cell, s.h)
	for i := range s.cells {
		s.cells[i] = make([]cell, s.w)
	}
}

// Alternate tells whether the alternate screen is shown.
func (s *Screen) Alternate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alt
}

// Unknown returns the sequences that were not understood.
func (s *Screen) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown
}

// Write takes what a program writes.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := append(s.rest, p...)
	for len(b) > 0 {
		n := s.step(b)
		if n == 0 {
			break
		}
		b = b[n:]
	}
	s.rest = append([]byte(nil), b...)
	return len(p), nil
}

// step takes one character or sequence; 0 when more of it is to come.
func (s *Screen) step(b []byte) int {
	switch c := b[0]; {
	case c == '\r':
		s.col = 0
	case c == '\n':
		s.row = min(s.row+1, s.h-1)
	case c == 0x1b:
		return s.escape(b)
	case c < ' ':
	default:
		if !utf8.FullRune(b) {
			return 0
		}
		r, n := utf8.DecodeRune(b)
		s.put(r)
		return n
	}
	return 1
}

func (s *Screen) put(r rune) {
	if s.row < s.h && s.col < s.w {
		s.cells[s.row][s.col] = cell{r, s.style}
	}
	s.col++
	if r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xd7a3) {
		s.col++
	}
}

func (s *Screen) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != '[' {
		s.unknown = append(s.unknown, string(b[:2]))
		return 2
	}
	n := 2
	for n < len(b) && (b[n] < 0x40 || b[n] > 0x7e) {
		n++
	}
	if n == len(b) {
		return 0
	}
	s.control(string(b[2:n]), b[n])
	return n + 1
}

func (s *Screen) control(args string, final byte) {
	var nums []int
	for a := range strings.SplitSeq(args, ";") {
		n, _ := strconv.Atoi(a) // "" is 0
		nums = append(nums, n)
	}
	switch {
	case final == 'H' && len(nums) == 2:
		s.row, s.col = max(nums[0]-1, 0), max(nums[1]-1, 0)
	case final == 'H':
		s.row, s.col = 0, 0
	case final == 'J' && args == "2":
		s.clear()
	case final == 'K' && args == "":
		for i := s.col; s.row < s.h && i < s.w; i++ {
			s.cells[s.row][i] = cell{}
		}
	case final == 'm':
		if s.style = args; args == "0" {
			s.style = ""
		}
	case args == "?1049" && (final == 'h' || final == 'l'):
		s.alt = final == 'h'
		s.clear()
	case args == "?25": // the cursor
	default:
		s.unknown = append(s.unknown, "CSI "+args+string(final))
	}
}

// String is the text on the screen, without spaces at ends of lines.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, line := range s.cells {
		var l strings.Builder
		for _, c := range line {
			if c.r == 0 {
				c.r = ' '
			}
			l.WriteRune(c.r)
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}
