package mmvimage

import (
	"encoding/binary"
	"math"
)

// DefaultGeneration is what both generations of an image are unless set.
const DefaultGeneration = 1234567

// Inst is one instance of an indom.
type Inst struct {
	ID   int32
	Name string
}

// Value is the value of one instance, or of a metric without instances: 8 bytes of pmAtomValue in host order, and the
// extra field beside it. Make one with [Int], [Float32], [Float64], [Text], [Timed] or [None].
type Value struct {
	Bits  uint64
	Extra int64

	text   string
	isText bool
	narrow bool // Bits are 32 bits, for the first four bytes of the slot
	absent bool
}

// Int is an integer value of 64 bits. It serves 32-bit types too on a little endian host; [Int32] serves them on any.
func Int(v int64) Value { return Value{Bits: uint64(v)} }

// Uint is [Int] for values beyond the largest int64.
func Uint(v uint64) Value { return Value{Bits: v} }

// Int32 is an integer in the first four bytes of the slot; the others are 0.
func Int32(v int32) Value { return Value{Bits: uint64(uint32(v)), narrow: true} }

// Float32 is a value of a FLOAT metric.
func Float32(v float32) Value { return Value{Bits: uint64(math.Float32bits(v)), narrow: true} }

// Float64 is a value of a DOUBLE metric.
func Float64(v float64) Value { return Value{Bits: math.Float64bits(v)} }

// Text is a value of a STRING metric: a string of its own, the slot's extra its offset, the 8 bytes its length. Beyond
// 255 bytes it has no terminating NUL, and beyond 256 it is cut.
func Text(s string) Value { return Value{Bits: uint64(len(s)), text: s, isText: true} }

// Timed is a value of an ELAPSED metric: microseconds, and minus the start of the running section, or 0.
func Timed(usec, extra int64) Value { return Value{Bits: uint64(usec), Extra: extra} }

// None leaves the value out: that instance has no value record.
func None() Value { return Value{absent: true} }

// NoValues is for a metric that has no value record at all.
func NoValues() []Value { return []Value{} }

// Metric is one metric with its values.
type Metric struct {
	Name  string
	Item  uint32
	Type  int32
	Sem   int32
	InDom int32 // serial; 0 or -1: none
	Units uint32
	Short string // "": the offset is 0
	Help  string

	// Values of the instances, in the order of the indom's; those beyond them, and all of a metric without instances,
	// get instance offset 0. nil: a record of value 0 (for STRING: an empty string) for each.
	Values []Value
}

type indom struct {
	serial      uint32
	short, help string
	insts       []Inst
}

type label struct {
	flags, identity uint32
	internal        int32
	payload         string
}

// Image is an MMV file in the making. Its methods change it and return it.
type Image struct {
	version      int32
	g1, g2       uint64
	flags        int32
	pid, cluster int32
	gap          uint64
	order        binary.ByteOrder
	indoms       []indom
	metrics      []Metric
	labels       []label
}

// New starts an image of that version; 2 and 3, and numbers that are none, have their names in the strings section.
// Without further calls it has no flags, pid 1, cluster 0 and [DefaultGeneration].
func New(version int32) *Image {
	return &Image{version: version, g1: DefaultGeneration, g2: DefaultGeneration, pid: 1, order: binary.NativeEndian}
}

// Flags sets the header's flags: [NoPrefix], [Process], [Sentinel].
func (m *Image) Flags(flags int32) *Image { m.flags = flags; return m }

// PID sets the writer's process id.
func (m *Image) PID(pid int32) *Image { m.pid = pid; return m }

// Cluster sets the cluster; 0 asks the reader to choose.
func (m *Image) Cluster(cluster int32) *Image { m.cluster = cluster; return m }

// Generation sets both generations.
func (m *Image) Generation(g uint64) *Image { m.g1, m.g2 = g, g; return m }

// Generations sets the two generations; where they differ, the file is not complete.
func (m *Image) Generations(g1, g2 uint64) *Image { m.g1, m.g2 = g1, g2; return m }

// Gap puts n zero bytes before every section, so that sections need not be aligned.
func (m *Image) Gap(n int) *Image { m.gap = uint64(n); return m }

// ByteOrder sets the byte order of all integers and floats.
func (m *Image) ByteOrder(order binary.ByteOrder) *Image { m.order = order; return m }

// InDom adds an indom with its one-line and full help ("": none) and its instances. A serial may be added twice.
func (m *Image) InDom(serial uint32, short, help string, insts ...Inst) *Image {
	m.indoms = append(m.indoms, indom{serial, short, help, insts})
	return m
}

// Metric adds a metric.
func (m *Image) Metric(metric Metric) *Image {
	m.metrics = append(m.metrics, metric)
	return m
}

// Label adds a label, which only version 3 has. identity is a serial, a cluster or an item, by flags; internal an
// instance, or -1; payload one name and value as a JSON object.
func (m *Image) Label(flags, identity uint32, internal int32, payload string) *Image {
	m.labels = append(m.labels, label{flags, identity, internal, payload})
	return m
}

// Build returns the bytes of the file. The caller owns them.
func (m *Image) Build() []byte {
	b := builder{Image: m, at: m.Layout()}
	b.buf = make([]byte, b.at.Size)
	b.header()
	b.indomSection()
	for i, mt := range m.metrics {
		b.metric(i, mt)
	}
	for i, r := range m.records() {
		b.value(i, r)
	}
	for i, l := range m.labels {
		at := b.at.Label(i)
		b.u32(at+LabelFlags, l.flags)
		b.u32(at+LabelIdentity, l.identity)
		b.u32(at+LabelInternal, uint32(l.internal))
		b.text(at+LabelPayload, payloadSize, l.payload)
	}
	return b.buf
}

// record is a value with its place: the number of its metric, and of its instance over all indoms (-1: none).
type record struct {
	Value
	metric, inst int
}

// records lists the value records in file order.
func (m *Image) records() []record {
	var out []record
	for i, mt := range m.metrics {
		insts := m.instances(mt.InDom)
		vals := mt.Values
		if vals == nil {
			zero := Value{isText: mt.Type == String}
			n := len(insts)
			if mt.InDom == 0 || mt.InDom == -1 {
				n = 1
			}
			for range n {
				vals = append(vals, zero)
			}
		}
		for k, v := range vals {
			if v.absent {
				continue
			}
			inst := -1
			if k < len(insts) {
				inst = insts[k]
			}
			out = append(out, record{v, i, inst})
		}
	}
	return out
}

// instances gives the numbers, over all indoms, of the instances of the indoms with that serial.
func (m *Image) instances(serial int32) []int {
	if serial == 0 || serial == -1 {
		return nil
	}
	var out []int
	n := 0
	for _, d := range m.indoms {
		for range d.insts {
			if d.serial == uint32(serial) {
				out = append(out, n)
			}
			n++
		}
	}
	return out
}
