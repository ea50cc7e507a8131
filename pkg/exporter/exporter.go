package exporter

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pmdammv/pkg/reader"
)

// quiet is how long the directory must be quiet before work is done ahead.
const quiet = 20 * time.Millisecond

// patience is how long, at the most, a request waits for remarks on writers.
const patience = 2 * time.Millisecond

// Exporter exports the metrics of a directory. It is a pmda.Source: each
// connection has a session of its own, all share the newest Table.
type Exporter struct {
	opts  Options
	dir   *reader.Dir
	seed  maphash.Seed
	table atomic.Pointer[Table]

	forced    atomic.Bool // a full look is wanted
	unsettled atomic.Bool // afterwards has something to do; changed under mu
	debug     atomic.Pointer[debugState]

	mu       sync.Mutex // of what follows
	reg      *registry
	keeper   *keeper
	byName   map[string]*file
	members  map[uint32][]*file // of clusters, by name
	failed   map[string]error   // files that got no cluster
	control  []controlMetric
	forcing  uint64            // times that a full look was asked for
	told     map[string]string // status of files as last told
	events   []Event           // to be told
	replaced bool              // there is another Table, since afterwards
	started  bool
	left     uint64                   // times that a file has left its cluster
	patience time.Time                // until when in this publish to look at what processes map
	empty    bool                     // there were no saved identities
	unread   map[string]reader.Report // reports since the last publish

	eventMu sync.Mutex
	cancel  context.CancelFunc
}

type debugState struct {
	text   string
	number int32
}

// New makes an Exporter. It reads the saved identities, but no MMV file: the
// first look does. Close it to have the identities saved.
func New(opts Options) (*Exporter, error) {
	if opts.Prefix == "" {
		opts.Prefix = "mmv"
	}
	if opts.FileMetrics == "" {
		opts.FileMetrics = FileMetricsProblems
	}
	if opts.Event == nil {
		opts.Event = func(Event) {}
	}
	e := &Exporter{
		opts: opts, seed: maphash.MakeSeed(), byName: map[string]*file{}, members: map[uint32][]*file{}, failed: map[string]error{},
		control: controls(opts.PCPVersion, opts.FileMetrics), told: map[string]string{}, unread: map[string]reader.Report{},
	}
	e.debug.Store(&debugState{})
	opts.Reader.Report, opts.Reader.Outline = e.report, true
	var err error
	if e.dir, err = reader.Open(opts.Dir, opts.Reader); err != nil {
		return nil, err
	}
	e.reg = newRegistry()
	if opts.Identities != "" {
		k := &keeper{path: opts.Identities, dir: opts.Dir, event: e.tell, content: e.identities, failed: e.unsaved}
		e.reg = k.load(opts.ReadOnly)
		e.empty = k.empty
		if k.lock != nil {
			e.keeper = k
		}
	}
	e.reg.counter++
	return e, nil
}

// Start looks at the directory in the background whenever it has changed and
// become quiet, so that requests find the work done. It begins with that a little
// later: a first request that comes at once has the processors for itself.
func (e *Exporter) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	time.AfterFunc(quiet, func() {
		if ctx.Err() != nil {
			return
		}
		if err := reader.Watch(ctx, e.opts.Dir, quiet, e.Refresh); err != nil {
			e.tell(Event{Level: Warning, Text: "changes are only looked for on request: " + err.Error()})
		}
		e.complete()
		e.afterwards()
	})
}

// Close saves the identities and lets go of all files. No session may be open.
func (e *Exporter) Close() {
	if e.cancel != nil {
		e.cancel()
	}
	e.mu.Lock()
	k := e.keeper
	e.keeper = nil
	e.mu.Unlock()
	if k != nil {
		k.close()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dir.Close()
}

// tell hands over an event, one at a time.
func (e *Exporter) tell(ev Event) {
	e.eventMu.Lock()
	defer e.eventMu.Unlock()
	e.opts.Event(ev)
}

// identities is what the keeper is to write.
func (e *Exporter) identities(last bool) *savedIdentities {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.reg.dirty && (!last || !e.reg.stale) {
		return nil
	}
	e.reg.dirty, e.reg.stale = false, false
	return e.reg.save()
}

// unsaved is for when they could not be written.
func (e *Exporter) unsaved() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reg.dirty = true
}

// Refresh makes the Table fit the directory as it is now.
func (e *Exporter) Refresh() {
	e.look()
	e.afterwards()
}

// look is Refresh, with afterwards still to be called; looks counts the looks at the
// directory until its own.
func (e *Exporter) look() (looks uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refresh(false)
	return e.dir.Looks()
}

// complete makes a Table of all that there is, where the first was made without
// instances: a list of names needs none.
func (e *Exporter) complete() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refresh(false) // what has happened since, or the first of all
	if e.table.Load().outline {
		e.dir.Complete()
		e.refresh(true)
	}
}

// afterwards does what looks have left to be done when nobody waits for it.
func (e *Exporter) afterwards() {
	if !e.unsettled.Load() {
		return
	}
	e.mu.Lock()
	if e.replaced && e.opts.Published != nil {
		e.opts.Published()
	}
	e.replaced = false
	if e.dir.Reap() { // else again after the answer in progress
		e.unsettled.Store(false)
	}
	events := e.events
	e.events = nil
	e.mu.Unlock()
	for _, ev := range events {
		e.tell(ev)
	}
}

// Rescan is Refresh after looking at every file anew.
func (e *Exporter) Rescan() {
	e.forced.Store(true)
	e.Refresh()
}

// refresh makes the next Table if that must be another; completing says that the
// files need not be other ones then.
func (e *Exporter) refresh(completing bool) {
	t := e.table.Load()
	var snap *reader.Snapshot
	if e.forced.Swap(false) {
		snap = e.dir.Rescan()
		e.forcing++
	} else {
		snap = e.dir.Look()
	}
	if (t == nil || t.outline) && sharedOutline(snap.Files) {
		e.dir.Complete()
		snap = e.dir.Look()
	}
	if t == nil || t.snap != snap || t.forcing != e.forcing {
		e.publish(t, snap, completing && t != nil && t.outline)
		e.replaced = true
	}
	if e.replaced || len(e.events) > 0 {
		e.unsettled.Store(true)
	}
}

// sharedOutline tells whether a file of which no instances were read asks for the
// cluster of another: whether they can share it depends on those.
func sharedOutline(files []*reader.File) bool {
	outline := func(f *reader.File) bool { return f.Catalog.Outline && f.Catalog.Header.Cluster != 0 }
	if !slices.ContainsFunc(files, outline) {
		return false
	}
	asked := map[int32]int{}
	for _, f := range files {
		asked[f.Catalog.Header.Cluster]++
	}
	return slices.ContainsFunc(files, func(f *reader.File) bool { return outline(f) && asked[f.Catalog.Header.Cluster] > 1 })
}

// report collects what the directory says of its files; one look may have
// several to say of one file.
func (e *Exporter) report(r reader.Report) {
	if r.Name == "" {
		switch {
		case r.Err == nil:
			e.events = append(e.events, Event{Level: Info, Text: "directory " + e.opts.Dir + " is there"})
		case errors.Is(r.Err, reader.ErrNoInotify):
			e.events = append(e.events, Event{Level: Warning, Text: r.Err.Error()})
		default:
			e.events = append(e.events, Event{Level: Warning, Text: "no files: " + r.Err.Error()})
		}
		return
	}
	e.unread[r.Name] = r
}

// publish makes the next Table from the one before and the Snapshot. completed says
// that it is the same with all instances, and no reload.
func (e *Exporter) publish(old *Table, snap *reader.Snapshot, completed bool) {
	e.reg.counter++
	next := &Table{domain: e.opts.Domain, control: e.control, snap: snap, forcing: e.forcing, number: e.reg.counter}
	next.outline = slices.ContainsFunc(snap.Files, func(f *reader.File) bool { return f.Catalog.Outline })
	if old != nil {
		next.clusters, next.indoms, next.reloads = old.clusters, old.indoms, old.reloads
		if !completed {
			next.reloads++
		}
		next.clusters.own = 0
	}
	touched := map[uint32]bool{}
	next.list = e.take(old, snap, touched)
	e.build(next, old, touched)
	e.count(next, old, touched)
	e.tellChanges(next, old, touched)
	e.table.Store(next)
	e.started = true
	if e.reg.dirty && e.keeper != nil {
		e.keeper.save()
	}
	if e.reg.evicted {
		e.reg.evicted = false
		const text = "numbers of files that have long been gone are given to others"
		e.once(text, text)
	}
}

// once tells something the first time; key says what it is.
func (e *Exporter) once(text, key string) {
	if _, ok := e.told["\x00"+key]; !ok {
		e.told["\x00"+key] = ""
		e.events = append(e.events, Event{Level: Warning, Text: text})
	}
}

// take brings the files and their clusters up to date with the Snapshot, and
// returns them in its order.
func (e *Exporter) take(old *Table, snap *reader.Snapshot, touched map[uint32]bool) []*file {
	e.patience = time.Now().Add(patience)
	var fresh, was []*file
	if old != nil {
		was = old.list
	}
	left := e.left
	gone := func(f *file) {
		e.leave(f, touched)
		delete(e.byName, f.f.Name)
		delete(e.failed, f.f.Name)
	}
	list := make([]*file, len(snap.Files))
	for i, f := range snap.Files { // both lists are by name
		for len(was) > 0 && was[0].f.Name < f.Name {
			gone(was[0])
			was = was[1:]
		}
		if len(was) > 0 && was[0].f.Name == f.Name {
			o := was[0]
			was = was[1:]
			if o.f == f {
				list[i] = o
				continue
			}
		}
		n := e.renew(f, touched)
		list[i] = n
		if n.cluster == 0 {
			fresh = append(fresh, n)
		}
	}
	for _, f := range was {
		gone(f)
	}
	if e.left != left {
		for name, err := range e.failed { // there may be a cluster for it now
			if errors.Is(err, errNoCluster) {
				fresh = append(fresh, e.byName[name])
			}
		}
	}
	e.place(fresh, touched)
	return list
}

// renew takes in a file that is new or has changed. Unless only its mapping did,
// it has no cluster yet.
func (e *Exporter) renew(f *reader.File, touched map[uint32]bool) *file {
	delete(e.failed, f.Name)
	n, o := &file{f: f}, e.byName[f.Name]
	n.unmapped = f.Catalog.Header.Flags&reader.FlagProcess != 0 && time.Now().Before(e.patience) && f.Unmapped()
	if o == nil || o.cat != f.Catalog && !o.cat.Equal(f.Catalog) {
		n.source = newSource(f.Name, f.Catalog, e.opts.SanitizeNames)
	} else {
		n.source = o.source
	}
	if o == nil {
		return n
	}
	if n.source == o.source && o.cluster != 0 {
		n.id, n.cluster, n.since = o.id, o.cluster, o.since
		e.replace(o, n, touched)
		return n
	}
	e.leave(o, touched)
	n.was = o.source
	return n
}

// replace puts n where o was.
func (e *Exporter) replace(o, n *file, touched map[uint32]bool) {
	e.byName[n.f.Name] = n
	m := slices.Clone(e.members[n.cluster])
	m[slices.Index(m, o)] = n
	e.members[n.cluster] = m
	touched[n.cluster] = true
}

// leave takes a file out of its cluster, which stays its own.
func (e *Exporter) leave(f *file, touched map[uint32]bool) {
	if f.cluster == 0 {
		return
	}
	e.left++
	e.reg.leave(f.id)
	m := slices.Clone(e.members[f.cluster])
	i := slices.Index(m, f)
	if m = slices.Delete(m, i, i+1); len(m) > 0 {
		e.members[f.cluster] = m
	} else {
		delete(e.members, f.cluster)
	}
	touched[f.cluster] = true
}

// build makes the clusters touched, the name space and the indoms.
func (e *Exporter) build(next, old *Table, touched map[uint32]bool) {
	from := joins(next.list, e.opts.SanitizeNames)
	joined := map[uint32]bool{} // clusters whose names are joined anew, and which are not touched
	if e.joinAgain(from, old, touched) {
		if old != nil {
			for _, f := range old.space.from { // what they took may be free
				joined[f.cluster] = !touched[f.cluster]
			}
		}
		for _, f := range from {
			joined[f.cluster] = !touched[f.cluster]
		}
	}
	for _, set := range []map[uint32]bool{touched, joined} {
		for n, in := range set {
			if !in {
				continue
			}
			var c *cluster
			if files := e.members[n]; files != nil {
				c = newCluster(n, files)
			}
			next.clusters.set(n, c)
		}
	}
	ns := &next.space
	ns.root, ns.from = []byte(e.opts.Prefix), from
	if old == nil || len(joined) > 0 {
		ns.joined, ns.firsts = join(e.control, e.opts.Domain, from, &next.clusters)
	} else {
		ns.joined, ns.firsts = old.space.joined, old.space.firsts
	}
	for n, in := range joined {
		if c := next.clusters.at(n); in && c != nil && c.exports(old.clusters.at(n)) {
			next.clusters.set(n, old.clusters.at(n))
		} else if in {
			touched[n] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(touched)) {
		if c := next.clusters.at(n); c != nil {
			var was *cluster
			if old != nil {
				was = old.clusters.at(n)
			}
			c.finish(e.opts.Domain, e.reg, e.seed, was)
		}
	}
	ns.top(next.list, &next.clusters, e.opts.Domain)
	next.indoms = withInDoms(next.indoms, &next.clusters, touched)
}

// joinAgain tells whether the joined names may be other ones.
func (e *Exporter) joinAgain(from []*file, old *Table, touched map[uint32]bool) bool {
	if old == nil || !slices.Equal(from, old.space.from) {
		return true
	}
	return slices.ContainsFunc(from, func(f *file) bool { return touched[f.cluster] })
}
