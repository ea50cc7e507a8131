package watch

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// order is how rows are sorted.
type order int

const (
	byName order = iota
	byValue
	byChange
	orders // how many there are
)

func (o order) String() string { return [...]string{"name", "value", "change"}[o] }

// maxEvents is how many events are kept.
const maxEvents = 1000

// model is what the screen shows, and what keys change.
type model struct {
	dir      string
	interval time.Duration
	sort     order
	filter   string
	raw      bool // counters are not turned into rates
	colour   bool

	now    *sample
	events []event
	paused bool
	files  bool // show events
	help   bool
	edit   *string // filter being typed
	top    int     // first row shown
	width  int
	height int
}

// take takes in a sample, unless paused: then only events are kept.
func (m *model) take(s *sample) {
	m.events = append(m.events, s.events...)
	if n := len(m.events); n > maxEvents {
		m.events = slices.Delete(m.events, 0, n-maxEvents)
	}
	if m.now == nil || !m.paused {
		m.now = s
	}
}

// visible are the rows that pass the filter, sorted.
func (m *model) visible(rows []row) []row {
	terms := strings.Fields(strings.ToLower(m.words()))
	out := make([]row, 0, len(rows))
	for i := range rows {
		if rows[i].matches(terms) {
			out = append(out, rows[i])
		}
	}
	number := func(r *row) float64 {
		if m.raw {
			return r.raw
		}
		return r.number
	}
	switch m.sort {
	case byValue:
		sort.SliceStable(out, func(i, j int) bool { return descending(number(&out[i]), number(&out[j])) < 0 })
	case byChange:
		sort.SliceStable(out, func(i, j int) bool { return out[i].changed && !out[j].changed })
	default:
		sort.SliceStable(out, func(i, j int) bool { return out[i].metric < out[j].metric })
	}
	return out
}

// words are the filter's, also while they are being typed.
func (m *model) words() string {
	if m.edit != nil {
		return *m.edit
	}
	return m.filter
}

// descending puts what is no number last.
func descending(a, b float64) int {
	if math.IsNaN(a) || math.IsNaN(b) {
		return cmp.Compare(map[bool]int{true: 1}[math.IsNaN(a)], map[bool]int{true: 1}[math.IsNaN(b)])
	}
	return cmp.Compare(b, a)
}

// matches tells whether all terms are in the row's name.
func (r *row) matches(terms []string) bool {
	name := strings.ToLower(r.metric + "[" + r.instance + "]")
	for _, t := range terms {
		if !strings.Contains(name, t) {
			return false
		}
	}
	return true
}
