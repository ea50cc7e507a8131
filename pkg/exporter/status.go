package exporter

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"pmdammv/pkg/reader"
)

// count fills in the numbers and the indom of files. Those of the clusters are
// sums, of which the ones of the clusters touched change.
func (e *Exporter) count(t, old *Table, touched map[uint32]bool) {
	if old != nil {
		t.sums = old.sums
	}
	for n := range touched {
		if old != nil && old.clusters.at(n) != nil {
			t.sums = t.minus(old.clusters.at(n).sums)
		}
		if c := t.clusters.at(n); c != nil {
			t.sums = t.plus(c.sums)
		}
	}
	for _, f := range t.list {
		switch {
		case f.f.Held: // told as pending
		case f.cluster != 0:
			t.loaded++
		default:
			t.rejected++
		}
	}
	for i := range t.snap.Others {
		switch t.snap.Others[i].State {
		case reader.Pending:
			t.pending++
		case reader.Rejected:
			t.rejected++
		case reader.Dead, reader.Loaded:
		}
	}
	if e.opts.FileMetrics != FileMetricsOff {
		e.rows(t)
	}
}

// rows makes the indom of files: those that are not cleanly loaded, and if
// wanted the others, as far as there is room.
func (e *Exporter) rows(t *Table) {
	var clean []*file
	others := t.snap.Others
	other := func(o reader.Entry) {
		if len(t.files) < maxFileInstances {
			t.files = append(t.files, e.row(o.Name, otherStatus(o)))
		}
	}
	all := e.opts.FileMetrics == FileMetricsAll
	for _, f := range t.list {
		for len(others) > 0 && others[0].Name < f.f.Name {
			other(others[0])
			others = others[1:]
		}
		if f.cluster != 0 && !all && t.clusters.at(f.cluster).clean {
			continue
		}
		switch status := e.fileStatus(t, f); {
		case f.f.Held: // told as pending
		case status == cleanly:
			clean = append(clean, f)
		case len(t.files) >= maxFileInstances:
		default:
			t.files = append(t.files, e.loadedRow(t, f, status))
		}
	}
	for _, o := range others {
		other(o)
	}
	if !all {
		return
	}
	for _, n := range clean[:min(len(clean), maxFileInstances-len(t.files))] {
		t.files = append(t.files, e.loadedRow(t, n, cleanly))
	}
	sort.Slice(t.files, func(i, j int) bool { return t.files[i].sort < t.files[j].sort })
}

func (e *Exporter) row(name, status string) fileRow {
	return fileRow{inst: e.reg.instance(e.reg.name(name)), sort: name, name: visible(name), status: status}
}

func (e *Exporter) loadedRow(t *Table, f *file, status string) fileRow {
	r := e.row(f.f.Name, status)
	if f.cluster != 0 {
		c := t.clusters.at(f.cluster)
		r.file = f
		r.metrics, r.rejects = c.exported(c.index(f))
	}
	return r
}

// fileStatus is that of a file with a Catalog.
func (e *Exporter) fileStatus(t *Table, f *file) string {
	if f.cluster == 0 {
		return clip("rejected: " + visible(e.failed[f.f.Name].Error()))
	}
	c := t.clusters.at(f.cluster)
	return c.status[c.index(f)]
}

func otherStatus(o reader.Entry) string {
	text := visible(o.Err.Error())
	if o.State != reader.Dead {
		text = o.State.String() + ": " + text
	}
	return clip(text)
}

// clip bounds a status.
func clip(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	n := most
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// exported counts the metrics of file k that are exported, and those that are
// not.
func (c *cluster) exported(k int) (exported, not int) {
	out := 0
	if c.excluded != nil {
		out = len(c.excluded[k])
	}
	f := c.files[k]
	return f.len() - out, f.rejected + out
}

// cleanly is the status of a file of which there is nothing to say.
const cleanly = "loaded"

// loadedStatus is what there is to say of file k; values says whether that
// includes that other files have values of the same instances.
func (c *cluster) loadedStatus(k int, values bool) string {
	f := c.files[k]
	_, n := c.exported(k)
	var h hidden
	if c.hidden != nil {
		h = c.hidden[k]
		if !values {
			h.values, h.by = 0, 0
		}
	}
	if n == 0 && f.cat.RemarkCount == 0 && h == (hidden{}) && !f.unmapped {
		return cleanly
	}
	b := statusBuilder{sep: ": "}
	_, _ = b.WriteString(cleanly)
	if n > 0 {
		_, _ = fmt.Fprintf(&b, ", %d metric%s not exported", n, plural(n))
		for _, p := range f.problems {
			b.say("metric[%d] %s: %v", p.metric, f.cat.Text(f.cat.Metrics[p.metric].Name), p.err)
		}
		if n -= f.rejected; n > 0 {
			for m := range f.metrics() {
				if err := c.excluded[k][m]; err != nil && b.more() {
					b.say("metric[%d] %s: %v", m, f.cat.Text(f.cat.Metrics[m].Name), err)
				}
			}
		}
	}
	if h.insts > 0 {
		b.say("%d instance%s of shared metrics left out: %v", h.insts, plural(h.insts), h.inst)
	}
	if h.values > 0 {
		b.say("of %d metric%s values of %q are shown instead", h.values, plural(h.values), c.files[h.by].f.Name)
	}
	if f.unmapped {
		b.say("process %d does not map it", f.cat.Header.Process)
	}
	if r := f.cat.RemarkCount; r > 0 {
		b.say("%d entr%s of it not used", r, map[bool]string{true: "y", false: "ies"}[r == 1])
		for _, r := range f.cat.Remarks {
			b.say("%v", r)
		}
	}
	return clip(visible(b.String()))
}

// statusBuilder joins the parts of a status.
type statusBuilder struct {
	strings.Builder
	sep string
}

func (b *statusBuilder) say(format string, args ...any) {
	_, _ = b.WriteString(b.sep)
	_, _ = fmt.Fprintf(b, format, args...)
	b.sep = "; "
}

// more tells whether more would be seen.
func (b *statusBuilder) more() bool { return b.Len() < 1200 }

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// otherName says that an instance of file k has another name in u.
type otherName struct {
	c      *cluster
	u      *merged
	k      int
	serial uint32
	in     reader.Instance
}

func (e otherName) String() string {
	o := e.u.insts[e.u.byID[e.in.Internal]]
	there := e.c.files[o.file]
	return fmt.Sprintf("%d of indom %d is %q here and %q in %q", e.in.Internal, e.serial,
		e.c.files[e.k].cat.Text(e.in.External), there.cat.Text(o.name), there.f.Name)
}

// tellChanges makes events of what the directory has reported, and of files
// whose status has changed with another file.
func (e *Exporter) tellChanges(next, old *Table, touched map[uint32]bool) {
	list := make([]reader.Report, 0, len(e.unread))
	for n := range touched {
		for _, f := range e.members[n] {
			if _, ok := e.unread[f.f.Name]; !ok && !f.f.Held {
				list = append(list, reader.Report{Name: f.f.Name, State: reader.Loaded})
			}
		}
	}
	for _, r := range e.unread {
		list = append(list, r)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	for _, r := range list {
		f := e.byName[r.Name]
		switch {
		case r.Gone:
			if _, ok := e.told[r.Name]; ok {
				delete(e.told, r.Name)
				e.events = append(e.events, Event{Level: Info, File: r.Name, Text: "gone"})
			}
		case r.State != reader.Loaded:
			level := Info
			if r.State == reader.Rejected {
				level = Warning
			}
			e.tellStatus(r.Name, otherStatus(reader.Entry{Name: r.Name, State: r.State, Err: r.Err}), level)
		case f != nil:
			e.tellLoaded(next, f)
		}
	}
	clear(e.unread)
	if old != nil {
		return
	}
	e.events = append(e.events, Event{Level: Info, Text: fmt.Sprintf("%d file%s with %d metric%s in %s",
		next.loaded, plural(next.loaded), next.metrics, plural(next.metrics), visible(e.opts.Dir))})
	if e.empty && next.loaded > 0 {
		e.events = append(e.events, Event{Level: Info, Text: "no saved identities: PMIDs chosen by the agent may differ from those of an earlier run"})
	}
}

// tellLoaded tells the status of a file that is loaded. Where all that there is
// to say is that other files have the same values, that is told once for all of
// a cluster.
func (e *Exporter) tellLoaded(t *Table, f *file) {
	status := e.fileStatus(t, f)
	if f.cluster != 0 {
		c := t.clusters.at(f.cluster)
		k := c.index(f)
		if c.hidden != nil && c.hidden[k].values > 0 {
			h := c.hidden[k]
			e.once(fmt.Sprintf("cluster %d: several files have values of one metric and instance, like %q and %q; that of the first by name is shown",
				c.number, c.files[h.by].f.Name, f.f.Name), fmt.Sprintf("twice in %d", c.number))
			status = c.loadedStatus(k, false)
		}
	}
	level := Info
	if status != cleanly {
		level = Warning
	}
	e.tellStatus(f.f.Name, status, level)
}

// tellStatus tells a file's status when it is new.
func (e *Exporter) tellStatus(name, status string, level Level) {
	if was, ok := e.told[name]; ok && was == status {
		return
	}
	e.told[name] = status
	if !e.started && status == cleanly { // told as a number
		return
	}
	e.events = append(e.events, Event{Level: level, File: name, Text: status})
}
