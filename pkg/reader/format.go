package reader

// The format's fixed numbers. Sizes and offsets are in bytes.
const (
	Tag = "MMV\x00" // mmv_disk_header_t.magic

	HeaderSize    = 40  // mmv_disk_header_t
	TOCEntrySize  = 16  // mmv_disk_toc_t
	InDomSize     = 32  // mmv_disk_indom_t
	Instance1Size = 80  // mmv_disk_instance_t
	Instance2Size = 24  // mmv_disk_instance2_t
	Metric1Size   = 104 // mmv_disk_metric_t
	Metric2Size   = 48  // mmv_disk_metric2_t
	ValueSize     = 32  // mmv_disk_value_t
	StringSize    = 256 // mmv_disk_string_t, MMV_STRINGMAX
	LabelSize     = 256 // mmv_disk_label_t
	NameSize      = 64  // MMV_NAMEMAX: names inside version 1 records
	payloadSize   = 244 // mmv_disk_label_t.payload
)

// Header fields.
const (
	offVersion     = 4
	offGeneration1 = 8
	offGeneration2 = 16
	offTOCCount    = 24
	offFlags       = 28
	offProcess     = 32
	offCluster     = 36
)

// Flags are the header's flags, MMV_FLAG_*.
type Flags uint32

// The known flags.
const (
	FlagNoPrefix Flags = 1 // names lack the file's name
	FlagProcess  Flags = 2 // export only while the writer runs
	FlagSentinel Flags = 4 // a slot holding the sentinel has no value
)

// Section is the type of a TOC entry, MMV_TOC_*.
type Section uint32

// The known sections.
const (
	SectionHeader    Section = 0 // not a TOC type: the header, in errors
	SectionInDoms    Section = 1
	SectionInstances Section = 2
	SectionMetrics   Section = 3
	SectionValues    Section = 4
	SectionStrings   Section = 5
	SectionLabels    Section = 6
	SectionTOC       Section = 7 // not a TOC type: the TOC itself, in errors
)

// String is the section's name as mmv(5) uses it.
func (s Section) String() string {
	switch s {
	case SectionHeader:
		return "header"
	case SectionInDoms:
		return "indom"
	case SectionInstances:
		return "instance"
	case SectionMetrics:
		return "metric"
	case SectionValues:
		return "value"
	case SectionStrings:
		return "string"
	case SectionLabels:
		return "label"
	case SectionTOC:
		return "toc"
	default:
		return "unknown section"
	}
}

// Type is a metric's type as the file has it, MMV_TYPE_*.
type Type int32

// The known types.
const (
	TypeNoSupport Type = -1
	TypeI32       Type = 0
	TypeU32       Type = 1
	TypeI64       Type = 2
	TypeU64       Type = 3
	TypeFloat     Type = 4
	TypeDouble    Type = 5
	TypeString    Type = 6
	TypeElapsed   Type = 9
)

// Known tells whether values of the type can be read.
func (t Type) Known() bool {
	return t >= TypeNoSupport && t <= TypeString || t == TypeElapsed
}

// LabelFlags are a label's flags: what it belongs to, and whether it is optional.
type LabelFlags uint32

// The label levels that a file can hold, PM_LABEL_*.
const (
	LabelInDom     LabelFlags = 4
	LabelCluster   LabelFlags = 8
	LabelItem      LabelFlags = 16
	LabelInstances LabelFlags = 32
	LabelOptional  LabelFlags = 128
)
