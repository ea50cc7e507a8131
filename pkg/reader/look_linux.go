package reader

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// checkDir finds out whether the directory at the path is the one that is
// watched, and scans it when that is needed.
func (d *Dir) checkDir() {
	now, err := d.stat("")
	if err == nil && now.mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if shortage(err) {
		return // what there is stays
	}
	if err != nil {
		d.lose(fmt.Errorf("stat %s: %w", d.path, err))
		return
	}
	if d.stamp.dev != now.dev || d.stamp.ino != now.ino {
		d.in.unwatchDir()
		d.triedAt = time.Time{}
		d.scanned = false
	}
	if !d.in.watching() && d.in.fd >= 0 && time.Since(d.triedAt) >= time.Second {
		d.triedAt = time.Now()
		if err := d.in.watchDir(d.path); err == nil {
			d.scanned = false // after the watch, so that nothing falls between
			d.noWatch = false
		} else if !errors.Is(err, unix.EACCES) { // that the scan will tell
			d.blind(err)
		}
	}
	switch {
	case !d.scanned:
		d.stamp, d.young = now, now.young()
		d.scan(true)
	case !d.in.watching() && (d.young || now != d.stamp):
		d.stamp, d.young = now, now.young()
		d.scan(false)
	}
}

// lose is for a directory that cannot be looked at: its files are gone.
func (d *Dir) lose(err error) {
	d.scanned = false
	d.stamp = stamp{}
	d.in.unwatchDir()
	for len(d.order) > 0 {
		d.remove(d.order[len(d.order)-1])
	}
	d.setErr(err)
}

func (d *Dir) setErr(err error) {
	if !sameErr(err, d.err) {
		d.opts.Report(Report{Err: err})
		d.changed = true
	}
	d.err = err
}

func sameErr(a, b error) bool {
	return a == b || a != nil && b != nil && a.Error() == b.Error() //nolint:errorlint // any difference counts
}

// scan looks for files that have come or gone, and at all others too: anew, or
// where they seem to have changed.
func (d *Dir) scan(anew bool) {
	names, err := readNames(d.path)
	if shortage(err) {
		d.scanned = false // what there is stays
		d.setErr(err)
		return
	}
	if err != nil {
		d.lose(err)
		return
	}
	slices.Sort(names)
	d.setErr(nil)
	d.scanned = true
	for _, e := range slices.Backward(d.order) {
		if _, there := slices.BinarySearch(names, e.name); !there {
			d.remove(e)
		}
	}
	for _, n := range names {
		if e := d.entries[n]; e != nil && !anew {
			d.poll(e)
		} else {
			d.consider(n)
		}
	}
}

// readNames lists the directory.
func readNames(path string) ([]string, error) {
	fd, err := open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read
	return f.Readdirnames(-1)
}

// shortage tells whether an error is about us, not about the file.
func shortage(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN)
}

// hidden names are not looked at: writers use them for files not yet ready.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// events takes what the kernel has to tell: first of processes, since a
// descriptor in the list may be another one after the files.
func (d *Dir) events() {
	for {
		n, err := unix.EpollWait(d.ps.epfd, d.epoll[:], 0)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return
		}
		files := false
		d.fired = d.fired[:0]
		for _, e := range d.epoll[:n] {
			if p := d.ps.byFD[int(e.Fd)]; p != nil {
				d.fired = append(d.fired, p)
			}
			files = files || int(e.Fd) == d.in.fd
		}
		for _, p := range d.fired {
			if d.ps.byPID[p.pid] == p {
				d.ended(p)
			}
		}
		clear(d.fired)
		if files {
			d.fileEvents()
		}
		if n < len(d.epoll) {
			return
		}
	}
}

func (d *Dir) fileEvents() {
	d.draining.Store(true) // before anybody can find the queue empty
	names, all, self := d.in.read()
	if self { // the directory is no longer the one at the path
		d.stamp = stamp{}
	}
	if all {
		d.scanned = false
		return
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if e := d.entries[n]; names[n]&unix.IN_MODIFY != 0 && e != nil && e.file != nil {
			d.setWritten(e, true)
		}
		d.consider(n)
	}
}

// checkProcesses asks for processes of whose end nothing tells.
func (d *Dir) checkProcesses() {
	for _, p := range d.ps.gone() {
		d.ended(p)
	}
}

// ended hides the files of a process that has ended.
func (d *Dir) ended(p *process) {
	d.ps.forget(p)
	for e := range p.entries {
		if d.ps.watchInner(e, p.pid, e.id) != nil {
			continue // another one may be meant
		}
		e.pid = 0
		if e.file != nil {
			d.bury(e, e.file.Catalog.Header, fmt.Errorf("process %d: %w", p.pid, ErrGone))
		}
	}
	for e := range p.entries {
		if e.state == Dead {
			d.consider(e.name) // in case the file has changed as well
		}
	}
}

// checkHeads compares the live generations with those last seen.
func (d *Dir) checkHeads() {
	d.moved = d.moved[:0]
	for from := 0; from < len(d.heads); {
		from = d.compareHeads(from)
	}
	for _, e := range d.moved {
		if d.entries[e.name] == e {
			d.consider(e.name)
		}
	}
	clear(d.moved)
}

// compareHeads compares from head i on and notes those that differ or fault;
// it returns where to go on.
func (d *Dir) compareHeads(i int) (next int) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		h := &d.heads[i]
		if !h.m.faulted(r) {
			panic(r)
		}
		if h.e.file != nil && !h.e.file.Held {
			d.faults.Add(1)
		}
		d.moved = append(d.moved, h.e)
		next = i + 1
	}()
	for ; i < len(d.heads); i++ {
		h := &d.heads[i]
		if word(h.m.at(offGeneration1)) != h.g1 || word(h.m.at(offGeneration2)) != h.g2 || word(h.m.at(0)) != h.tag {
			d.moved = append(d.moved, h.e)
		}
	}
	return i
}

// checkSuspects looks again at files whose values could not be read.
func (d *Dir) checkSuspects() {
	if d.suspects.Swap(0) == 0 {
		return
	}
	for _, e := range slices.Clone(d.order) {
		if e.file != nil && e.file.marked.Swap(false) {
			d.consider(e.name)
		}
	}
}

// checkPolled looks again at what nothing tells of.
func (d *Dir) checkPolled() {
	d.moved = d.moved[:0]
	for e := range d.polled {
		d.moved = append(d.moved, e)
	}
	slices.SortFunc(d.moved, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range d.moved {
		d.poll(e)
	}
	clear(d.moved)
	if d.in.watching() || d.err != nil || time.Since(d.polledAt) < time.Second {
		return
	}
	d.polledAt = time.Now()
	for _, e := range slices.Clone(d.order) {
		if d.entries[e.name] == e {
			d.poll(e)
		}
	}
}

// poll looks at a file if it seems to have changed.
func (d *Dir) poll(e *entry) {
	now, err := d.stat(e.name)
	switch {
	case err != nil && e.skip && d.in.watching(): // a link that still leads nowhere
	case err == nil && now == e.stamp && !e.young && (e.state != Pending || e.head >= 0 || e.skip):
	default:
		d.consider(e.name)
	}
}

// checkOverMax looks again at files for which there was no room, when there is.
func (d *Dir) checkOverMax() {
	if d.overMax == 0 || d.loaded >= d.opts.MaxFiles {
		return
	}
	for _, e := range slices.Clone(d.order) {
		if e.overMax && d.loaded < d.opts.MaxFiles {
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
