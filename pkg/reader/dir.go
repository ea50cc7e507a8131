package reader

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Options steer a Dir. The zero Options are the defaults.
type Options struct {
	MaxFiles    int          // mapped at once; default 10,000, at most half of vm.max_map_count
	MaxFileSize int64        // default 256 MiB, at most MaxImage
	Process     ProcessCheck // default ProcessHost
	NoInotify   bool         // as if the kernel had none
	// Report is called, one call at a time, when a file's state or the
	// directory's changes. It must not call the Dir.
	Report func(Report)
}

// Report is a change of state. Name is "" for the directory itself; Gone says
// that the file is no longer there.
type Report struct {
	Name  string
	State State
	Gone  bool
	Err   error
}

// The reasons of a Dir for not loading a file, besides those of Parse.
var (
	ErrTooMany   = errors.New("too many files")
	ErrNoInotify = errors.New("no file events: files are looked at once a second instead")
	ErrClosed    = errors.New("closed")
)

// heldFor is how long a file that is being rewritten keeps its metrics.
const heldFor = 5 * time.Second

// maxRetired is how many mappings wait, at most, for a moment without an
// answer in progress.
const maxRetired = 1024

// entry is what is known of one name in the directory.
type entry struct {
	name    string
	state   State
	skip    bool  // not a regular file: none of our business
	err     error // why it is not loaded
	file    *File // loaded, or Held
	until   time.Time
	id      fileID
	stamp   stamp   // just before it was last read
	young   bool    // stamp was: more may have happened under it
	head    int     // index in Dir.heads, -1: none
	hm      mapping // the header alone, of a file that is not loaded
	pid     int32   // watched writer, 0: none
	wd      int32   // watch of its own, -1: none
	overMax bool
	dead    Header // of a dead file
}

// head is the header of a mapped file as last seen; live ones are compared
// with it at every look.
type head struct {
	m           mapping
	tag, g1, g2 uint64
	e           *entry
}

// Dir watches a directory of MMV files. Look brings its state up to date;
// between Acquire and Release the Files of the newest published Snapshot may
// be read.
type Dir struct {
	path    string
	opts    Options
	maxMaps int // of all mappings

	mu       sync.Mutex
	closed   bool
	entries  map[string]*entry
	order    []*entry // by name
	heads    []head
	loaded   int // files mapped
	ps       processes
	in       inotify
	img      imageReader
	snap     *Snapshot
	changed  bool // since snap
	scanned  bool
	err      error // of the directory
	stamp    stamp // of the directory, when it was last scanned
	young    bool  // stamp was
	held     []*entry
	polled   map[*entry]struct{} // of whose changes nothing tells
	overMax  int
	written  map[*entry]struct{} // files written to by system calls while loaded
	nWritten atomic.Int32
	polledAt time.Time
	triedAt  time.Time // to watch the directory, without success
	noWatch  bool      // that there was none has been reported
	moved    []*entry  // scratch of checkHeads and checkPolled
	retired  []*File
	cpath    []byte // scratch of stat
	suspects atomic.Int32
	mapped   atomic.Int32 // mappings of Files
	touches  atomic.Uint64
	draining atomic.Bool // events are out of the queue, and not looked at yet
	faults   atomic.Uint64

	use sync.RWMutex
}

// Open starts watching the directory at path, which need not exist. It reads
// nothing: the first Look does.
func Open(path string, opts Options) (*Dir, error) {
	if opts.MaxFiles <= 0 {
		opts.MaxFiles = 10000
	}
	maps := maxMaps()
	opts.MaxFiles = min(opts.MaxFiles, maps/2)
	if opts.MaxFileSize <= 0 {
		opts.MaxFileSize = 256 << 20
	}
	opts.MaxFileSize = min(opts.MaxFileSize, MaxImage, math.MaxInt)
	if opts.Process == "" {
		opts.Process = ProcessHost
	}
	if opts.Report == nil {
		opts.Report = func(Report) {}
	}
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	d := &Dir{
		path: path, opts: opts, maxMaps: maps - maps/4,
		entries: map[string]*entry{}, polled: map[*entry]struct{}{}, written: map[*entry]struct{}{}, snap: &Snapshot{},
		ps: newProcesses(epfd, opts.Process),
	}
	if err := d.in.open(epfd, opts.NoInotify); err != nil {
		d.blind(err)
	}
	return d, nil
}

// blind says once that there are no file events.
func (d *Dir) blind(err error) {
	if !d.noWatch {
		d.noWatch = true
		d.opts.Report(Report{Err: fmt.Errorf("%w: %w", ErrNoInotify, err)})
	}
}

// maxMaps is how many mappings the kernel lets a process have.
func maxMaps() int {
	b, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 {
			return n
		}
	}
	return 65530
}

// Path is the directory's path.
func (d *Dir) Path() string { return d.path }

// Close lets go of everything, once no File is in use. Later Looks find
// nothing.
func (d *Dir) Close() {
	d.use.Lock()
	defer d.use.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	for _, e := range d.order {
		d.unload(e)
		d.unwatch(e)
	}
	d.order, d.entries, d.polled, d.written, d.held = nil, nil, nil, nil, nil
	d.snap = &Snapshot{Err: ErrClosed}
	unmap(d.retired)
	d.retired = nil
	d.in.close()
	_ = unix.Close(d.ps.epfd)
	d.img.drop()
}

// Acquire makes sure that no File that was published before, and is the newest
// of its name, is unmapped until Release. Take what is published after it.
func (d *Dir) Acquire() { d.use.RLock() }

// Release ends what Acquire began.
func (d *Dir) Release() { d.use.RUnlock() }

// Reap unmaps what is in no Snapshot that is still in use: the caller has
// replaced all older ones. Where an answer is in progress it leaves that for
// the next time, or, when that has happened for long, waits; so it must not be
// called between Acquire and Release. A File that is found unmapped after all
// has no values.
func (d *Dir) Reap() {
	d.mu.Lock()
	old := d.retired
	d.retired = nil
	d.mu.Unlock()
	if len(old) == 0 {
		return
	}
	if !d.use.TryLock() {
		if len(old) < maxRetired {
			d.mu.Lock()
			d.retired = append(old, d.retired...)
			d.mu.Unlock()
			return
		}
		d.use.Lock()
	}
	defer d.use.Unlock()
	unmap(old)
}

// unmap is called with d.use locked.
func unmap(files []*File) {
	for _, f := range files {
		f.dir.mapped.Add(-int32(f.mappings()))
		f.unmap()
	}
}

// Touches counts the loaded files that turned out to have been written to by
// other means than stores through a mapping. See Still.
func (d *Dir) Touches() uint64 { return d.touches.Load() }

// Faults counts the reads of loaded files' memory, values or headers, that
// faulted because the file had become shorter.
func (d *Dir) Faults() uint64 { return d.faults.Load() }

// Quiet tells whether no file event waits for a Look or is being looked at,
// and no file that is known to be written to by system calls is being. One
// system call, and one for each of those.
//
// An event comes after the data it is about, so the first such write to a file
// can show in an answer without being told, if it is going on at that moment.
// From then on the file's times, which change before its data, are asked too.
func (d *Dir) Quiet() bool {
	if d.in.fd >= 0 && d.in.ready() || d.draining.Load() {
		return false
	}
	if d.nWritten.Load() == 0 {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := range d.written {
		if e.file == nil || e.file.Held {
			continue
		}
		if now, err := d.stat(e.name); err != nil || now != e.stamp {
			e.file.suspect()
			return false
		}
	}
	return true
}

// Still tells whether an answer made from s is good: Quiet holds, and no file
// was touched since. It then mixes no two layouts of a file.
func (d *Dir) Still(s *Snapshot) bool {
	return d.Quiet() && d.Touches() == s.Touches // in this order: what is being looked at counts at its end
}

// Look returns the state of the directory as it is now: everything that any
// process did before the call is in it.
func (d *Dir) Look() *Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.snap
	}
	d.events()
	d.checkDir()
	d.checkHeads()
	d.checkProcesses()
	d.checkSuspects()
	d.checkPolled()
	d.checkOverMax()
	d.checkHeld()
	d.img.release()
	d.ps.inner = nil
	if d.changed {
		d.publish()
	}
	d.draining.Store(false)
	return d.snap
}

// Rescan looks at every file anew, whatever has been told of it.
func (d *Dir) Rescan() *Snapshot {
	d.mu.Lock()
	d.scanned = false
	d.mu.Unlock()
	return d.Look()
}

func (d *Dir) publish() {
	s := &Snapshot{Err: d.err, Touches: d.touches.Load()}
	for _, e := range d.order {
		if e.skip {
			continue
		}
		if e.file != nil {
			s.Files = append(s.Files, e.file)
		}
		if e.state != Loaded {
			s.Others = append(s.Others, Entry{e.name, e.state, e.err})
		}
	}
	d.snap, d.changed = s, false
}

// find returns the entry of that name, made when it is not there.
func (d *Dir) find(name string) *entry {
	if e := d.entries[name]; e != nil {
		return e
	}
	e := &entry{name: strings.Clone(name), head: -1, wd: -1, state: Rejected, skip: true}
	d.entries[e.name] = e
	i, _ := slices.BinarySearchFunc(d.order, name, func(o *entry, n string) int { return strings.Compare(o.name, n) })
	d.order = slices.Insert(d.order, i, e)
	return e
}

// remove forgets a name that is no longer in the directory.
func (d *Dir) remove(e *entry) {
	d.unload(e)
	d.unwatch(e)
	d.setPoll(e, false)
	d.setWritten(e, false)
	d.setOverMax(e, false)
	delete(d.entries, e.name)
	i, _ := slices.BinarySearchFunc(d.order, e.name, func(o *entry, n string) int { return strings.Compare(o.name, n) })
	d.order = slices.Delete(d.order, i, i+1)
	if !e.skip {
		d.changed = true
		d.opts.Report(Report{Name: e.name, State: e.state, Gone: true})
	}
}

// set gives e its new state and reports it when it is one.
func (d *Dir) set(e *entry, s State, err error) {
	same := !e.skip && e.state == s && sameErr(err, e.err)
	e.skip, e.state, e.err = false, s, err
	if !same {
		d.changed = true
		d.opts.Report(Report{Name: e.name, State: s, Err: err})
	}
}

// unload lets go of e's mappings and file.
func (d *Dir) unload(e *entry) {
	d.dropHead(e)
	if e.file != nil {
		if !e.file.Held {
			d.retired = append(d.retired, e.file)
			d.loaded--
		}
		e.file = nil
		d.changed = true
	}
	if e.hm.base != nil {
		e.hm.unmap() // never part of a Snapshot
		e.hm = mapping{}
	}
}

func (d *Dir) unwatch(e *entry) {
	d.unwatchWriter(e)
	d.in.unwatch(e)
}

func (d *Dir) addHead(e *entry, m mapping, tag, g1, g2 uint64) {
	e.head = len(d.heads)
	d.heads = append(d.heads, head{m, tag, g1, g2, e})
}

func (d *Dir) dropHead(e *entry) {
	if e.head < 0 {
		return
	}
	last := len(d.heads) - 1
	d.heads[e.head] = d.heads[last]
	d.heads[e.head].e.head = e.head
	d.heads[last] = head{}
	d.heads = d.heads[:last]
	e.head = -1
}

func (d *Dir) setPoll(e *entry, on bool) {
	if on {
		d.polled[e] = struct{}{}
	} else {
		delete(d.polled, e)
	}
}

func (d *Dir) setWritten(e *entry, on bool) {
	if on {
		d.written[e] = struct{}{}
	} else {
		delete(d.written, e)
	}
	d.nWritten.Store(int32(len(d.written)))
}

func (d *Dir) setOverMax(e *entry, on bool) {
	if e.overMax != on {
		e.overMax = on
		d.overMax += map[bool]int{true: 1, false: -1}[on]
	}
}
