package watch

import (
	"bufio"
	"fmt"
	"io"

	"pmdammv/cmd/pmdammv/internal/cli"
)

const (
	clock     = "15:04:05"
	fineClock = "15:04:05.000"
)

// plain prints samples as lines: time, metric, instance, value and units, with
// tabs between them; what happens to files as comments.
type plain struct {
	*bufio.Writer
	raw bool // counters as they are
	m   *model
}

func newPlain(w io.Writer, m *model) *plain { return &plain{bufio.NewWriter(w), m.raw, m} }

func (p *plain) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) } //nolint:errcheck // Flush tells

// sample prints one; values may be left out.
func (p *plain) sample(s *sample, values bool) error {
	at := s.at.Format(fineClock)
	for _, ev := range s.events {
		what := ""
		if ev.file != "" {
			what = ev.file + ": "
		}
		p.printf("# %s %s\n", ev.at.Format(fineClock), cli.Line(what+ev.text))
	}
	for _, f := range s.faults {
		p.printf("# %s %s\n", at, cli.Line(f))
	}
	if values {
		for _, r := range p.m.visible(s.rows) {
			value, units := r.value, r.units
			if r.counter && !p.raw {
				value, units = r.rate, r.rateUnits
			}
			p.printf("%s\t%s\t%s\t%s\t%s\n", at, r.metric, cli.Line(r.instance), value, units)
		}
	}
	return p.Flush()
}
