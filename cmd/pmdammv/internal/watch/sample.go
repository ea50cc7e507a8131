// Package watch shows metrics as they change: in a terminal as a table that can
// be sorted, filtered and paused, elsewhere as lines. Neither pmcd nor the agent
// need run.
package watch

import (
	"fmt"
	"math"
	"strings"
	"time"

	"pmdammv/cmd/pmdammv/internal/local"
	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
)

// row is one value: of a metric, or of one instance of it.
type row struct {
	metric   string
	instance string // "" for a metric without instances
	hasInst  bool
	counter  bool
	value    string
	units    string

	rate      string // of a counter: "?" while there is but one value, "!" when it was set anew
	rateUnits string

	number  float64 // to sort by: the rate of a counter, else the value; NaN for none
	raw     float64 // the value
	changed bool    // since the sample before
}

// event is something that happened to a file or the directory.
type event struct {
	at   time.Time
	bad  bool
	file string // "" for the directory
	text string
}

// sample is all that was seen at one moment.
type sample struct {
	at     time.Time
	rows   []row
	events []event
	faults []string // names asked for that there are not
	files  int64    // loaded
	others int64    // pending or rejected
}

// key names a value over time.
type key struct {
	metric string
	inst   int32
}

type before struct {
	pmid pcpwire.PMID
	atom pcpwire.AtomValue
}

// sampler takes samples and knows the one before.
type sampler struct {
	ctx   *local.Context
	nodes []string // that were asked for
	files bool     // rather all metrics of files
	last  map[key]before
	at    time.Time
}

// take takes a sample. now is called once, when values are fetched.
func (s *sampler) take(now func() time.Time) (*sample, error) {
	out := &sample{}
	err := s.ctx.Look(func() error { return s.look(out, now) })
	out.events = s.events(out.at)
	return out, err
}

func (s *sampler) events(at time.Time) []event {
	events := s.ctx.Events()
	out := make([]event, 0, len(events))
	for _, ev := range events {
		out = append(out, event{at, ev.Level >= exporter.Warning, ev.File, ev.Text})
	}
	return out
}

func (s *sampler) look(out *sample, now func() time.Time) error {
	var descs []pcpwire.Desc
	var names []string
	seen := map[string]bool{}
	add := func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		pmid, err := s.ctx.PMID(name)
		if err != nil {
			return err
		}
		d, err := s.ctx.Desc(pmid)
		if err != nil {
			return err
		}
		names, descs = append(names, name), append(descs, d)
		return nil
	}
	nodes, own := s.nodes, ""
	if s.files {
		nodes, own = []string{s.ctx.Root()}, s.ctx.Root()+".control."
	}
	for _, node := range nodes {
		below, err := s.ctx.Names(node)
		if err != nil {
			out.faults = append(out.faults, fmt.Sprintf("%s: %v", node, err))
		}
		for _, name := range below {
			if own != "" && strings.HasPrefix(name, own) {
				continue
			}
			if err := add(name); err != nil {
				return err
			}
		}
	}
	shown := len(names)
	for _, c := range []string{"files", "pending", "rejected"} { // for the title
		if err := add(s.ctx.Root() + ".control." + c); err != nil {
			return err
		}
	}
	values, err := s.ctx.Fetch(descs)
	if err != nil {
		return err
	}
	out.at = now()
	if err := s.rows(out, names[:shown], descs, values); err != nil {
		return err
	}
	for i, name := range names {
		if n := len(values[i].Values); n == 1 {
			switch v := int64(values[i].Values[0].Atom.U32()); name {
			case s.ctx.Root() + ".control.files":
				out.files = v
			case s.ctx.Root() + ".control.pending", s.ctx.Root() + ".control.rejected":
				out.others += v
			}
		}
	}
	return nil
}

// rows makes rows of values, and remembers them.
func (s *sampler) rows(out *sample, names []string, descs []pcpwire.Desc, values []local.Values) error {
	seconds := out.at.Sub(s.at).Seconds()
	next := make(map[key]before, len(s.last))
	indoms := map[pcpwire.InDom]map[int32]string{}
	for i, name := range names {
		d := &descs[i]
		var insts map[int32]string
		if d.InDom != pcpwire.InDomNull && len(values[i].Values) > 0 {
			if insts = indoms[d.InDom]; insts == nil {
				list, err := s.ctx.Instances(d.InDom)
				if err != nil {
					return err
				}
				insts = make(map[int32]string, len(list))
				for _, in := range list {
					insts[in.ID] = in.Name
				}
				indoms[d.InDom] = insts
			}
		}
		for _, v := range values[i].Values {
			k := key{name, v.Inst}
			r := row{metric: name, hasInst: insts != nil, instance: insts[v.Inst], value: long(v.Atom), units: d.Units.String()}
			r.counter = d.Semantics == pcpwire.SemCounter && d.Type != pcpwire.TypeString
			b, known := s.last[k]
			known = known && b.pmid == d.PMID && b.atom.Type == v.Atom.Type
			r.fill(d, v.Atom, b.atom, known, seconds)
			out.rows = append(out.rows, r)
			next[k] = before{d.PMID, v.Atom}
		}
	}
	s.last, s.at = next, out.at
	return nil
}

// fill adds what follows from the value and the one before.
func (r *row) fill(d *pcpwire.Desc, now, b pcpwire.AtomValue, known bool, seconds float64) {
	r.raw, r.number = math.NaN(), math.NaN()
	if f, err := now.Convert(pcpwire.TypeDouble); err == nil {
		r.raw = f.Double()
		r.number = r.raw
	}
	r.changed = known && (now.Bits != b.Bits || string(now.Str) != string(b.Str))
	if !r.counter {
		return
	}
	var scale float64
	r.rateUnits, scale = rateUnits(d.Units)
	r.rate, r.number = "?", math.NaN()
	if !known {
		return
	}
	v, ok := rate(now, b, seconds, scale)
	if r.rate = "!"; ok {
		r.rate, r.number = short(v), v
	}
}

// counters tells whether there are any: they need two samples.
func (s *sample) counters() bool {
	for i := range s.rows {
		if s.rows[i].counter {
			return true
		}
	}
	return false
}
