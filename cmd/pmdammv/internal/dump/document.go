// Package dump shows all that is in an MMV file: as PCP's mmvdump of release 7
// prints it, or as JSON. Of a malformed file it shows as much as makes sense.
package dump

import (
	"fmt"
	"math"
	"time"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// Document is a file in JSON. Where a text or a number is null, it has none, or
// it is not in the file; problems tell these apart. Offsets are from the start
// of the file.
type Document struct {
	File       string `json:"file"`
	Size       uint64 `json:"size"`
	OtherOrder bool   `json:"other_byte_order"`

	Version      uint32   `json:"version"`
	Generation1  uint64   `json:"generation1"`
	Generation2  uint64   `json:"generation2"`
	TOCCount     int32    `json:"toc_count"`
	Flags        []string `json:"flags"` // noprefix, process, sentinel
	FlagBits     uint32   `json:"flag_bits"`
	PID          int32    `json:"pid"`
	Cluster      int32    `json:"cluster"`
	HeaderFaults []string `json:"problems,omitempty"`

	TOC       []TOC      `json:"toc"`
	InDoms    []InDom    `json:"indoms"`
	Instances []Instance `json:"instances"`
	Metrics   []Metric   `json:"metrics"`
	Values    []Value    `json:"values"`
	Strings   []String   `json:"strings"`
	Labels    []Label    `json:"labels"`
}

// Place is where an entry is, and what is wrong with it.
type Place struct {
	Index    int      `json:"index"` // in its section
	Offset   uint64   `json:"offset"`
	Problems []string `json:"problems,omitempty"`
}

// TOC is an entry of the table of contents.
type TOC struct {
	Place
	Type    uint32 `json:"type"`
	Section string `json:"section"` // indom, instance, metric, value, string or label; unknown section
	Count   int32  `json:"count"`
	At      uint64 `json:"at"` // where the section begins

	first, n int // its entries in the list of its section
}

// InDom is an instance domain.
type InDom struct {
	Place
	Serial uint32  `json:"serial"`
	Count  uint32  `json:"count"`
	At     uint64  `json:"at"` // where its instances begin
	Short  *string `json:"shorttext"`
	Help   *string `json:"helptext"`
}

// Instance is an instance.
type Instance struct {
	Place
	InDom    *uint32 `json:"indom"` // serial of its indom
	Internal int32   `json:"internal"`
	Name     *string `json:"name"`
}

// Metric is a metric.
type Metric struct {
	Place
	Name          *string `json:"name"`
	Item          uint32  `json:"item"`
	Type          string  `json:"type"` // i32, u32, i64, u64, float, double, string, elapsed, nosupport; unknown
	TypeCode      int32   `json:"type_code"`
	Semantics     string  `json:"semantics"` // counter, instant, discrete; unknown
	SemanticsCode int32   `json:"semantics_code"`
	Units         string  `json:"units"`
	UnitsBits     uint32  `json:"units_bits"`
	InDom         *uint32 `json:"indom"` // its serial; null: none
	Short         *string `json:"shorttext"`
	Help          *string `json:"helptext"`

	padding uint32
}

// Value is a value. Of an elapsed section that is being timed, it is the time
// until now.
type Value struct {
	Place
	Metric   *string `json:"metric"`
	Item     *uint32 `json:"item"`
	Internal *int32  `json:"internal"` // of its instance; null: the metric has none
	Instance *string `json:"instance"`
	Value    any     `json:"value"` // number, string, or "NaN", "+Inf", "-Inf"
	Extra    int64   `json:"extra"`

	kind   reader.Type
	bits   uint64
	inst   bool // the metric has instances
	typeOK bool // kind is known
}

// String is an entry of the strings section.
type String struct {
	Place
	Text *string `json:"text"`
}

// Label is a label.
type Label struct {
	Place
	Flags    []string `json:"flags"` // indom, cluster, item, instances, optional
	FlagBits uint32   `json:"flag_bits"`
	Identity uint32   `json:"identity"`
	Internal int32    `json:"internal"`
	Text     string   `json:"text"`
}

// decoder makes a Document.
type decoder struct {
	*image.Image
	doc  *Document
	left int // entries that there is room for in the file
	now  time.Time
}

// Decode makes a Document of a file with a whole header.
func Decode(path string, data []byte, now time.Time) *Document {
	m := image.New(data)
	h := &m.Header
	d := &decoder{Image: m, left: len(data) / 16, now: now, doc: &Document{
		File: path, Size: m.Size(), OtherOrder: m.Other,
		Version: h.Version, Generation1: h.Generation1, Generation2: h.Generation2, TOCCount: h.TOCCount,
		Flags: flagNames(h.Flags), FlagBits: uint32(h.Flags), PID: h.Process, Cluster: h.Cluster,
		TOC: []TOC{}, InDoms: []InDom{}, Instances: []Instance{}, Metrics: []Metric{}, Values: []Value{}, Strings: []String{}, Labels: []Label{},
	}}
	d.header()
	if h.Version >= 1 && h.Version <= 3 {
		d.toc()
	}
	return d.doc
}

func (d *decoder) header() {
	h := &d.Header
	fault := func(format string, args ...any) {
		d.doc.HeaderFaults = append(d.doc.HeaderFaults, fmt.Sprintf(format, args...))
	}
	if d.Other {
		fault("version in the other byte order")
	}
	if h.Version < 1 || h.Version > 3 {
		fault("Version %d not supported", h.Version)
		return
	}
	if h.Generation1 != h.Generation2 {
		fault("Mismatched generation numbers (%d/%d)", h.Generation1, h.Generation2)
	}
	if h.TOCCount < 2 {
		fault("Bad tocs: invalid table of contents count (%d)", h.TOCCount)
	}
	if h.Cluster < 0 || h.Cluster > 4095 {
		fault("Bad cluster: %d is not a valid cluster ID", h.Cluster)
	}
	if h.TOCCount >= 0 && !d.Inside(reader.HeaderSize, uint64(h.TOCCount), reader.TOCEntrySize) {
		fault("Bad file size: too small for %d TOC entries", h.TOCCount)
	}
}

func flagNames(f reader.Flags) []string {
	names := []string{}
	for _, n := range []struct {
		flag reader.Flags
		name string
	}{{reader.FlagNoPrefix, "noprefix"}, {reader.FlagProcess, "process"}, {reader.FlagSentinel, "sentinel"}} {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// text returns a text that a field leads to.
func (d *decoder) text(p *Place, field string, off uint64) *string {
	if off == 0 {
		return nil
	}
	return p.name(field, d.String(off), d.Size())
}

// name returns a text, or says why there is none.
func (p *Place) name(field string, n image.Name, size uint64) *string {
	if !n.OK {
		if n.Off == 0 {
			p.fault("no %s", field)
		} else {
			p.fault("%s at offset %d is not in a file of %d bytes", field, n.Off, size)
		}
		return nil
	}
	if n.Cut {
		p.fault("%s is not terminated", field)
	}
	s := string(n.Text)
	return &s
}

func (p *Place) fault(format string, args ...any) {
	p.Problems = append(p.Problems, fmt.Sprintf(format, args...))
}

// float is a float fit for JSON.
func float[T float32 | float64](v T) any {
	switch f := float64(v); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	}
	return v
}

func typeName(t reader.Type) string {
	switch t {
	case reader.TypeNoSupport:
		return "nosupport"
	case reader.TypeI32:
		return "i32"
	case reader.TypeU32:
		return "u32"
	case reader.TypeI64:
		return "i64"
	case reader.TypeU64:
		return "u64"
	case reader.TypeFloat:
		return "float"
	case reader.TypeDouble:
		return "double"
	case reader.TypeString:
		return "string"
	case reader.TypeElapsed:
		return "elapsed"
	default:
		return "unknown"
	}
}

func semanticsName(s int32) string {
	if name := pcpwire.Semantics(s).String(); name != "???" {
		return name
	}
	return "unknown"
}
