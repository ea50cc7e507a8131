package exporter

import (
	"fmt"
	"slices"
	"strings"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// tops are the first components below the root, in load order, and those of
// them that are one plain file's, by name.
func tops(files, joined []*file, clusters *[maxCluster + 1]*cluster, domain uint32) (all, plain []top) {
	all = make([]top, 1, len(files)+1)
	all[0] = top{name: "control"}
	plain = make([]top, 0, len(files))
	seen := map[string]bool{"control": true}
	next := 0
	for _, f := range files {
		if next < len(joined) && joined[next] == f {
			next++
			for _, t := range f.tops {
				if !seen[t] {
					seen[t] = true
					all = append(all, top{name: t})
				}
			}
			continue
		}
		if len(f.tops) == 0 {
			continue
		}
		c := clusters[f.cluster]
		tree := c.tree(f)
		if tree.Len() == 0 {
			continue
		}
		t := top{f.tops[0], tree, pcpwire.NewPMID(domain, f.cluster, 0)}
		all = append(all, t)
		plain = append(plain, t)
	}
	byName := func(a, b top) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(plain, byName) {
		slices.SortFunc(plain, byName)
	}
	return all, plain
}

// count fills in the numbers and the statuses of files, and tells what is new.
func (e *Exporter) count(next, old *Table, files []*file, touched map[uint32]bool) {
	for n := range e.members {
		if c := next.clusters[n]; c != nil {
			next.metrics += c.count
			next.namesToken += c.hash
			next.labelsToken += c.labels
		}
	}
	next.namesToken += next.forcing
	for _, f := range files {
		if !f.f.Held {
			next.loaded++
		}
	}
	for i := range next.snap.Others {
		switch next.snap.Others[i].State {
		case reader.Pending:
			next.pending++
		case reader.Rejected:
			next.rejected++
		case reader.Dead, reader.Loaded:
		}
	}
	next.rejected += len(e.failed)
	e.rows(next)
	e.tellChanges(next, old, touched)
}

// rows makes the indom of files.
func (e *Exporter) rows(t *Table) {
	if e.opts.FileMetrics == FileMetricsOff {
		return
	}
	add := func(name, status string, f *file) {
		if len(t.files) >= maxFileInstances {
			return
		}
		row := fileRow{inst: e.reg.instance(e.reg.name(name)), name: visible(name), status: status, file: f}
		if f != nil {
			row.metrics, row.rejects = exportedMetrics(t.clusters[f.cluster], f)
		}
		t.files = append(t.files, row)
	}
	others := t.snap.Others
	for _, f := range t.snap.Files {
		for len(others) > 0 && others[0].Name < f.Name {
			add(others[0].Name, otherStatus(others[0]), nil)
			others = others[1:]
		}
		if f.Held { // told as pending
			continue
		}
		n := e.byName[f.Name]
		status := e.loadedStatus(t, n)
		switch {
		case n.cluster == 0:
			add(f.Name, status, nil)
		case e.opts.FileMetrics == FileMetricsAll || status != "loaded":
			add(f.Name, status, n)
		}
	}
	for _, o := range others {
		add(o.Name, otherStatus(o), nil)
	}
}

func otherStatus(o reader.Entry) string {
	switch o.State {
	case reader.Dead:
		return clip(visible(o.Err.Error()))
	default:
		return clip(o.State.String() + ": " + visible(o.Err.Error()))
	}
}

// clip bounds a status.
func clip(s string) string {
	const most = 1000
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

// exportedMetrics counts the metrics of a file that are exported, and those
// that are not.
func exportedMetrics(c *cluster, f *file) (exported, not int) {
	out := 0
	if c.excluded != nil {
		out = len(c.excluded[slices.Index(c.files, f)])
	}
	return len(f.metrics) - out, f.rejected + out
}

// loadedStatus is what there is to say of a file that is loaded.
func (e *Exporter) loadedStatus(t *Table, f *file) string {
	if f.cluster == 0 {
		return clip("rejected: " + visible(e.failed[f.f.Name].Error()))
	}
	c := t.clusters[f.cluster]
	_, n := exportedMetrics(c, f)
	k := slices.Index(c.files, f)
	if n == 0 && f.cat.RemarkCount == 0 && c.notes[k] == nil {
		return "loaded"
	}
	var b strings.Builder
	b.WriteString("loaded")
	if n > 0 {
		fmt.Fprintf(&b, ", %d metric%s not exported", n, plural(n))
	}
	sep := ": "
	say := func(format string, args ...any) {
		b.WriteString(sep)
		fmt.Fprintf(&b, format, args...)
		sep = "; "
	}
	for _, p := range f.problems {
		say("metric[%d] %s: %v", p.metric, f.cat.Text(f.cat.Metrics[p.metric].Name), p.err)
	}
	if c.excluded != nil {
		for _, m := range f.metrics {
			if err := c.excluded[k][m]; err != nil && b.Len() < 2000 {
				say("metric[%d] %s: %v", m, f.cat.Text(f.cat.Metrics[m].Name), err)
			}
		}
	}
	if c.notes[k] != nil {
		say("%v", c.notes[k])
	}
	if f.cat.RemarkCount > 0 {
		say("%d entr%s of it not used", f.cat.RemarkCount, map[bool]string{true: "y", false: "ies"}[f.cat.RemarkCount == 1])
		for _, r := range f.cat.Remarks {
			say("%v", r)
		}
	}
	return clip(visible(b.String()))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// tellChanges makes events of the reports, and of files whose status has
// changed with another file.
func (e *Exporter) tellChanges(next, old *Table, touched map[uint32]bool) {
	for n := range touched {
		for _, f := range e.members[n] {
			if _, ok := e.unread[f.f.Name]; !ok && !f.f.Held {
				e.tellStatus(f.f.Name, e.loadedStatus(next, f), Info)
			}
		}
	}
	for name, r := range e.unread {
		f := e.byName[name]
		switch {
		case r.Gone:
			if _, ok := e.told[name]; ok {
				delete(e.told, name)
				e.events = append(e.events, Event{Level: Info, File: name, Text: "gone"})
			}
		case r.State == reader.Loaded && f != nil:
			e.tellStatus(name, e.loadedStatus(next, f), Info)
		case r.State == reader.Rejected:
			e.tellStatus(name, otherStatus(reader.Entry{Name: name, State: r.State, Err: r.Err}), Warning)
		case r.Err != nil:
			e.tellStatus(name, otherStatus(reader.Entry{Name: name, State: r.State, Err: r.Err}), Info)
		}
	}
	clear(e.unread)
	if old != nil {
		return
	}
	e.events = append(e.events, Event{Level: Info, Text: fmt.Sprintf("%d file%s with %d metrics in %s",
		next.loaded, plural(next.loaded), next.metrics, e.opts.Dir)})
	if e.keeper != nil && e.keeper.fresh && next.loaded > 0 {
		e.events = append(e.events, Event{Level: Info, Text: "no saved identities: PMIDs chosen by the agent may differ from those of an earlier run"})
	}
}

// tellStatus tells a file's status when it is new.
func (e *Exporter) tellStatus(name, status string, level Level) {
	if was, ok := e.told[name]; ok && was == status {
		return
	}
	e.told[name] = status
	if !e.started && status == "loaded" { // told as a number
		return
	}
	if level < Warning && status != "loaded" && !strings.HasPrefix(status, "pending") && !strings.HasPrefix(status, "process") {
		level = Warning
	}
	e.events = append(e.events, Event{Level: level, File: name, Text: status})
}
