// Package list shows what the agent exports, without pmcd: as pminfo prints it,
// as JSON, or as text for scrapers.
package list

import (
	"fmt"
	"slices"

	"pmdammv/cmd/pmdammv/internal/local"
	"pmdammv/pkg/pcpwire"
)

// want says what of a metric is asked for.
type want struct{ desc, value, oneline, help, labels bool }

var everything = want{true, true, true, true, true}

// metric is what there is to say of one.
type metric struct {
	name    string
	pmid    pcpwire.PMID
	desc    pcpwire.Desc
	err     error // of the above
	oneline text
	help    text
	labels  labels
	values  local.Values
	insts   []instance
	byID    map[int32]int // index in insts
}

type text struct {
	text string
	err  error
}

// labels are merged, widest level first.
type labels struct {
	set pcpwire.LabelSet
	err error
}

// instance is one of the metric's indom, whether or not it has a value.
type instance struct {
	local.Instance
	labels labels
}

// lister asks for metrics. Instances and labels of indoms, which many metrics
// share, are asked for once.
type lister struct {
	*local.Context
	want   want
	indoms map[pcpwire.InDom]*indomInfo
}

type indomInfo struct {
	insts []local.Instance
	err   error
}

// metrics gathers all metrics with these names; all values are of one fetch.
func (l *lister) metrics(names []string) ([]metric, error) {
	l.indoms = map[pcpwire.InDom]*indomInfo{}
	out := make([]metric, len(names))
	var descs []pcpwire.Desc
	var at []int
	for i, name := range names {
		m := &out[i]
		m.name = name
		if m.pmid, m.err = l.PMID(name); m.err == nil {
			m.desc, m.err = l.Desc(m.pmid)
		}
		if m.err != nil {
			continue
		}
		l.about(m)
		descs, at = append(descs, m.desc), append(at, i)
	}
	if !l.want.value || len(descs) == 0 {
		return out, nil
	}
	values, err := l.Fetch(descs)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	for k, i := range at {
		out[i].values = values[k]
	}
	return out, nil
}

// about gathers all but the values.
func (l *lister) about(m *metric) {
	get := func(kind pcpwire.TextKind) text {
		s, err := l.Text(uint32(m.pmid), kind|pcpwire.TextPMID)
		return text{s, err}
	}
	if l.want.oneline || l.want.help {
		m.oneline = get(pcpwire.TextOneLine)
	}
	if l.want.help {
		m.help = get(pcpwire.TextHelp)
	}
	levels := l.Levels(m.desc)
	if l.want.labels {
		m.labels = l.merged(levels)
	}
	if m.desc.InDom == pcpwire.InDomNull || !l.want.value && !l.want.labels {
		return
	}
	info := l.instances(m.desc.InDom)
	m.byID = make(map[int32]int, len(info.insts))
	for _, in := range info.insts {
		m.byID[in.ID] = len(m.insts)
		x := instance{Instance: in}
		if l.want.labels {
			own := local.Level{Level: pcpwire.LabelInstances, Ident: uint32(m.desc.InDom), Inst: in.ID}
			x.labels = l.merged(append(slices.Clip(levels), own))
		}
		m.insts = append(m.insts, x)
	}
}

func (l *lister) merged(levels []local.Level) labels {
	set, err := l.Labels(levels)
	return labels{set, err}
}

func (l *lister) instances(id pcpwire.InDom) *indomInfo {
	info := l.indoms[id]
	if info == nil {
		insts, err := l.Instances(id)
		info = &indomInfo{insts, err}
		l.indoms[id] = info
	}
	return info
}
