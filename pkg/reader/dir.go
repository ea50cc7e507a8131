package reader

import (
	"errors"
	"fmt"
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
	// directory's changes.
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
)

// heldFor is how long a file that is being rewritten keeps its metrics.
const heldFor = 5 * time.Second

// entry is what is known of one name in the directory.
type entry struct {
	name    string
	state   State
	skip    bool  // not a regular file: none of our business
	err     error // why it is not loaded
	file    *File // loaded, or Held
	until   time.Time
	id      fileID
	head    int     // index in Dir.heads, -1: none
	hm      mapping // the header alone, of a file that is not loaded
	pid     int32   // watched writer, 0: none
	wd      int32   // watch of its own, -1: none
	poll    bool    // nothing tells when it changes
	overMax bool
	deadGen uint64 // generation of a dead file
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
	path string
	opts Options

	mu       sync.Mutex
	entries  map[string]*entry
	order    []*entry // by name
	heads    []head
	ps       processes
	in       inotify
	img      imageReader
	snap     *Snapshot
	changed  bool // since snap
	scanned  bool
	err      error // of the directory
	dirID    dirStamp
	held     []*entry
	polled   int // entries with poll
	overMax  int
	polledAt time.Time
	triedAt  time.Time // to watch the directory, without success
	moved    []int     // scratch of checkHeads
	retired  []mapping
	suspects atomic.Int32
	touches  atomic.Uint64
	faults   atomic.Uint64

	use sync.RWMutex
}

// Open starts watching the directory at path, which need not exist. It reads
// nothing: the first Look does.
func Open(path string, opts Options) (*Dir, error) {
	if opts.MaxFiles <= 0 {
		opts.MaxFiles = 10000
	}
	opts.MaxFiles = min(opts.MaxFiles, maxMaps()/2)
	if opts.MaxFileSize <= 0 {
		opts.MaxFileSize = 256 << 20
	}
	opts.MaxFileSize = min(opts.MaxFileSize, MaxImage)
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
		path: path, opts: opts, entries: map[string]*entry{}, snap: &Snapshot{},
		ps: processes{epfd: epfd, check: opts.Process, byPID: map[int32]*process{}, byFD: map[int]*process{}},
	}
	if err := d.in.open(epfd, opts.NoInotify); err != nil {
		d.opts.Report(Report{Err: fmt.Errorf("%w: %w", ErrNoInotify, err)})
	}
	return d, nil
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

// Close lets go of everything. No File may be in use.
func (d *Dir) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.use.Lock()
	defer d.use.Unlock()
	for _, e := range d.order {
		d.unload(e)
		d.unwatch(e)
	}
	for _, m := range d.retired {
		m.unmap()
	}
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
// the next time.
func (d *Dir) Reap() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.retired) == 0 || !d.use.TryLock() {
		return
	}
	defer d.use.Unlock()
	for _, m := range d.retired {
		m.unmap()
	}
	d.retired = d.retired[:0]
}

// Touches counts the loaded files that turned out to have been written to by
// other means than stores through a mapping. An answer during which it did not
// change, and at whose end Quiet says so, mixes no two layouts of a file.
func (d *Dir) Touches() uint64 { return d.touches.Load() }

// Faults counts the reads of loaded files' memory, values or headers, that
// faulted because the file had become shorter.
func (d *Dir) Faults() uint64 { return d.faults.Load() }

// Quiet tells whether no file event has come since the last Look. One system
// call.
func (d *Dir) Quiet() bool { return d.in.fd < 0 || !d.in.ready() }

// Look returns the state of the directory as it is now: everything that any
// process did before the call is in it.
func (d *Dir) Look() *Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events()
	d.checkDir()
	d.checkHeads()
	d.ps.gone(d.ended)
	d.checkSuspects()
	d.checkPolled()
	d.checkHeld()
	d.img.release()
	if d.changed {
		d.publish()
	}
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
	s := &Snapshot{Err: d.err}
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
	same := !e.skip && e.state == s && (err == e.err || err != nil && e.err != nil && err.Error() == e.err.Error())
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
		if e.file.m.base != nil {
			d.retired = append(d.retired, e.file.m)
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
	if e.pid != 0 {
		d.ps.unwatch(e, e.pid)
		e.pid = 0
	}
	if e.wd >= 0 {
		d.in.unwatch(e)
	}
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
	if e.poll != on {
		e.poll = on
		d.polled += map[bool]int{true: 1, false: -1}[on]
	}
}

func (d *Dir) setOverMax(e *entry, on bool) {
	if e.overMax != on {
		e.overMax = on
		d.overMax += map[bool]int{true: 1, false: -1}[on]
	}
}
