// Package image decodes the records of an MMV file one by one, wherever they
// are asked for and whatever is wrong with the rest: what a person who looks at
// a bad file needs. Whether a file is good is for package reader to say, and
// for package check to explain.
package image

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"pmdammv/pkg/reader"
)

// Image is the bytes of one MMV file. Records that do not lie inside it are not
// there; nothing else is checked.
type Image struct {
	Data   []byte
	Order  binary.ByteOrder // of all integers
	Other  bool             // the version is not in this machine's order
	Header reader.Header

	v1     bool // version 1: names are inside the records
	metric uint64
	inst   uint64
}

// New decodes the header of an image of at least reader.HeaderSize bytes. A
// version that makes sense in the other byte order only is taken to tell that
// the file is in that order, unless the number of TOC entries tells otherwise.
func New(data []byte) *Image {
	m := &Image{Data: data, Order: binary.NativeEndian}
	version := m.u32(4)
	if s := bits.ReverseBytes32(version); (version < 1 || version > 3) && s >= 1 && s <= 3 {
		version, m.Other = s, true
		if native := m.u32(24); !m.Inside(reader.HeaderSize, uint64(native), reader.TOCEntrySize) {
			m.Order = otherOrder()
		}
	}
	m.Header = reader.Header{
		Version: version, Generation1: m.u64(8), Generation2: m.u64(16), TOCCount: int32(m.u32(24)),
		Flags: reader.Flags(m.u32(28)), Process: int32(m.u32(32)), Cluster: int32(m.u32(36)),
	}
	m.v1, m.metric, m.inst = version == 1, reader.Metric2Size, reader.Instance2Size
	if m.v1 {
		m.metric, m.inst = reader.Metric1Size, reader.Instance1Size
	}
	return m
}

func otherOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Size is the file's, in bytes.
func (m *Image) Size() uint64 { return uint64(len(m.Data)) }

// Inside tells whether n records of elem bytes from off lie in the file.
func (m *Image) Inside(off, n, elem uint64) bool {
	return off <= m.Size() && n <= (m.Size()-off)/elem
}

// Fit is how many records of elem bytes from off lie in the file, of count.
func (m *Image) Fit(off uint64, count int64, elem uint64) int {
	if count <= 0 || off > m.Size() {
		return 0
	}
	return int(min(uint64(count), (m.Size()-off)/elem))
}

func (m *Image) u32(off uint64) uint32 { return m.Order.Uint32(m.Data[off:]) }
func (m *Image) u64(off uint64) uint64 { return m.Order.Uint64(m.Data[off:]) }

// Elem is the size of a record of that section, in bytes.
func (m *Image) Elem(s reader.Section) uint64 {
	switch s {
	case reader.SectionInDoms:
		return reader.InDomSize
	case reader.SectionInstances:
		return m.inst
	case reader.SectionMetrics:
		return m.metric
	case reader.SectionValues:
		return reader.ValueSize
	case reader.SectionLabels:
		return reader.LabelSize
	default:
		return reader.StringSize
	}
}

// TOC returns the TOC entries that lie in the file, in its order.
func (m *Image) TOC() []reader.TOCEntry {
	n := m.Fit(reader.HeaderSize, int64(m.Header.TOCCount), reader.TOCEntrySize)
	toc := make([]reader.TOCEntry, n)
	for i := range toc {
		off := TOCOffset(i)
		toc[i] = reader.TOCEntry{Section: reader.Section(m.u32(off)), Count: int32(m.u32(off + 4)), Offset: m.u64(off + 8)}
	}
	return toc
}

// TOCOffset is where the i-th TOC entry lies.
func TOCOffset(i int) uint64 { return reader.HeaderSize + uint64(i)*reader.TOCEntrySize }

// Name is the text of a name, or where it is.
type Name struct {
	Text []byte
	Off  uint64 // of the string, versions 2 and 3
	OK   bool   // there is a text, which may be empty
	Cut  bool   // it has no NUL and ends where its room does
}

// InDom is an indom as it is in the file (mmv_disk_indom_t).
type InDom struct {
	Serial, Count       uint32
	Offset, Short, Help uint64
}

// InDom decodes the indom at off.
func (m *Image) InDom(off uint64) (d InDom, ok bool) {
	if !m.Inside(off, 1, reader.InDomSize) {
		return d, false
	}
	return InDom{m.u32(off), m.u32(off + 4), m.u64(off + 8), m.u64(off + 16), m.u64(off + 24)}, true
}

// Instance is an instance as it is in the file (mmv_disk_instance_t and
// mmv_disk_instance2_t).
type Instance struct {
	InDom    uint64 // offset of its indom
	Internal int32
	Name     Name
}

// Instance decodes the instance at off.
func (m *Image) Instance(off uint64) (in Instance, ok bool) {
	if !m.Inside(off, 1, m.inst) {
		return in, false
	}
	return Instance{m.u64(off), int32(m.u32(off + 12)), m.name(off + 16)}, true
}

// Metric is a metric as it is in the file (mmv_disk_metric_t and
// mmv_disk_metric2_t).
type Metric struct {
	Name        Name
	Item        uint32
	Type        reader.Type
	Semantics   int32
	Dimension   uint32
	Serial      int32
	Padding     uint32
	Short, Help uint64
}

// Singular tells whether the metric has no indom.
func (mt *Metric) Singular() bool { return mt.Serial == 0 || mt.Serial == -1 }

// Metric decodes the metric at off.
func (m *Image) Metric(off uint64) (mt Metric, ok bool) {
	if !m.Inside(off, 1, m.metric) {
		return mt, false
	}
	at := m.Fields(off)
	return Metric{
		m.name(off), m.u32(at), reader.Type(m.u32(at + 4)), int32(m.u32(at + 8)), m.u32(at + 12),
		int32(m.u32(at + 16)), m.u32(at + 20), m.u64(at + 24), m.u64(at + 32),
	}, true
}

// Fields is where the fields after the name begin in the metric at off: item,
// type, semantics, dimension, indom, padding (4 bytes each), shorttext and
// helptext (8 each).
func (m *Image) Fields(off uint64) uint64 { return off + m.metric - 40 }

// Value is a value as it is in the file (mmv_disk_value_t).
type Value struct {
	Bits     uint64 // pmAtomValue; see Bits32
	Bits32   uint32 // its first 4 bytes
	Extra    int64
	Metric   uint64
	Instance uint64
}

// Value decodes the value at off.
func (m *Image) Value(off uint64) (v Value, ok bool) {
	if !m.Inside(off, 1, reader.ValueSize) {
		return v, false
	}
	return Value{m.u64(off), m.u32(off), int64(m.u64(off + 8)), m.u64(off + 16), m.u64(off + 24)}, true
}

// Label is a label as it is in the file (mmv_disk_label_t).
type Label struct {
	Flags    reader.LabelFlags
	Identity uint32
	Internal int32
	Payload  Name
}

const payloadSize = reader.LabelSize - 12

// Label decodes the label at off.
func (m *Image) Label(off uint64) (l Label, ok bool) {
	if !m.Inside(off, 1, reader.LabelSize) {
		return l, false
	}
	return Label{reader.LabelFlags(m.u32(off)), m.u32(off + 4), int32(m.u32(off + 8)), m.field(off+12, payloadSize)}, true
}

// String is the text at off: up to its first NUL, or 255 bytes.
func (m *Image) String(off uint64) Name {
	s := Name{Off: off}
	if off < reader.HeaderSize || off >= m.Size() {
		return s
	}
	n := m.field(off, min(reader.StringSize, m.Size()-off))
	if n.Cut && m.Size()-off < reader.StringSize {
		return s
	}
	n.Off = off
	return n
}

// name is that of a record: inside it, or a string.
func (m *Image) name(off uint64) Name {
	if m.v1 {
		return m.field(off, reader.NameSize)
	}
	return m.String(m.u64(off))
}

// field is the text in n bytes, which lie in the file.
func (m *Image) field(off, n uint64) Name {
	b := m.Data[off : off+n : off+n]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return Name{Text: b[:i:i], OK: true}
	}
	return Name{Text: b[: n-1 : n-1], OK: true, Cut: true}
}
