package reader

import (
	"errors"
	"fmt"
	"math"
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
	// Outline has the first Look read no instances of files of many values, which
	// takes most of its time. They have no values until Complete.
	Outline bool
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

// maxOutlines bounds the files that the first Look leaves incomplete: for a moment
// each has twice its mappings when it is completed.
const maxOutlines = 1000

// maxRetired is how many mappings wait, at most, for a moment without an
// answer in progress.
const maxRetired = 1024

// Dir watches a directory of MMV files. Look brings its state up to date;
// between Acquire and Release the Files of the newest published Snapshot may
// be read. All methods may be called from any goroutine.
//
// A file that was loaded, then got another name outside of the directory by
// link(2), and is then written to by that name without a new generation, is
// seen to have changed only when anything else tells to look at it, or by
// Rescan: the kernel tells nobody. The same holds for files on file systems
// that other hosts write to.
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
	outline  bool // until the end of the first Look
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
	triedAt  time.Time           // to watch the directory, without success
	noWatch  bool                // that there was none has been reported
	moved    []*entry            // scratch of checkHeads and checkPolled
	epoll    [64]unix.EpollEvent // scratch of events: a stack that must grow takes time
	fired    []*process          // likewise
	retired  []*File
	cpath    []byte // scratch of stat
	suspects atomic.Int32
	mapped   atomic.Int32 // mappings of Files
	touches  atomic.Uint64
	looks    atomic.Uint64
	stirred  atomic.Uint64 // the last Look that has looked at a loaded file
	draining atomic.Bool   // events are out of the queue, and not looked at yet
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
		path: path, opts: opts, maxMaps: maps - maps/4, outline: opts.Outline,
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
	const usual = 65530
	fd, err := open("/proc/sys/vm/max_map_count", unix.O_RDONLY)
	if err != nil {
		return usual
	}
	defer unix.Close(fd) //nolint:errcheck // only read
	var b [32]byte
	k, _ := preadFull(fd, b[:], 0)
	if n, err := strconv.Atoi(strings.TrimSpace(string(b[:k]))); err == nil && n > 0 {
		return n
	}
	return usual
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
// the next time and returns false, or, when that has happened for long, waits;
// so it must not be called between Acquire and Release. A File that is found
// unmapped after all has no values.
func (d *Dir) Reap() bool {
	d.mu.Lock()
	old := d.retired
	d.retired = nil
	d.mu.Unlock()
	if len(old) == 0 {
		return true
	}
	if !d.use.TryLock() {
		if len(old) < maxRetired {
			d.mu.Lock()
			d.retired = append(old, d.retired...)
			d.mu.Unlock()
			return false
		}
		d.use.Lock()
	}
	defer d.use.Unlock()
	unmap(old)
	return true
}

// unmap is called with d.use locked.
func unmap(files []*File) {
	for _, f := range files {
		f.dir.mapped.Add(-int32(f.mappings()))
		f.unmap()
	}
}

// Touches counts the loaded files that turned out to have been written to by
// other means than stores through a mapping, and then to be others.
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
// All that has changed since is looked at by the next Look.
func (d *Dir) Quiet() bool {
	quiet := (d.in.fd < 0 || !d.in.ready()) && !d.draining.Load()
	if d.nWritten.Load() == 0 {
		return quiet
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := range d.written {
		if e.file == nil || e.file.Held {
			continue
		}
		if now, err := d.stat(e.name); err != nil || now != e.stamp {
			e.file.suspect()
			quiet = false
		}
	}
	return quiet
}

// Still tells whether an answer is good that was made from the Snapshot of a Look
// until which there were so many Looks: Quiet holds, and no Look after that has
// looked at a loaded file, even if it found it as it was, since it may have been
// another in between. Then the answer mixes no two layouts of a file.
func (d *Dir) Still(looks uint64) bool {
	return d.Quiet() && d.stirred.Load() <= looks // in this order: what is being looked at counts at its end
}

// Looks counts the Looks that have begun. Where several goroutines look, each
// has to keep the others from looking until it knows what its own has counted to.
func (d *Dir) Looks() uint64 { return d.looks.Load() }

// LookedAt returns the names of the files that Looks after the first n have
// looked at, because something may have happened to them.
func (d *Dir) LookedAt(n uint64) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.order {
		if e.looked > n {
			names = append(names, e.name)
		}
	}
	return names
}

// Look returns the state of the directory as it is now: everything that any
// process did before the call is in it.
func (d *Dir) Look() *Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.snap
	}
	d.looks.Add(1)
	d.events()
	d.checkDir()
	d.checkHeads()
	d.checkProcesses()
	d.checkSuspects()
	d.checkPolled()
	d.checkOverMax()
	d.checkHeld()
	d.outline = false
	d.img.release()
	d.ps.inner = nil
	if d.changed {
		d.publish()
	}
	d.draining.Store(false)
	return d.snap
}

// Complete has the next Look read what the first has left out.
func (d *Dir) Complete() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.order {
		if e.file != nil && e.file.Catalog.Outline {
			e.file.suspect()
		}
	}
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
