package mmvimage

// Layout says where the parts of an image lie: offsets from its start, in bytes. The methods give the offset of the
// i-th record of a section, in the order in which the builder was given them, and do not check i.
type Layout struct {
	Version int32

	// Offsets of the sections. One without entries has the offset that it would have.
	InDoms, Instances, Metrics, Values, Strings, Labels uint64

	// Numbers of records.
	NumTOC, NumInDoms, NumInstances, NumMetrics, NumValues, NumStrings, NumLabels int

	Size uint64
}

// TOC is the offset of the i-th TOC entry.
func (l Layout) TOC(i int) uint64 { return HeaderSize + TOCSize*uint64(i) }

// Section is the offset of the TOC entry of a section, by its type; 0 where the image has none.
func (l Layout) Section(typ uint32) uint64 {
	for i, s := range l.sections() {
		if s.typ == typ {
			return l.TOC(i)
		}
	}
	return 0
}

// InDom is the offset of the i-th indom.
func (l Layout) InDom(i int) uint64 { return l.InDoms + InDomSize*uint64(i) }

// Instance is the offset of the i-th instance, counted over all indoms.
func (l Layout) Instance(i int) uint64 { return l.Instances + instSize(l.Version)*uint64(i) }

// Metric is the offset of the i-th metric.
func (l Layout) Metric(i int) uint64 { return l.Metrics + metricSize(l.Version)*uint64(i) }

// MetricFields is the offset of what follows the name of the i-th metric: see [MetricItem] and its neighbours.
func (l Layout) MetricFields(i int) uint64 { return l.Metric(i) + nameFieldSize(l.Version) }

// Value is the offset of the i-th value, counted over all metrics.
func (l Layout) Value(i int) uint64 { return l.Values + ValueSize*uint64(i) }

// String is the offset of the i-th string. Strings are numbered as they are needed: for every indom its help texts and
// (versions 2 and 3) the names of its instances, for every metric its name (2 and 3) and help texts, then the values.
func (l Layout) String(i int) uint64 { return l.Strings + StringSize*uint64(i) }

// Label is the offset of the i-th label.
func (l Layout) Label(i int) uint64 { return l.Labels + LabelSize*uint64(i) }

type section struct {
	typ   uint32
	count int
	off   uint64
}

// sections lists the sections that the TOC names.
func (l Layout) sections() []section {
	var out []section
	for _, s := range []section{
		{SecInDoms, l.NumInDoms, l.InDoms},
		{SecInstances, l.NumInstances, l.Instances},
		{SecMetrics, l.NumMetrics, l.Metrics},
		{SecValues, l.NumValues, l.Values},
		{SecStrings, l.NumStrings, l.Strings},
		{SecLabels, l.NumLabels, l.Labels},
	} {
		if s.count > 0 || s.typ == SecMetrics || s.typ == SecValues {
			out = append(out, s)
		}
	}
	return out
}

// Layout tells where the parts of the image lie as it is now.
func (m *Image) Layout() Layout {
	records := m.records()
	l := Layout{
		Version: m.version, NumInDoms: len(m.indoms), NumMetrics: len(m.metrics), NumValues: len(records),
		NumLabels: len(m.labels),
	}
	count := func(texts ...string) {
		for _, t := range texts {
			if t != "" {
				l.NumStrings++
			}
		}
	}
	for _, d := range m.indoms {
		l.NumInstances += len(d.insts)
		count(d.short, d.help)
	}
	for _, mt := range m.metrics {
		count(mt.Short, mt.Help)
	}
	for _, r := range records {
		if r.isText {
			l.NumStrings++
		}
	}
	if m.version != 1 {
		l.NumStrings += l.NumInstances + l.NumMetrics
	}
	l.NumTOC = len(l.sections())

	end := l.TOC(l.NumTOC)
	place := func(off *uint64, n int, size uint64) {
		end += m.gap
		*off = end
		end += uint64(n) * size
	}
	place(&l.InDoms, l.NumInDoms, InDomSize)
	place(&l.Instances, l.NumInstances, instSize(m.version))
	place(&l.Metrics, l.NumMetrics, metricSize(m.version))
	place(&l.Values, l.NumValues, ValueSize)
	place(&l.Strings, l.NumStrings, StringSize)
	place(&l.Labels, l.NumLabels, LabelSize)
	l.Size = end
	return l
}
