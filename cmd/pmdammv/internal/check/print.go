package check

import (
	"fmt"
	"io"
	"strconv"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/pkg/reader"
)

// printer prints reports for people.
type printer struct {
	w      io.Writer
	colour bool
	quiet  bool
	alone  string // put before what becomes of a file that is not in the directory
	err    error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// Colours, by number of SGR.
const (
	bold   = 1
	red    = 31
	green  = 32
	yellow = 33
	cyan   = 36
)

func (p *printer) paint(colour int, s string) string {
	if !p.colour {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, s)
}

func (p *printer) report(r *Report) {
	if p.quiet && r.Status() == 0 {
		return
	}
	p.alone = "alone in the directory: "
	if r.Directory != "" {
		p.alone = ""
		p.printf("%s\n", p.paint(bold, "MMV files in "+cli.Line(r.Directory)))
		if r.Note != "" {
			p.printf("  note     %s\n", cli.Line(r.Note))
		}
		p.findings(r.Findings)
	}
	exported, errors, warnings := 0, 0, 0
	count := func(found []Finding) {
		for i := range found {
			if found[i].Severity == Error {
				errors++
			} else {
				warnings++
			}
		}
	}
	count(r.Findings)
	for i := range r.Files {
		f := &r.Files[i]
		if f.Exported > 0 {
			exported++
		}
		count(f.Findings)
		if p.quiet && len(f.Findings) == 0 {
			continue
		}
		p.file(f)
	}
	if r.Directory == "" {
		return
	}
	p.printf("%s, %d exported; %s, %s\n", number(len(r.Files), "file"), exported, number(errors, "error"), number(warnings, "warning"))
}

func number(n int, what string) string {
	return strconv.Itoa(n) + " " + what + plural(uint64(n))
}

func (p *printer) file(f *File) {
	p.printf("%s: %s%s\n", p.paint(bold, cli.Line(f.Name)), p.alone, p.state(f))
	p.findings(f.Findings)
	if f.Omitted > 0 {
		p.printf("  and %s more of these kinds; --all lists them\n", strconv.Itoa(f.Omitted))
	}
}

// state says in one line what has become of a file.
func (p *printer) state(f *File) string {
	switch f.State {
	case "loaded":
		if f.Exported == 0 {
			return p.paint(red, "nothing exported")
		}
		n := number(f.Exported, "metric")
		if f.Exported < f.Metrics {
			n = fmt.Sprintf("%d of %s", f.Exported, number(f.Metrics, "metric"))
		}
		as := "as"
		if f.file.Catalog.Header.Flags&reader.FlagNoPrefix != 0 {
			as = "below" // with others
		}
		return p.paint(green, fmt.Sprintf("exported %s %s, PMIDs %s.*: %s", as, cli.Line(f.Root), f.PMID, n))
	case "pending":
		return p.paint(yellow, "not exported, not complete")
	case "dead":
		return p.paint(yellow, "not exported, its process has gone")
	case Skipped:
		return p.paint(yellow, "not looked at")
	default:
		return p.paint(red, "not exported")
	}
}

// findings prints those of one kind together, with what there is to say of the
// kind at their end.
func (p *printer) findings(found []Finding) {
	done := map[Code]bool{}
	for i := range found {
		code := found[i].Code
		if done[code] {
			continue
		}
		done[code] = true
		for k := i; k < len(found); k++ {
			if found[k].Code == code {
				p.finding(&found[k])
			}
		}
		p.printf("           %s %s\n", p.paint(cyan, "agent: "), found[i].Agent)
		p.printf("           %s %s\n", p.paint(cyan, "writer:"), found[i].Writer)
	}
}

func (p *printer) finding(f *Finding) {
	colour := yellow
	if f.Severity == Error {
		colour = red
	}
	where := f.Where() + ": "
	switch {
	case f.Section == "file" && f.Offset < 0:
		where = ""
	case f.Section == "file":
		where = fmt.Sprintf("at offset %d: ", f.Offset)
	}
	p.printf("  %s  %s%s\n", p.paint(colour, fmt.Sprintf("%-7s", f.Severity)), where, cli.Line(f.Problem))
}
