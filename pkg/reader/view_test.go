package reader_test

import (
	"errors"
	"slices"
	"testing"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// view is a Catalog spelled out, to be compared.
type view struct {
	Header  reader.Header
	TOC     []reader.TOCEntry
	Size    uint64
	Metrics []metricView
	InDoms  []indomView
	Labels  []labelView
	Remarks []remark
}

type metricView struct {
	Name, Short, Help string
	NoName            bool // no name at all, as against an empty one
	Item, Dimension   uint32
	Type              reader.Type
	Semantics, Serial int32
	InDom             int32
	Values            []reader.ValueRef
}

type indomView struct {
	Serial      uint32
	Short, Help string
	Instances   []instanceView
}

type instanceView struct {
	ID   int32
	Name string
}

type labelView struct {
	Flags    reader.LabelFlags
	Identity uint32
	Internal int32
	Payload  string
}

// remark is a FormatError without its numbers.
type remark struct {
	Section reader.Section
	Index   int
	Field   string
	Off     uint64
	Err     error
}

func remarkOf(e *reader.FormatError) remark {
	return remark{e.Section, e.Index, e.Field, e.Off, e.Err}
}

// valuesOf is where the values of metric i lie.
func valuesOf(c *reader.Catalog, i int) []reader.ValueRef {
	refs := c.Values(&c.Metrics[i])
	out := slices.Collect(refs.All())
	for k, r := range out {
		if refs.At(k) != r {
			panic("At and All differ")
		}
	}
	return out
}

func viewOf(c *reader.Catalog) view {
	v := view{Header: c.Header, TOC: c.TOC, Size: c.Size}
	for i := range c.Metrics {
		m := &c.Metrics[i]
		v.Metrics = append(v.Metrics, metricView{
			Name: string(c.Text(m.Name)), Short: string(c.Text(m.Short)), Help: string(c.Text(m.Help)), NoName: m.Name == 0,
			Item: m.Item, Dimension: m.Dimension, Type: m.Type, Semantics: m.Semantics, Serial: m.Serial, InDom: m.InDom,
			Values: valuesOf(c, i),
		})
	}
	for i := range c.InDoms {
		d := &c.InDoms[i]
		w := indomView{Serial: d.Serial, Short: string(c.Text(d.Short)), Help: string(c.Text(d.Help))}
		for _, in := range c.Instances(d) {
			w.Instances = append(w.Instances, instanceView{in.Internal, string(c.Text(in.External))})
		}
		v.InDoms = append(v.InDoms, w)
	}
	for _, l := range c.Labels {
		v.Labels = append(v.Labels, labelView{l.Flags, l.Identity, l.Internal, string(c.Text(l.Payload))})
	}
	for _, r := range c.Remarks {
		v.Remarks = append(v.Remarks, remarkOf(r))
	}
	return v
}

// parse is Parse of an image that must be good.
func parse(t testing.TB, image []byte) *reader.Catalog {
	t.Helper()
	c, err := reader.Parse(image)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantFormatError checks that err is a FormatError.
func wantFormatError(t testing.TB, err error) {
	t.Helper()
	_ = formatError(t, err)
}

// formatError is the FormatError in err, which must be one.
func formatError(t testing.TB, err error) *reader.FormatError {
	t.Helper()
	var fe *reader.FormatError
	if !errors.As(err, &fe) {
		t.Fatalf("%v (%T) is not a FormatError", err, err)
	}
	return fe
}

const units = 0x00100000

// sample is a small image that has everything: two indoms, three metrics,
// five values, and labels in version 3.
func sample(version int32) *mmvimage.Image {
	m := mmvimage.New(version).Cluster(7).PID(4321).
		InDom(5, "disks", "all the disks", mmvimage.Inst{ID: 0, Name: "sda"}, mmvimage.Inst{ID: 3, Name: "sdb"}, mmvimage.Inst{ID: 9, Name: "sdc"}).
		InDom(6, "", "", mmvimage.Inst{ID: 1, Name: "eth0"}).
		Metric(mmvimage.Metric{
			Name: "disk.reads", Item: 1, Type: mmvimage.U64, Sem: mmvimage.Counter, InDom: 5, Units: units, Short: "reads", Help: "reads of each disk",
			Values: []mmvimage.Value{mmvimage.Int(10), mmvimage.Int(11), mmvimage.Int(12)},
		}).
		Metric(mmvimage.Metric{
			Name: "state", Item: 2, Type: mmvimage.String, Sem: mmvimage.Discrete, InDom: -1, Values: []mmvimage.Value{mmvimage.Text("idle")},
		}).
		Metric(mmvimage.Metric{Name: "net.load", Item: 3, Type: mmvimage.I32, Sem: mmvimage.Instant, InDom: 6, Values: []mmvimage.Value{mmvimage.Int32(-5)}})
	if version == 3 {
		m.Label(mmvimage.LabelCluster, 7, -1, `{"app":"x"}`).Label(mmvimage.LabelInstances, 5, 3, `{"bus":"sata"}`)
	}
	return m
}

// sampleView is what Parse makes of sample.
func sampleView(version int32) view {
	l := sample(version).Layout()
	refs := func(first int, insts ...int32) (out []reader.ValueRef) {
		for i, in := range insts {
			out = append(out, reader.ValueRef{Inst: in, Off: uint32(l.Value(first + i))})
		}
		return out
	}
	v := view{
		Header: reader.Header{
			Version: uint32(version), Generation1: mmvimage.DefaultGeneration, Generation2: mmvimage.DefaultGeneration,
			TOCCount: 5, Process: 4321, Cluster: 7,
		},
		Size: l.Size,
		TOC: []reader.TOCEntry{
			{Section: reader.SectionInDoms, Count: 2, Offset: l.InDoms},
			{Section: reader.SectionInstances, Count: 4, Offset: l.Instances},
			{Section: reader.SectionMetrics, Count: 3, Offset: l.Metrics},
			{Section: reader.SectionValues, Count: 5, Offset: l.Values},
			{Section: reader.SectionStrings, Count: int32(l.NumStrings), Offset: l.Strings},
		},
		Metrics: []metricView{
			{
				Name: "disk.reads", Short: "reads", Help: "reads of each disk", Item: 1, Dimension: units, Type: reader.TypeU64, Semantics: 1, Serial: 5, InDom: 0,
				Values: refs(0, 0, 3, 9),
			},
			{Name: "state", Item: 2, Type: reader.TypeString, Semantics: 4, Serial: -1, InDom: -1, Values: refs(3, -1)},
			{Name: "net.load", Item: 3, Type: reader.TypeI32, Semantics: 3, Serial: 6, InDom: 1, Values: refs(4, 1)},
		},
		InDoms: []indomView{
			{Serial: 5, Short: "disks", Help: "all the disks", Instances: []instanceView{{0, "sda"}, {3, "sdb"}, {9, "sdc"}}},
			{Serial: 6, Instances: []instanceView{{1, "eth0"}}},
		},
	}
	if version == 3 {
		v.Header.TOCCount = 6
		v.TOC = append(v.TOC, reader.TOCEntry{Section: reader.SectionLabels, Count: 2, Offset: l.Labels})
		v.Labels = []labelView{{reader.LabelCluster, 7, -1, `{"app":"x"}`}, {reader.LabelInstances, 5, 3, `{"bus":"sata"}`}}
	}
	return v
}
