package vt

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// SVG is a picture of the screen.
func (s *Screen) SVG() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	const cw, lh, pad = 8.43, 18, 12
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">`+"\n",
		cw*float64(s.w)+2*pad, lh*s.h+2*pad)
	b.WriteString(`<rect width="100%" height="100%" rx="6" fill="#16181d"/>` + "\n")
	for y, line := range s.cells {
		for x := 0; x < len(line); {
			end := x + 1
			for end < len(line) && line[end].style == line[x].style {
				end++
			}
			run(&b, line[x:end], pad+cw*float64(x), pad+lh*y, cw, lh)
			x = end
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// run writes cells of one style.
func run(b *strings.Builder, cells []cell, x float64, y int, cw float64, lh int) {
	var text strings.Builder
	for _, c := range cells {
		if c.r == 0 {
			c.r = ' '
		}
		text.WriteRune(c.r)
	}
	style := strings.Split(cells[0].style, ";")
	fill, extra := "#d7dae0", ""
	for sgr, colour := range map[string]string{"2": "#8a919e", "31": "#ff6b68", "32": "#7fd88f", "33": "#e5c07b", "36": "#56b6c2"} {
		if slices.Contains(style, sgr) {
			fill = colour
		}
	}
	if slices.Contains(style, "1") {
		extra = ` font-weight="bold"`
	}
	if slices.Contains(style, "7") {
		fmt.Fprintf(b, `<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`+"\n", x, y, cw*float64(len(cells)), lh, fill)
		fill = "#16181d"
	}
	s := text.String()
	if strings.TrimSpace(s) == "" {
		return
	}
	fmt.Fprintf(b, `<text x="%.2f" y="%d" fill="%s"%s xml:space="preserve" textLength="%.2f">%s</text>`+"\n",
		x, y+lh-5, fill, extra, cw*float64(len(cells)), html.EscapeString(s))
}
