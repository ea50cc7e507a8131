package reader

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// dirStamp tells one directory, and one state of it, from another.
type dirStamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// checkDir finds out whether the directory at the path is the one that is
// watched, and scans it when that is needed.
func (d *Dir) checkDir() {
	var st unix.Stat_t
	if err := unix.Stat(d.path, &st); err != nil {
		d.lose(fmt.Errorf("stat %s: %w", d.path, err))
		return
	}
	now := dirStamp{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
	other := d.dirID.dev != now.dev || d.dirID.ino != now.ino
	if other {
		d.in.unwatchDir()
		d.triedAt = time.Time{}
	}
	if !d.in.watching() && d.in.fd >= 0 && time.Since(d.triedAt) >= time.Second {
		d.triedAt = time.Now()
		if err := d.in.watchDir(d.path); err != nil {
			d.opts.Report(Report{Err: fmt.Errorf("%w: %w", ErrNoInotify, err)})
		}
		d.scanned = false // after the watch, so that nothing falls between
	}
	if !d.in.watching() && now != d.dirID {
		d.scanned = false
	}
	if d.scanned && !other {
		return
	}
	d.dirID = now
	if !d.in.watching() && young(st.Mtim, st.Ctim) {
		d.dirID.size = -1 // changes within one clock tick look alike: scan again
	}
	d.scan()
}

// young tells whether a stamp is so new that more may happen under it.
func young(stamps ...unix.Timespec) bool {
	now := time.Now()
	for _, t := range stamps {
		if now.Sub(time.Unix(t.Unix())) < 20*time.Millisecond {
			return true
		}
	}
	return false
}

// lose is for a directory that cannot be looked at: its files are gone.
func (d *Dir) lose(err error) {
	d.scanned = false
	d.dirID = dirStamp{}
	d.in.unwatchDir()
	for len(d.order) > 0 {
		d.remove(d.order[len(d.order)-1])
	}
	d.setErr(err)
}

func (d *Dir) setErr(err error) {
	if (err == nil) != (d.err == nil) || err != nil && err.Error() != d.err.Error() {
		d.opts.Report(Report{Err: err})
		d.changed = true
	}
	d.err = err
}

// scan looks at every file in the directory.
func (d *Dir) scan() {
	f, err := os.Open(d.path)
	if err != nil {
		d.lose(err)
		return
	}
	names, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil {
		d.lose(err)
		return
	}
	slices.Sort(names)
	d.setErr(nil)
	d.scanned = true
	there := make(map[string]struct{}, len(names))
	for _, n := range names {
		there[n] = struct{}{}
	}
	for i := len(d.order) - 1; i >= 0; i-- {
		if _, ok := there[d.order[i].name]; !ok {
			d.remove(d.order[i])
		}
	}
	for _, n := range names {
		d.consider(n)
	}
}

// hidden names are not looked at: writers use them for files not yet ready.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// events takes what the kernel has to tell.
func (d *Dir) events() {
	var ev [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(d.ps.epfd, ev[:], 0)
		if err == unix.EINTR {
			continue
		}
		for _, e := range ev[:max(n, 0)] {
			if int(e.Fd) == d.in.fd {
				d.fileEvents()
			} else if p := d.ps.byFD[int(e.Fd)]; p != nil {
				d.ended(p)
			}
		}
		if n < len(ev) {
			return
		}
	}
}

func (d *Dir) fileEvents() {
	names, all, self := d.in.read()
	if self { // the directory is no longer the one at the path
		d.dirID = dirStamp{}
	}
	if all {
		d.scanned = false
		return
	}
	for n := range names {
		d.consider(n)
	}
}

// ended hides the files of a process that has ended.
func (d *Dir) ended(p *process) {
	d.ps.forget(p)
	for e := range p.entries {
		e.pid = 0
		if e.file != nil {
			d.bury(e, e.file.Catalog.Header.Generation1, fmt.Errorf("process %d: %w", p.pid, ErrGone))
			d.reload(e) // in case the file has changed as well
		}
	}
}

// bury hides a file of that generation whose writer has gone.
func (d *Dir) bury(e *entry, gen uint64, err error) {
	d.unload(e)
	e.deadGen = gen
	d.set(e, Dead, err)
}

// checkHeads compares the live generations with those last seen.
func (d *Dir) checkHeads() {
	d.moved = d.moved[:0]
	for from := 0; from < len(d.heads); {
		from = d.compareHeads(from)
	}
	if len(d.moved) == 0 {
		return
	}
	es := make([]*entry, len(d.moved))
	for i, k := range d.moved {
		es[i] = d.heads[k].e
	}
	for _, e := range es {
		d.reload(e)
	}
}

// compareHeads compares from head i on and notes those that differ or fault;
// it returns where to go on.
func (d *Dir) compareHeads(i int) (next int) {
	var fault bool
	defer func() {
		next = i
		if fault {
			if d.heads[i].e.file != nil {
				d.faults.Add(1)
			}
			d.moved = append(d.moved, i)
			next++
		}
	}()
	old := debug.SetPanicOnFault(true)
	defer guard(old, &fault)
	for ; i < len(d.heads); i++ {
		h := &d.heads[i]
		if h.m.word(offGeneration1) != h.g1 || h.m.word(offGeneration2) != h.g2 || h.m.word(0) != h.tag {
			d.moved = append(d.moved, i)
		}
	}
	return i
}

// checkSuspects looks again at files whose values could not be read.
func (d *Dir) checkSuspects() {
	if d.suspects.Load() == 0 {
		return
	}
	for i := 0; i < len(d.order); i++ {
		e := d.order[i]
		if e.file != nil && e.file.marked.Load() {
			e.file.marked.Store(false)
			d.suspects.Add(-1)
			d.reload(e)
		}
	}
	d.suspects.Store(0)
}

// checkPolled looks again at what nothing tells of.
func (d *Dir) checkPolled() {
	room := d.overMax > 0 && len(d.heads) < d.opts.MaxFiles
	if d.polled == 0 && !room && d.in.watching() {
		return
	}
	all := !d.in.watching() && d.err == nil && time.Since(d.polledAt) >= time.Second
	if all {
		d.polledAt = time.Now()
	}
	for _, e := range append([]*entry(nil), d.order...) {
		if e.poll || all || e.state == Pending && !d.in.watching() || e.overMax && len(d.heads) < d.opts.MaxFiles {
			d.consider(e.name)
		}
	}
}

// checkHeld ends the time of files that were being rewritten for too long.
func (d *Dir) checkHeld() {
	if len(d.held) == 0 {
		return
	}
	now := time.Now()
	kept := d.held[:0]
	for _, e := range d.held {
		switch {
		case e.file == nil || !e.file.Held || d.entries[e.name] != e:
		case now.Before(e.until):
			kept = append(kept, e)
		default:
			e.file = nil
			d.changed = true
		}
	}
	clear(d.held[len(kept):])
	d.held = kept
}

// consider looks at the file of that name, which may have changed in any way.
func (d *Dir) consider(name string) {
	if hidden(name) {
		return
	}
	path := d.path + "/" + name
	fd, err := openPath(path)
	if err != nil {
		d.unopened(name, path, err)
		return
	}
	defer func() { _ = unix.Close(fd) }()
	d.load(d.find(name), fd, path)
}

// unopened is for a name that leads to nothing that can be opened.
func (d *Dir) unopened(name, path string, err error) {
	var st unix.Stat_t
	there := unix.Lstat(path, &st) == nil
	e := d.entries[name]
	switch {
	case !there && e != nil:
		d.remove(e)
	case !there:
	case st.Mode&unix.S_IFMT == unix.S_IFLNK: // it may come to lead to something
		d.skip(d.find(name), !errors.Is(err, unix.ELOOP))
	default:
		e = d.find(name)
		d.reject(e, fileID{}, fmt.Errorf("open: %w", err))
		d.setPoll(e, true)
	}
}

// reload looks again at a file whose memory has changed.
func (d *Dir) reload(e *entry) {
	if d.entries[e.name] == e {
		d.consider(e.name)
	}
}

// openPath opens without any effect on what is there.
func openPath(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// openFile opens for reading what the O_PATH descriptor stands for.
func openFile(pathFD int, path string, id fileID) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(pathFD), flags, 0)
	if err != unix.ENOENT {
		return fd, err
	}
	if fd, err = unix.Open(path, flags, 0); err != nil { // no /proc
		return fd, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (uint64(st.Dev) != id.dev || st.Ino != id.ino) {
		err = unix.EAGAIN
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// skip is for what is not a file.
func (d *Dir) skip(e *entry, poll bool) {
	d.unload(e)
	d.unwatch(e)
	if !e.skip {
		d.changed = true
		d.opts.Report(Report{Name: e.name, State: e.state, Gone: true})
	}
	e.skip, e.state, e.err, e.id = true, Rejected, nil, fileID{}
	d.setPoll(e, poll)
	d.setOverMax(e, false)
}

// reject is for a file with which something is wrong.
func (d *Dir) reject(e *entry, id fileID, err error) {
	d.unload(e)
	if e.pid != 0 {
		d.ps.unwatch(e, e.pid)
		e.pid = 0
	}
	e.id = id
	d.set(e, Rejected, err)
}
