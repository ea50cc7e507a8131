package dump

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"pmdammv/pkg/reader"
)

// printer prints a Document as mmvdump does.
type printer struct {
	*bufio.Writer
	doc *Document
}

// Text prints a document. bad tells that something in it is wrong.
func Text(w io.Writer, doc *Document) (bad bool, err error) {
	p := &printer{bufio.NewWriter(w), doc}
	bad = p.header()
	for i := range doc.TOC {
		t := &doc.TOC[i]
		bad = p.section(t) || bad
	}
	return bad, p.Flush()
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) } //nolint:errcheck // Flush tells

// header prints the header; faults stand below the line with the field.
func (p *printer) header() (bad bool) {
	d, faults := p.doc, p.doc.HeaderFaults
	fault := func(prefix string) {
		for _, f := range faults {
			if strings.HasPrefix(f, prefix) {
				p.printf("%s\n", f)
			}
		}
	}
	if d.OtherOrder {
		p.printf("MMV file   = %s\n", d.File)
		p.printf("Byte order = not this host's\n")
	} else if d.Version < 1 || d.Version > 3 {
		fault("Version ")
		return true
	} else {
		p.printf("MMV file   = %s\n", d.File)
	}
	p.printf("Version    = %d\n", d.Version)
	p.printf("Generated  = %d\n", d.Generation1)
	if d.Generation1 != d.Generation2 {
		p.printf("Generated2 = %d\n", d.Generation2)
	}
	fault("Mismatched ")
	p.printf("TOC count  = %d\n", uint32(d.TOCCount))
	fault("Bad tocs: ")
	p.printf("Cluster    = %d\n", uint32(d.Cluster))
	fault("Bad cluster: ")
	p.printf("Process    = %d\n", d.PID)
	p.printf("Flags      = 0x%x (%s)\n", d.FlagBits, flagText(d))
	fault("Bad file size: ")
	return len(faults) > 0
}

func flagText(d *Document) string {
	names := d.Flags
	if unknown := d.FlagBits &^ 7; unknown != 0 {
		names = append(slices.Clip(names), fmt.Sprintf("unknown=%x", unknown))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// title is that of a section, in mmvdump's words; "" for an unknown one.
func title(s reader.Section) string {
	switch s {
	case reader.SectionInDoms:
		return "offset %d, indoms offset %d"
	case reader.SectionInstances:
		return "offset %d, instances offset %d"
	case reader.SectionMetrics:
		return "toc offset %d, metrics offset %d"
	case reader.SectionValues:
		return "offset %d, values offset %d"
	case reader.SectionStrings:
		return "offset %d, string offset %d"
	case reader.SectionLabels:
		return "offset %d, labels offset %d"
	default:
		return ""
	}
}

// section prints a section with its faults.
func (p *printer) section(t *TOC) (bad bool) {
	s := reader.Section(t.Type)
	for _, f := range t.Problems {
		if !strings.HasPrefix(f, "Bad file size") { // this one stands where the section ends
			p.printf("%s\n", f)
		}
	}
	switch empty := s == reader.SectionInstances || s == reader.SectionValues; {
	case t.Count == 0 && !empty && title(s) != "":
		p.printf("%s\n", t.badCount()) // no fault, but mmvdump says so
	case t.Count >= 0 && title(s) != "":
		p.printf("\nTOC[%d]: "+title(s)+" (%d entries)\n", t.Index, t.Offset, t.At, t.Count)
	}
	bad = len(t.Problems) > 0
	for i := t.first; i < t.first+t.n; i++ {
		place := p.entry(s, i, t)
		for _, f := range place.Problems {
			p.printf("Bad %s[%d]: %s\n", s, place.Index, f)
			bad = true
		}
	}
	for _, f := range t.Problems {
		if strings.HasPrefix(f, "Bad file size") {
			p.printf("%s\n", f)
		}
	}
	return bad
}

// entry prints an entry of a section.
func (p *printer) entry(s reader.Section, i int, t *TOC) *Place {
	d := p.doc
	switch s {
	case reader.SectionInDoms:
		in := &d.InDoms[i]
		p.printf("  [%d/%d] %d instances, starting at offset %d\n", in.Serial, in.Offset, int32(in.Count), int64(in.At))
		p.texts(in.Short, in.Help)
		return &in.Place
	case reader.SectionInstances:
		in := &d.Instances[i]
		// Whatever the version, mmvdump counts in entries of 80 bytes here.
		at := t.At + uint64(in.Index)*reader.Instance1Size
		p.printf("  [%s/%d] instance = [%d or \"%s\"]\n", number(in.InDom), at, in.Internal, text(in.Name))
		return &in.Place
	case reader.SectionMetrics:
		p.metric(&d.Metrics[i])
		return &d.Metrics[i].Place
	case reader.SectionValues:
		p.value(&d.Values[i])
		return &d.Values[i].Place
	case reader.SectionStrings:
		str := &d.Strings[i]
		p.printf("  [%d/%d] %s\n", str.Index+1, str.Offset, text(str.Text))
		return &str.Place
	default:
		l := &d.Labels[i]
		p.printf("  [%d/%d] %s\n", l.Index+1, l.Offset, l.Text)
		p.printf("        flags=0x%x, identity=0x%x\n", l.FlagBits, l.Identity)
		p.printf("        internal=0x%x\n", uint32(l.Internal))
		return &l.Place
	}
}

func (p *printer) texts(short, help *string) {
	for _, t := range []struct {
		name string
		text *string
	}{{"shorttext", short}, {"helptext", help}} {
		if t.text == nil {
			p.printf("       (no %s)\n", t.name)
		} else {
			p.printf("       %s=%s\n", t.name, *t.text)
		}
	}
}

func (p *printer) metric(m *Metric) {
	sem := m.Semantics
	if sem == "unknown" {
		sem = "?"
	}
	p.printf("  [%d/%d] %s\n", m.Item, m.Offset, text(m.Name))
	p.printf("       type=%s (0x%x), sem=%s (0x%x), pad=0x%x\n", typeText(reader.Type(m.TypeCode)), uint32(m.TypeCode), sem, uint32(m.SemanticsCode), m.padding)
	p.printf("       units=%s\n", m.Units)
	if m.InDom == nil {
		p.printf("       (no indom)\n")
	} else {
		p.printf("       indom=%d\n", int32(*m.InDom))
	}
	p.texts(m.Short, m.Help)
}

func typeText(t reader.Type) string {
	switch t {
	case reader.TypeI32:
		return "32-bit int"
	case reader.TypeU32:
		return "32-bit unsigned int"
	case reader.TypeI64:
		return "64-bit int"
	case reader.TypeU64:
		return "64-bit unsigned int"
	case reader.TypeFloat, reader.TypeDouble, reader.TypeString, reader.TypeElapsed:
		return typeName(t)
	default:
		return "?"
	}
}

func (p *printer) value(v *Value) {
	p.printf("  [%s/%d] %s", number(v.Item), v.Offset, text(v.Metric))
	if v.inst {
		p.printf("[%s or \"%s\"]", number(v.Internal), text(v.Instance))
	}
	switch {
	case !v.typeOK:
		p.printf(" = ?")
	case v.kind == reader.TypeFloat:
		p.printf(" = %s", fixed(float64(math.Float32frombits(uint32(v.bits)))))
	case v.kind == reader.TypeDouble:
		p.printf(" = %s", fixed(math.Float64frombits(v.bits)))
	case v.kind == reader.TypeElapsed:
		p.printf(" = %d (value=%d/extra=%d)", v.Value, int64(v.bits), v.Extra)
		if v.Extra > 0 {
			p.printf("\nBad (positive) ELAPSED 'extra' value found!")
		}
	case v.kind == reader.TypeString && v.Value == nil:
		p.printf(" = ?")
	case v.kind == reader.TypeString:
		p.printf(" = \"%s\"", v.Value)
	case v.Value == nil:
		p.printf("Unknown type %d", v.kind)
	default:
		p.printf(" = %d", v.Value)
	}
	p.printf("\n")
}

// fixed is C's %f.
func fixed(f float64) string {
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return "-nan"
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+"))
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

func text(s *string) string {
	if s == nil {
		return "?"
	}
	return *s
}

func number[T int32 | uint32](n *T) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}
