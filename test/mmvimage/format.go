package mmvimage

// Header flags (mmv_stats_flags_t).
const (
	NoPrefix int32 = 1
	Process  int32 = 2
	Sentinel int32 = 4
)

// Metric types (mmv_metric_type_t).
const (
	NoSupport int32 = -1
	I32       int32 = 0
	U32       int32 = 1
	I64       int32 = 2
	U64       int32 = 3
	Float     int32 = 4
	Double    int32 = 5
	String    int32 = 6
	Elapsed   int32 = 9
)

// Metric semantics (mmv_metric_sem_t). Some writers leave 0.
const (
	Counter  int32 = 1
	Instant  int32 = 3
	Discrete int32 = 4
)

// Label flags: what a label belongs to, and whether it is optional (pmLabelFlags).
const (
	LabelInDom     uint32 = 4
	LabelCluster   uint32 = 8
	LabelItem      uint32 = 16
	LabelInstances uint32 = 32
	LabelOptional  uint32 = 128
)

// Section types, as in a TOC entry (mmv_toc_type_t).
const (
	SecInDoms    uint32 = 1
	SecInstances uint32 = 2
	SecMetrics   uint32 = 3
	SecValues    uint32 = 4
	SecStrings   uint32 = 5
	SecLabels    uint32 = 6
)

// Offsets of the fields of the header (mmv_disk_header_t).
const (
	HdrMagic   = 0
	HdrVersion = 4
	HdrG1      = 8
	HdrG2      = 16
	HdrTOCs    = 24
	HdrFlags   = 28
	HdrPID     = 32
	HdrCluster = 36
)

// Offsets of the fields of a TOC entry (mmv_disk_toc_t), from the start of the entry.
const (
	TOCType   = 0
	TOCCount  = 4
	TOCOffset = 8
)

// Offsets of the fields of an indom (mmv_disk_indom_t), from the start of the entry.
const (
	InDomSerial = 0
	InDomCount  = 4
	InDomOffset = 8
	InDomShort  = 16
	InDomHelp   = 24
)

// Offsets of the fields of an instance (mmv_disk_instance_t and mmv_disk_instance2_t), from the start of the entry. The
// name itself lies at InstName in version 1, the offset of its string in versions 2 and 3.
const (
	InstInDom    = 0
	InstPadding  = 8
	InstInternal = 12
	InstName     = 16
)

// Offsets of the fields of a metric (mmv_disk_metric_t and mmv_disk_metric2_t). The name (version 1) or the offset of
// its string (2 and 3) is at 0 of the entry; the others count from [Layout.MetricFields].
const (
	MetricItem    = 0
	MetricType    = 4
	MetricSem     = 8
	MetricUnits   = 12
	MetricInDom   = 16
	MetricPadding = 20
	MetricShort   = 24
	MetricHelp    = 32
)

// Offsets of the fields of a value (mmv_disk_value_t), from the start of the entry.
const (
	ValueBits   = 0
	ValueExtra  = 8
	ValueMetric = 16
	ValueInst   = 24
)

// Offsets of the fields of a label (mmv_disk_label_t), from the start of the entry.
const (
	LabelFlags    = 0
	LabelIdentity = 4
	LabelInternal = 8
	LabelPayload  = 12
)

// Sizes of the records, in bytes.
const (
	HeaderSize  = 40
	TOCSize     = 16
	InDomSize   = 32
	ValueSize   = 32
	StringSize  = 256
	LabelSize   = 256
	nameSize    = 64                       // of a version 1 name, in the record
	payloadSize = LabelSize - LabelPayload // of a label
)

func instSize(version int32) uint64 {
	if version == 1 {
		return 80
	}
	return 24
}

func metricSize(version int32) uint64 {
	return nameFieldSize(version) + 40
}

// nameFieldSize is the size of a metric's name field: the name itself, or the offset of a string.
func nameFieldSize(version int32) uint64 {
	if version == 1 {
		return nameSize
	}
	return 8
}
