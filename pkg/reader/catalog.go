package reader

import (
	"bytes"
	"iter"
	"slices"
)

// Header is the file's header, mmv_disk_header_t.
type Header struct {
	Version     uint32
	Generation1 uint64
	Generation2 uint64
	TOCCount    int32
	Flags       Flags
	Process     int32 // pid of the writer, 0 for none
	Cluster     int32 // as the writer asks, 0 for any
}

// TOCEntry says where a section lies, mmv_disk_toc_t.
type TOCEntry struct {
	Section Section
	Count   int32
	Offset  uint64
}

// Text is a string of a Catalog; read it with Catalog.Text. The zero Text is
// no string at all, which is not the same as an empty one.
type Text uint32

// Metric is a metric's static part, mmv_disk_metric_t and mmv_disk_metric2_t.
type Metric struct {
	Name      Text
	Item      uint32
	Type      Type
	Semantics int32
	Dimension uint32 // pmUnits as one word
	Serial    int32  // of its indom; 0 or -1: none
	Short     Text   // one-line help
	Help      Text
	InDom     int32  // index of its indom in the Catalog, -1: none or not in the file
	first     uint32 // where its slots begin, in the file or, if they are listed, in Catalog.values
	n         uint32 // how many it has, and the bit listed
}

// listed says that the slots of a metric do not follow each other in the order
// of its indom.
const listed = 1 << 31

// Singular tells whether the metric has one value and no instances.
func (m *Metric) Singular() bool { return m.Serial == 0 || m.Serial == -1 }

// ValueRef says where a live value lies.
type ValueRef struct {
	Inst int32  // internal instance id; -1 for a singular metric
	Off  uint32 // of the value's slot from the start of the file, checked
}

// Refs says where the live values of a metric lie. It belongs to what it is
// from. Most writers put the values of a metric one after the other, in the
// order of its instances: then no list of them is kept.
type Refs struct {
	list  []ValueRef
	insts []Instance // without a list: whose slots lie ValueSize apart; nil: that of a singular metric
	off   uint32     // of the first
	n     int
}

// RefList makes Refs of a list, which is not copied.
func RefList(list []ValueRef) Refs { return Refs{list: list, n: len(list)} }

// Len is how many there are.
func (r *Refs) Len() int { return r.n }

// All gives them in turn.
func (r *Refs) All() iter.Seq[ValueRef] {
	return func(yield func(ValueRef) bool) {
		for i := range r.n {
			if !yield(r.At(i)) {
				return
			}
		}
	}
}

// At returns the one at index i.
func (r *Refs) At(i int) ValueRef {
	switch {
	case r.list != nil:
		return r.list[i]
	case r.insts == nil:
		return ValueRef{-1, r.off}
	default:
		return ValueRef{r.insts[i].Internal, r.off + uint32(i)*ValueSize}
	}
}

// InDom is an instance domain, mmv_disk_indom_t.
type InDom struct {
	Serial   uint32
	Short    Text
	Help     Text
	first, n uint32
}

// Instance is an instance, mmv_disk_instance_t and mmv_disk_instance2_t.
type Instance struct {
	Internal int32
	External Text
}

// Label is a label, mmv_disk_label_t.
type Label struct {
	Flags    LabelFlags
	Identity uint32
	Internal int32
	Payload  Text
}

// Catalog is the static part of one file, validated, in memory of its own. It
// is immutable.
type Catalog struct {
	Header  Header
	TOC     []TOCEntry
	Size    uint64 // of the file
	Metrics []Metric
	InDoms  []InDom
	Labels  []Label
	// Remarks say what in the file was left out and why, in the order of the
	// file, at most MaxRemarks; RemarkCount counts all.
	Remarks     []*FormatError
	RemarkCount int
	// Outline says that no instances were read, nor what refers to them: see
	// Options.
	Outline bool

	values     []ValueRef // of metrics that have them listed; within one, in the order of its indom
	instances  []Instance // by indom
	instLabels []uint32   // instance labels, by identity and instance
	text       [][]byte   // pieces: length byte and text, one after the other
	live       [2]uint64  // from where to where values, and strings, are live
	lazy       *parser    // finds the values, when one is asked for; nil: it has
}

// MaxRemarks bounds Catalog.Remarks.
const MaxRemarks = 32

// Text returns the bytes of t, at most 255, without a NUL. They belong to the
// Catalog; nil for the zero Text.
func (c *Catalog) Text(t Text) []byte {
	if t == 0 {
		return nil
	}
	piece, i := c.text[(t-1)>>placeBits], int((t-1)%pieceSize)+1
	n := i + int(piece[i-1])
	return piece[i:n:n]
}

// Values returns where the values of m lie, in the order of its indom's
// instances, at most one for each. (The Catalog of a File may not know: see
// File.Layout.)
func (c *Catalog) Values(m *Metric) Refs {
	n := m.n &^ listed
	switch {
	case n == 0:
		return Refs{}
	case m.n != n:
		return RefList(c.values[m.first : m.first+n : m.first+n])
	case m.Singular():
		return Refs{off: m.first, n: 1}
	default:
		return Refs{insts: c.Instances(&c.InDoms[m.InDom])[:n], off: m.first, n: int(n)}
	}
}

// Instances returns the named instances of d in the order of the file, no
// internal id twice. The slice belongs to the Catalog.
func (c *Catalog) Instances(d *InDom) []Instance {
	return c.instances[d.first : d.first+d.n : d.first+d.n]
}

// InstanceLabels calls f with each instance label of indom serial and
// instance, in the order of the file.
func (c *Catalog) InstanceLabels(serial uint32, internal int32, f func(*Label)) {
	i, _ := slices.BinarySearchFunc(c.instLabels, struct{}{}, func(k uint32, _ struct{}) int {
		l := &c.Labels[k]
		if l.Identity < serial || l.Identity == serial && l.Internal < internal {
			return -1
		}
		return 1
	})
	for ; i < len(c.instLabels); i++ {
		l := &c.Labels[c.instLabels[i]]
		if l.Identity != serial || l.Internal != internal {
			return
		}
		f(l)
	}
}

// Equal tells whether two Catalogs say the same.
func (c *Catalog) Equal(o *Catalog) bool {
	return c == o || c.Header == o.Header && c.Size == o.Size && c.Outline == o.Outline && slices.EqualFunc(c.text, o.text, bytes.Equal) &&
		slices.Equal(c.TOC, o.TOC) && slices.Equal(c.Metrics, o.Metrics) && slices.Equal(c.values, o.values) &&
		slices.Equal(c.InDoms, o.InDoms) && slices.Equal(c.instances, o.instances) &&
		slices.Equal(c.Labels, o.Labels) && c.RemarkCount == o.RemarkCount && c.lazy.samePlaces(o.lazy)
}
