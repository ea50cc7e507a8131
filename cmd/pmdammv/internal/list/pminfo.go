package list

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"pmdammv/pkg/pcpwire"
)

// pminfo prints as pminfo does.
type pminfo struct {
	*bufio.Writer
	want want
	pmid bool
}

func newPminfo(w io.Writer, what want, pmid bool) *pminfo {
	return &pminfo{bufio.NewWriter(w), what, pmid}
}

func (p *pminfo) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) } //nolint:errcheck // Flush tells

// metric prints one metric.
func (p *pminfo) metric(m *metric) {
	if m.err != nil {
		p.printf("%s: pmLookupDesc: %v\n", m.name, m.err)
		return
	}
	w := p.want
	if w.desc || w.help || w.value || w.labels {
		p.printf("\n")
	}
	p.printf("%s", m.name)
	if p.pmid {
		p.printf(" PMID: %v", m.pmid)
	}
	if w.oneline {
		p.oneline(m.oneline)
	}
	p.printf("\n")
	if w.desc {
		p.desc(&m.desc)
	}
	if w.labels {
		p.labels("", m.labels)
	}
	if w.help {
		p.help(m.help, m.oneline)
	}
	if w.value {
		p.values(m)
	}
	if w.labels {
		for i := range m.insts {
			in := &m.insts[i]
			p.labels(fmt.Sprintf("inst [%d or \"%s\"] ", in.ID, in.Name), in.labels)
		}
	}
}

func (p *pminfo) oneline(t text) {
	if t.err != nil {
		p.printf(" One-line Help: Error: %v", t.err)
		return
	}
	p.printf(" [%s]", t.text)
}

// help prints a full text, or in its place, as libpcp does, the one line.
func (p *pminfo) help(t, oneline text) {
	if t.err != nil || t.text == "" {
		t = oneline
	}
	switch s := strings.TrimRight(t.text, "\n"); {
	case t.err != nil:
		p.printf("Full Help: Error: %v\n", t.err)
	case s == "":
		p.printf("Help: <empty entry>\n")
	default:
		p.printf("Help:\n%s\n", s)
	}
}

func (p *pminfo) labels(what string, l labels) {
	if l.err == nil && len(l.set.Labels) > 0 {
		p.printf("    %slabels %s\n", what, l.set.JSON)
	}
}

func (p *pminfo) desc(d *pcpwire.Desc) {
	p.printf("    Data Type: %s  InDom: %v 0x%x\n", typeText(d.Type), d.InDom, uint32(d.InDom))
	p.printf("    Semantics: %v", d.Semantics)
	if d.Semantics.String() == "???" {
		p.printf(" (%d)", int32(d.Semantics))
	}
	p.printf("  Units: %s\n", unitsText(d.Units))
}

func unitsText(u pcpwire.Units) string {
	if s := u.String(); s != "" {
		return s
	}
	return "none"
}

func typeText(t pcpwire.Type) string {
	switch t {
	case pcpwire.TypeI32:
		return "32-bit int"
	case pcpwire.TypeU32:
		return "32-bit unsigned int"
	case pcpwire.TypeI64:
		return "64-bit int"
	case pcpwire.TypeU64:
		return "64-bit unsigned int"
	case pcpwire.TypeFloat:
		return "float"
	case pcpwire.TypeDouble:
		return "double"
	case pcpwire.TypeString:
		return "string"
	case pcpwire.TypeNoSupport:
		return "Not Supported"
	default:
		return fmt.Sprintf("??? (%d)", int32(t))
	}
}

func (p *pminfo) values(m *metric) {
	switch {
	case m.values.Err != nil:
		p.printf("Error: %v\n", m.values.Err)
		return
	case len(m.values.Values) == 0:
		p.printf("No value(s) available!\n")
		return
	}
	for _, v := range m.values.Values {
		if m.desc.InDom == pcpwire.InDomNull {
			p.printf("   ")
		} else if i, ok := m.byID[v.Inst]; ok {
			p.printf("    inst [%d or \"%s\"]", v.Inst, m.insts[i].Name) // pminfo escapes nothing
		} else {
			p.printf("    inst [%d]", v.Inst)
		}
		p.printf(" value %s\n", printed(v.Atom))
	}
}

// indom prints an instance domain.
func (p *pminfo) indom(l *lister, id pcpwire.InDom) {
	p.printf("\nInDom: %v 0x%x", id, uint32(id))
	get := func(kind pcpwire.TextKind) text {
		s, err := l.Text(uint32(id), kind|pcpwire.TextInDom)
		return text{s, err}
	}
	if p.want.oneline {
		p.oneline(get(pcpwire.TextOneLine))
	}
	p.printf("\n")
	if p.want.labels {
		p.labels("", l.merged(l.InDomLevels(id)))
	}
	if p.want.help {
		p.help(get(pcpwire.TextHelp), get(pcpwire.TextOneLine))
	}
}
