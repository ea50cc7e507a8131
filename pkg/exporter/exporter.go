package exporter

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pmdammv/pkg/reader"
)

// quiet is how long the directory must be quiet before work is done ahead.
const quiet = 20 * time.Millisecond

// Exporter exports the metrics of a directory. It is a pmda.Source: each
// connection has a session of its own, all share the newest Table.
type Exporter struct {
	opts  Options
	dir   *reader.Dir
	seed  maphash.Seed
	table atomic.Pointer[Table]

	forced atomic.Bool // a full look is wanted
	debug  atomic.Pointer[debugState]

	mu      sync.Mutex // of what follows
	reg     *registry
	keeper  *keeper
	byName  map[string]*file
	members [maxCluster + 1][]*file // by name
	failed  map[string]error        // files that got no cluster
	control []controlMetric
	forcing uint64            // times that a full look was asked for
	told    map[string]string // status of files as last told
	events  []Event
	started bool
	unread  map[string]reader.Report // reports since the last publish

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
		opts: opts, seed: maphash.MakeSeed(), byName: map[string]*file{}, failed: map[string]error{},
		control: controls(opts.PCPVersion, opts.FileMetrics), told: map[string]string{}, unread: map[string]reader.Report{},
	}
	e.debug.Store(&debugState{})
	opts.Reader.Report = e.report
	var err error
	if e.dir, err = reader.Open(opts.Dir, opts.Reader); err != nil {
		return nil, err
	}
	e.reg = newRegistry()
	if opts.Identities != "" {
		e.keeper = &keeper{path: opts.Identities, dir: opts.Dir, event: e.tell, content: e.identities}
		e.reg = e.keeper.load(opts.ReadOnly)
		if e.keeper.lock == nil {
			e.keeper = nil
		} else {
			e.keeper.start()
		}
	}
	e.reg.counter++
	return e, nil
}

// Start looks at the directory in the background whenever it has changed and
// become quiet, so that requests find the work done.
func (e *Exporter) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	if err := reader.Watch(ctx, e.opts.Dir, quiet, e.Refresh); err != nil {
		e.tell(Event{Level: Warning, Text: "changes are only looked for on request: " + err.Error()})
	}
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
func (e *Exporter) identities() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.reg.dirty {
		return nil
	}
	e.reg.dirty = false
	return e.reg.marshal(e.opts.Dir)
}

// Refresh makes the Table fit the directory as it is now.
func (e *Exporter) Refresh() {
	e.mu.Lock()
	events := e.refresh()
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

func (e *Exporter) refresh() []Event {
	t := e.table.Load()
	var snap *reader.Snapshot
	if e.forced.Swap(false) {
		snap = e.dir.Rescan()
		e.forcing++
	} else {
		snap = e.dir.Look()
	}
	if t != nil && t.snap == snap && t.forcing == e.forcing {
		return nil
	}
	e.publish(t, snap)
	e.dir.Reap()
	if e.opts.Published != nil {
		e.opts.Published()
	}
	events := e.events
	e.events = nil
	return events
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

// publish makes the next Table from the one before and the Snapshot.
func (e *Exporter) publish(old *Table, snap *reader.Snapshot) {
	e.reg.counter++
	next := &Table{domain: e.opts.Domain, control: e.control, snap: snap, forcing: e.forcing}
	if old != nil {
		next.clusters, next.indoms, next.reloads = old.clusters, old.indoms, old.reloads+1
	}
	touched := map[uint32]bool{}
	files := e.take(old, snap, touched)
	e.build(next, old, files, touched)
	e.count(next, old, files, touched)
	e.table.Store(next)
	e.started = true
	if e.reg.dirty && e.keeper != nil {
		e.keeper.save()
	}
	if e.reg.evicted {
		e.reg.evicted = false
		e.once("numbers of files that have long been gone are given to others")
	}
}

// once tells something the first time.
func (e *Exporter) once(text string) {
	if _, ok := e.told["\x00"+text]; !ok {
		e.told["\x00"+text] = ""
		e.events = append(e.events, Event{Level: Warning, Text: text})
	}
}

// take brings the files and their clusters up to date with the Snapshot, and
// returns those that have a cluster, by name.
func (e *Exporter) take(old *Table, snap *reader.Snapshot, touched map[uint32]bool) []*file {
	var fresh []*file
	var was []*reader.File
	if old != nil {
		was = old.snap.Files
	}
	gone := func(f *reader.File) {
		e.leave(e.byName[f.Name], touched)
		delete(e.byName, f.Name)
		delete(e.failed, f.Name)
	}
	for _, f := range snap.Files { // both lists are by name
		for len(was) > 0 && was[0].Name < f.Name {
			gone(was[0])
			was = was[1:]
		}
		if len(was) > 0 && was[0].Name == f.Name {
			same := was[0] == f
			was = was[1:]
			if same {
				continue
			}
		}
		if n := e.renew(f, touched); n != nil {
			fresh = append(fresh, n)
		}
	}
	for _, f := range was {
		gone(f)
	}
	e.place(fresh, touched)
	files := make([]*file, 0, len(snap.Files))
	for _, f := range snap.Files {
		if n := e.byName[f.Name]; n != nil && n.cluster != 0 {
			files = append(files, n)
		}
	}
	return files
}

// renew takes in a file that is new or has changed. It returns nil if only its
// mapping did, else what needs a cluster.
func (e *Exporter) renew(f *reader.File, touched map[uint32]bool) *file {
	n, o := &file{f: f}, e.byName[f.Name]
	if o == nil || o.cat != f.Catalog && !o.cat.Equal(f.Catalog) {
		n.source = newSource(f.Name, f.Catalog, e.opts.SanitizeNames, e.seed)
	} else {
		n.source = o.source
	}
	if o == nil {
		return n
	}
	if n.source == o.source && o.cluster != 0 {
		n.id, n.cluster, n.since = o.id, o.cluster, o.since
		e.replace(o, n, touched)
		return nil
	}
	e.leave(o, touched)
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
	e.reg.leave(f.id)
	m := slices.Clone(e.members[f.cluster])
	e.members[f.cluster] = slices.Delete(m, slices.Index(m, f), slices.Index(m, f)+1)
	touched[f.cluster] = true
}

// place gives each new file its cluster. Numbers that are kept come first,
// then those that files ask for, then any.
func (e *Exporter) place(fresh []*file, touched map[uint32]bool) {
	for _, f := range fresh {
		delete(e.failed, f.f.Name)
		e.byName[f.f.Name] = f
	}
	fresh = slices.DeleteFunc(fresh, func(f *file) bool {
		if f.err != nil {
			e.failed[f.f.Name] = f.err
		}
		return f.err != nil
	})
	rank := func(f *file) int {
		known, asked := e.reg.names[f.f.Name], uint32(f.cat.Header.Cluster)
		switch {
		case known != nil && known.cluster != 0 && known.asked == asked && (!known.own() || asked == 0):
			return 0 // as before
		case asked != 0 && (known == nil || !known.own() || known.asked != asked):
			return 1 // asks for a number
		case asked != 0:
			return 2 // moved away from the one it asked for
		default:
			return 3
		}
	}
	ranks := make(map[*file]int, len(fresh))
	for _, f := range fresh {
		ranks[f] = rank(f)
	}
	slices.SortStableFunc(fresh, func(a, b *file) int {
		ka, kb := e.reg.names[a.f.Name], e.reg.names[b.f.Name]
		if ranks[a] == 0 && ranks[b] == 0 && ka.since != kb.since {
			return int(int64(ka.since - kb.since))
		}
		return ranks[a] - ranks[b]
	})
	for _, f := range fresh { // before any number is given out
		if asked := uint32(f.cat.Header.Cluster); asked != 0 {
			id := e.reg.name(f.f.Name)
			if id.cluster == 0 && id.asked == 0 {
				e.reg.ask(id, asked)
			}
		}
	}
	for _, f := range fresh {
		f.id = e.reg.name(f.f.Name)
		n, err := e.choose(f)
		if err != nil {
			e.failed[f.f.Name] = err
			continue
		}
		e.reg.give(f.id, uint32(f.cat.Header.Cluster), n)
		e.reg.appear(f.id)
		f.cluster, f.since = n, f.id.since
		m := e.members[n]
		i, _ := slices.BinarySearchFunc(m, f.f.Name, func(o *file, name string) int { return strings.Compare(o.f.Name, name) })
		e.members[n] = slices.Insert(slices.Clone(m), i, f)
		touched[n] = true
	}
}

// choose finds the cluster of a file.
func (e *Exporter) choose(f *file) (uint32, error) {
	r, asked := e.reg, uint32(f.cat.Header.Cluster)
	id := f.id
	mine := id.cluster != 0 && id.own() && id.asked == asked && r.owner[id.cluster] == id
	if asked == 0 {
		if mine {
			return id.cluster, nil
		}
		return r.free()
	}
	if mine && e.started { // moved, and stays so
		return id.cluster, nil
	}
	r.claim(asked)
	if !conflict(f.source, e.members[asked]) {
		return asked, nil
	}
	if mine {
		return id.cluster, nil
	}
	n, err := r.free()
	if err == nil {
		e.events = append(e.events, Event{Level: Warning, File: f.f.Name, Text: fmt.Sprintf(
			"cluster %d is another file's, with other metrics: %d is used instead", asked, n)})
	}
	return n, err
}

// build makes the clusters touched, the name space and the indoms.
func (e *Exporter) build(next, old *Table, files []*file, touched map[uint32]bool) {
	from := joins(files, e.opts.SanitizeNames)
	again := old == nil || !slices.Equal(from, old.names.from)
	for _, f := range from {
		again = again || touched[f.cluster]
	}
	if again {
		for _, f := range from {
			touched[f.cluster] = true
		}
		if old != nil {
			for _, f := range old.names.from { // what they took may be free
				touched[f.cluster] = true
			}
		}
	}
	for n := range touched {
		next.clusters[n] = nil
		if len(e.members[n]) > 0 {
			next.clusters[n] = newCluster(n, e.members[n])
		}
	}
	ns := &next.names
	ns.root, ns.from = []byte(e.opts.Prefix), from
	if again {
		ns.joined = join(e.control, e.opts.Domain, from, &next.clusters)
	} else {
		ns.joined = old.names.joined
	}
	numbers := make([]uint32, 0, len(touched))
	for n := range touched {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if c := next.clusters[n]; c != nil {
			c.finish(e.opts.Domain, e.reg, e.seed)
		}
	}
	ns.tops, ns.plain = tops(files, from, &next.clusters, e.opts.Domain)
	next.indoms = withInDoms(next.indoms, &next.clusters, touched)
}
