package exporter

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"pmdammv/pkg/pcpwire"
)

// Items of the control metrics, in cluster 0. Those of PCP's agent come
// first; ours begin far above them.
const (
	itemReload  = 0
	itemDebug   = 1
	itemFiles   = 2
	itemMetrics = 3

	itemPending        = 512
	itemRejected       = 513
	itemReloads        = 514
	itemFaults         = 515
	itemFileStatus     = 516
	itemFileRejects    = 517
	itemFileMetrics    = 518
	itemFileCluster    = 519
	itemFilePID        = 520
	itemFileSize       = 521
	itemFileGeneration = 522
)

// fileIndom is the serial of the indom of files: no metric of a file can
// refer to it.
const fileIndom = 0

// maxFileInstances bounds the indom of files.
const maxFileInstances = 1000

// controlMetric is a metric of the agent itself.
type controlMetric struct {
	name string // below control
	item uint32
	desc pcpwire.Desc // without PMID; InDom is 0 for the indom of files
	line string
	help string
}

var unitCount, unitByte = pcpwire.NewUnits(0, 0, 1, 0, 0, 0), pcpwire.NewUnits(1, 0, 0, 0, 0, 0)

// controls are the control metrics in order of insertion into the PMNS.
func controls(pcpVersion string, files FileMetrics) []controlMetric {
	plain := func(t pcpwire.Type, s pcpwire.Semantics, u pcpwire.Units) pcpwire.Desc {
		return pcpwire.Desc{Type: t, InDom: pcpwire.InDomNull, Semantics: s, Units: u}
	}
	perFile := func(t pcpwire.Type, u pcpwire.Units) pcpwire.Desc {
		return pcpwire.Desc{Type: t, Semantics: pcpwire.SemDiscrete, Units: u}
	}
	const instant, counter, discrete = pcpwire.SemInstant, pcpwire.SemCounter, pcpwire.SemDiscrete
	seven := pcp7(pcpVersion)
	debug := controlMetric{
		"debug", itemDebug, plain(pcpwire.TypeI32, instant, 0), "debug flag of the agent",
		"Store a value here to change what the agent writes to its log: 0 for the\nusual, anything else for more.",
	}
	if seven {
		debug = controlMetric{
			"debug", itemDebug, plain(pcpwire.TypeString, instant, 0), "debug options of the agent",
			"Store options in the manner of pmdbg(1) here, separated by commas, to change\nwhat the agent writes to its log, or an empty string for the usual.",
		}
	}
	c := []controlMetric{
		{
			"reload", itemReload, plain(pcpwire.TypeI32, instant, 0), "store non-zero to look at all files again",
			"A store of anything but zero makes the agent look at every file again, also at\nthose that nothing tells to have changed. The value is 1 while files are pending,\nelse 0.",
		},
		debug,
		{
			"files", itemFiles, plain(pcpwire.TypeI32, instant, 0), "number of files that are mapped and exported",
			"The number of memory-mapped-value files whose metrics are exported.",
		},
	}
	if seven {
		c = append(c, controlMetric{
			"metrics", itemMetrics, plain(pcpwire.TypeI32, instant, 0), "number of exported metrics",
			"The number of metrics of all files that have a name, without the control metrics.",
		})
	}
	if files == FileMetricsOff {
		return c
	}
	c = append(c,
		controlMetric{
			"pending", itemPending, plain(pcpwire.TypeU32, discrete, unitCount), "number of files whose writer has not finished",
			"Files that are empty, short, or whose generations say that they are being written.\nThey are looked at again at every request.",
		},
		controlMetric{
			"rejected", itemRejected, plain(pcpwire.TypeU32, discrete, unitCount), "number of files that cannot be exported",
			"Files with which something is wrong, without those whose process has gone.\nfile.status says what it is.",
		},
		controlMetric{
			"reloads", itemReloads, plain(pcpwire.TypeU64, counter, unitCount), "times that the set of files has changed",
			"Counts the times that a file came, changed its contents other than values, or went.",
		},
		controlMetric{
			"faults", itemFaults, plain(pcpwire.TypeU64, counter, unitCount), "faults caught while reading files",
			"Counts reads of memory that was no longer there because its file had become\nshorter. The metrics of such a file have no value.",
		},
		controlMetric{
			"file.status", itemFileStatus, perFile(pcpwire.TypeString, 0), "what has become of a file, and why",
			"For each file that is not cleanly loaded, or with --file-metrics=all for every one,\nwhether it is loaded, pending, rejected, or its process has gone, with the reason\nand with what of it is not exported.",
		},
		controlMetric{
			"file.rejects", itemFileRejects, perFile(pcpwire.TypeU32, unitCount), "metrics of a file that are not exported",
			"The number of metrics in a loaded file that are not exported; file.status says why.",
		})
	if files != FileMetricsAll {
		return c
	}
	return append(c,
		controlMetric{"file.metrics", itemFileMetrics, perFile(pcpwire.TypeU32, unitCount), "metrics of a file that are exported", "The number of metrics in a loaded file that are exported."},
		controlMetric{"file.cluster", itemFileCluster, perFile(pcpwire.TypeU32, 0), "cluster of a file's metrics", "The middle part of the PMIDs of the file's metrics."},
		controlMetric{"file.pid", itemFilePID, perFile(pcpwire.TypeI32, 0), "pid that a file names as its writer's", "The process that the file says to have written it."},
		controlMetric{"file.size", itemFileSize, perFile(pcpwire.TypeU64, unitByte), "size of a file", "The size of the file when it was loaded."},
		controlMetric{"file.generation", itemFileGeneration, perFile(pcpwire.TypeU64, 0), "generation of a file", "The generation number that the writer gave the file; often its time of creation."},
	)
}

// pcp7 tells whether the control metrics are those of PCP 7 and later.
func pcp7(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err != nil || n >= 7
}

// controlMetric returns the control metric with that item, nil if there is none.
func (t *Table) controlMetric(item uint32) *controlMetric {
	for i := range t.control {
		if t.control[i].item == item {
			return &t.control[i]
		}
	}
	return nil
}

// controlDesc is the descriptor of a control metric.
func (t *Table) controlDesc(m *controlMetric) pcpwire.Desc {
	d := m.desc
	d.PMID = pcpwire.NewPMID(t.domain, 0, m.item)
	if d.InDom != pcpwire.InDomNull {
		d.InDom = pcpwire.NewInDom(t.domain, fileIndom)
	}
	return d
}

// fetchControl adds the value set of a control metric.
func (s *session) fetchControl(pmid pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) {
	t := s.t
	m := t.controlMetric(pmid.Item())
	if m == nil {
		b.Status(pmid, pcpwire.ErrPMID)
		return
	}
	one := func(v uint64) {
		s.inst1[0], s.bits1[0] = pcpwire.InstNull, v
		if m.desc.Type == pcpwire.TypeU64 {
			b.Set64(pmid, pcpwire.TypeU64, s.inst1[:], s.bits1[:])
		} else {
			b.Set32(pmid, s.inst1[:], s.bits1[:])
		}
	}
	switch m.item {
	case itemReload:
		if t.pending > 0 {
			one(1)
		} else {
			one(0)
		}
	case itemDebug:
		debug := s.e.debug.Load()
		if m.desc.Type == pcpwire.TypeString {
			b.BeginStrings(pmid, 1)
			b.AddString(pcpwire.InstNull, []byte(debug.text))
		} else {
			one(uint64(uint32(debug.number)))
		}
	case itemFiles:
		one(uint64(t.loaded))
	case itemMetrics:
		one(uint64(t.metrics))
	case itemPending:
		one(uint64(t.pending))
	case itemRejected:
		one(uint64(t.rejected))
	case itemReloads:
		one(t.reloads)
	case itemFaults:
		one(s.e.dir.Faults())
	default:
		s.fetchFiles(pmid, m, profile, b)
	}
}

// fetchFiles adds the value set of a metric over the indom of files.
func (s *session) fetchFiles(pmid pcpwire.PMID, m *controlMetric, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) {
	filter := profile.Filter(pcpwire.NewInDom(s.t.domain, fileIndom))
	s.vals.Reset()
	insts, bits := s.vals.Insts, s.vals.Bits
	var texts []string
	for i := range s.t.files {
		f := &s.t.files[i]
		if !filter.All() && !filter.Includes(f.inst) || f.file == nil && m.item != itemFileStatus {
			continue
		}
		var v uint64
		switch m.item {
		case itemFileStatus:
			texts = append(texts, f.status)
		case itemFileRejects:
			v = uint64(f.rejects)
		case itemFileMetrics:
			v = uint64(f.metrics)
		case itemFileCluster:
			v = uint64(f.file.cluster)
		case itemFilePID:
			v = uint64(uint32(f.file.cat.Header.Process))
		case itemFileSize:
			v = f.file.cat.Size
		case itemFileGeneration:
			v = f.file.cat.Header.Generation1
		}
		insts, bits = append(insts, f.inst), append(bits, v)
	}
	s.vals.Insts, s.vals.Bits = insts, bits
	switch m.desc.Type {
	case pcpwire.TypeString:
		b.BeginStrings(pmid, len(insts))
		for i, t := range texts {
			b.AddString(insts[i], []byte(t))
		}
	case pcpwire.TypeU64:
		b.Set64(pmid, pcpwire.TypeU64, insts, bits)
	default:
		b.Set32(pmid, insts, bits)
	}
}

// fileRow is what is known of a file as an instance of the indom of files.
type fileRow struct {
	inst    int32
	sort    string // the file's name
	name    string // as shown
	status  string
	rejects int
	metrics int
	file    *file // nil: not loaded
}

// fileRows is the indom of files as pmda sees it.
type fileRows []fileRow

func (r fileRows) Len() int { return len(r) }

func (r fileRows) At(i int) (int32, []byte) { return r[i].inst, []byte(r[i].name) }

// visible makes text that came from a file fit for a terminal.
func visible(s string) string {
	plain := func(r rune) bool {
		return r >= ' ' && r < 0x7f || r > 0x7f && r != utf8.RuneError && strconv.IsPrint(r)
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	var b []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if plain(r) {
			b = append(b, s[:n]...)
		} else {
			q := strconv.Quote(s[:n])
			b = append(b, q[1:len(q)-1]...)
		}
		s = s[n:]
	}
	return string(b)
}

// storeControl sets a control metric.
func (s *session) storeControl(set *pcpwire.ValueSet) error {
	m := s.t.controlMetric(set.PMID.Item())
	switch {
	case m == nil:
		return pcpwire.ErrPMID
	case m.item != itemReload && m.item != itemDebug:
		return pcpwire.ErrPermission
	case set.NumVal != 1 || len(set.Values) != 1:
		return pcpwire.ErrBadStore
	}
	v := &set.Values[0]
	text := m.desc.Type == pcpwire.TypeString
	switch {
	case text != (set.Format != pcpwire.InSitu && v.Block.Type == pcpwire.TypeString):
		return pcpwire.ErrConv
	case text:
		return s.e.setDebug(string(trimNUL(v.Block.Body)), 0)
	case set.Format != pcpwire.InSitu:
		return pcpwire.ErrConv
	case m.item == itemDebug:
		return s.e.setDebug("", int32(v.Word))
	case v.Word != 0:
		s.e.forced.Store(true)
	}
	return nil
}

func trimNUL(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}
