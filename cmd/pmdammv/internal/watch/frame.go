package watch

import (
	"fmt"
	"strings"
	"time"

	"pmdammv/cmd/pmdammv/internal/cli"
)

// Numbers of SGR.
const (
	bold    = "1"
	dim     = "2"
	reverse = "7"
	red     = "31"
	green   = "32"
	yellow  = "33"
	cyan    = "36"
)

// paint is a text in a colour; without colours those that are none stay.
func (m *model) paint(sgr, s string) string {
	if !m.colour && len(sgr) > 1 || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

const eventLines = 6 // with their heading

// tableHeight is how many rows there is room for.
func (m *model) tableHeight() int {
	n := m.height - 3 // title, heading, keys
	if m.files {
		n -= min(eventLines, n/2)
	}
	return max(n, 0)
}

// frame is the screen: height lines, none wider than width.
func (m *model) frame() []string {
	if m.width < 20 || m.height < 4 {
		return make([]string, max(m.height, 0)) // no room for anything
	}
	lines := []string{m.title()}
	if m.help {
		lines = append(lines, m.helpLines()...)
	} else {
		lines = append(lines, m.table()...)
	}
	if m.files && !m.help {
		lines = append(lines, m.eventPane()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:m.height-1], m.keyLine())
}

func (m *model) title() string {
	left, right := " "+cli.Line(m.dir), ""
	if m.now != nil {
		right = fmt.Sprintf("%d files", m.now.files)
		if m.now.files == 1 {
			right = "1 file"
		}
		if m.now.others > 0 {
			right += fmt.Sprintf(", %d not", m.now.others)
		}
		right += fmt.Sprintf("  %d values  every %s  %s ", len(m.now.rows), every(m.interval), m.now.at.Format(clock))
	}
	if m.paused {
		right = "PAUSED  " + right
	}
	room := m.width - width(right) - 1
	return m.paint(reverse, pad(left, max(room, 0))+" "+cut(right, m.width-1))
}

func every(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

// table is the heading and the rows that there is room for.
func (m *model) table() []string {
	n := m.tableHeight()
	if m.now == nil {
		return []string{"", " …"}
	}
	rows := m.visible(m.now.rows)
	m.top = max(min(m.top, len(rows)-n), 0)
	shown := rows[m.top:min(len(rows), m.top+n)]
	c := m.columns(shown)
	lines := []string{m.paint(bold, c.line("METRIC", "INSTANCE", "VALUE", "RATE", "UNITS"))}
	for i := range shown {
		lines = append(lines, m.rowLine(c, &shown[i]))
	}
	if len(rows) == 0 {
		lines = append(lines, m.paint(dim, cut(" "+m.why(), m.width)))
	}
	for len(lines) < n+1 {
		lines = append(lines, "")
	}
	return lines
}

// why says why there are no rows.
func (m *model) why() string {
	switch {
	case len(m.now.rows) > 0:
		return fmt.Sprintf("none of %d values has %q in its name", len(m.now.rows), m.words())
	case len(m.now.faults) > 0:
		return "waiting for " + cli.Line(strings.Join(m.now.faults, ", "))
	default:
		return "nothing has a value"
	}
}

// columns are the widths of columns.
type columns struct{ metric, instance, value, rate, units int }

// columns fits the columns into the width: numbers get what they need, names
// what is left.
func (m *model) columns(rows []row) columns {
	c := columns{metric: 6, value: 5, units: 5}
	if !m.raw {
		c.rate = 9 // 1.234E+15
	}
	for i := range rows {
		r := &rows[i]
		c.metric = max(c.metric, width(r.metric))
		if r.hasInst {
			c.instance = max(c.instance, width(cli.Line(r.instance)), 8)
		}
		c.value = max(c.value, min(width(r.value), 22))
		c.units = max(c.units, min(width(m.unitsOf(r)), 16))
	}
	for left := m.width - c.value - c.rate - c.units - 4; c.metric+c.instance > left; {
		switch {
		case c.instance > 12 && c.instance > c.metric/2:
			c.instance--
		case c.metric > 12:
			c.metric--
		case c.instance > 0:
			c.instance--
		default:
			c.units = max(c.units-(c.metric-left), 0)
			return c
		}
	}
	return c
}

func (m *model) unitsOf(r *row) string {
	if r.counter && !m.raw {
		return r.rateUnits
	}
	return r.units
}

// line puts five texts into columns.
func (c columns) line(metric, instance, value, rate, units string) string {
	s := pad(metric, c.metric) + " "
	if c.instance > 0 {
		s += pad(instance, c.instance) + " "
	}
	s += padLeft(value, c.value) + " "
	if c.rate > 0 {
		s += padLeft(rate, c.rate) + " "
	}
	return s + cut(units, c.units)
}

func (m *model) rowLine(c columns, r *row) string {
	line := cut(c.line(r.metric, cli.Line(r.instance), cli.Line(r.value), r.rate, m.unitsOf(r)), m.width)
	switch {
	case r.rate == "!" && !m.raw:
		return m.paint(yellow, line)
	case r.changed:
		return m.paint(bold, line)
	}
	return line
}

// eventPane shows the newest events.
func (m *model) eventPane() []string {
	n := min(eventLines, (m.height-3)/2)
	if n < 2 {
		return nil
	}
	lines := []string{m.paint(cyan, "── files "+strings.Repeat("─", m.width-9))}
	for _, ev := range m.events[max(0, len(m.events)-(n-1)):] {
		text := ev.text
		if ev.file != "" {
			text = ev.file + ": " + text
		}
		line := cut(ev.at.Format(clock)+" "+cli.Line(text), m.width)
		switch {
		case ev.bad:
			line = m.paint(red, line)
		case strings.HasPrefix(ev.text, "loaded"):
			line = m.paint(green, line)
		case ev.file != "":
			line = m.paint(yellow, line)
		}
		lines = append(lines, line)
	}
	return lines
}

func (m *model) keyLine() string {
	if m.edit != nil {
		return cut("filter: "+*m.edit, m.width-1) + m.paint(reverse, " ")
	}
	s := fmt.Sprintf("q quit  p pause  s sort: %v  / filter", m.sort)
	if m.filter != "" {
		s += ": " + m.filter
	}
	return m.paint(dim, cut(s+"  r raw  f files  ? help", m.width))
}

func (m *model) helpLines() []string {
	lines := []string{
		"",
		"  q          quit",
		"  p, space   pause, go on",
		"  s          sort by name, by value (of counters, by rate), by change",
		"  /          show only what has these words in metric or instance",
		"  Esc        show everything again",
		"  r          counters as they are, or per second",
		"  f          show what happens to files, or not",
		"  + -        longer or shorter interval",
		"  arrows, PgUp, PgDn, Home, End",
		"",
		"  RATE: ? not known yet, ! set back; of time, the part of it in use",
		"  any key to go on",
	}
	for i, l := range lines {
		lines[i] = cut(l, m.width)
	}
	return lines
}
