package reader

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCheck says how a Dir decides whether the writer of a file with the
// PROCESS flag is alive.
type ProcessCheck string

// The checks.
const (
	ProcessHost   ProcessCheck = "host"   // a process with that pid runs here
	ProcessAny    ProcessCheck = "any"    // or in a PID namespace below
	ProcessStrict ProcessCheck = "strict" // and, where that can be seen, maps the file
	ProcessOff    ProcessCheck = "off"    // not at all
)

// ErrGone means that the writer of a file with the PROCESS flag does not run.
var ErrGone = errors.New("process gone")

// process is a watched writer.
type process struct {
	pid     int32
	fd      int // its pidfd, -1 without
	entries map[*entry]struct{}
}

// processes watches writers through pidfds in one epoll set: the end of one is
// an event there, and a later process with its pid is another one. Without
// pidfds it asks with kill(2), at most once a second.
type processes struct {
	epfd    int
	check   ProcessCheck
	byPID   map[int32]*process
	byFD    map[int]*process
	noPidfd bool // the kernel or a sandbox refuses them
	without int  // processes without a pidfd
	asked   time.Time
}

// watch tells whether the writer of e runs, and from then on when it ends.
func (ps *processes) watch(e *entry, pid int32) bool {
	if p := ps.byPID[pid]; p != nil {
		p.entries[e] = struct{}{}
		return true
	}
	fd, alive := ps.open(pid)
	if !alive && ps.check == ProcessAny {
		if host := innermost(pid); host != 0 {
			fd, alive = ps.open(host)
		}
	}
	if !alive {
		return false
	}
	p := &process{pid: pid, fd: fd, entries: map[*entry]struct{}{e: {}}}
	if fd >= 0 {
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if unix.EpollCtl(ps.epfd, unix.EPOLL_CTL_ADD, fd, &ev) != nil {
			_ = unix.Close(fd)
			p.fd = -1
		}
	}
	if p.fd >= 0 {
		ps.byFD[fd] = p
	} else {
		ps.without++
	}
	ps.byPID[pid] = p
	return true
}

// open returns a pidfd of the process, -1 where there are none to be had.
func (ps *processes) open(pid int32) (fd int, alive bool) {
	if !ps.noPidfd {
		fd, err := unix.PidfdOpen(int(pid), 0)
		switch {
		case err == nil:
			return fd, true
		case err == unix.ESRCH || err == unix.EINVAL || err == unix.ENOENT: // no such process, or a thread of one
			return -1, false
		case err == unix.ENOSYS || err == unix.EPERM:
			ps.noPidfd = true
		}
	}
	return -1, exists(pid)
}

// exists asks whether a process, not a thread, has that pid.
func exists(pid int32) bool {
	if err := unix.Kill(int(pid), 0); err != nil && err != unix.EPERM {
		return false
	}
	tgid, known := statusField(pid, "Tgid:")
	return !known || tgid == strconv.Itoa(int(pid))
}

// unwatch ends e's interest in its writer.
func (ps *processes) unwatch(e *entry, pid int32) {
	p := ps.byPID[pid]
	if p == nil {
		return
	}
	delete(p.entries, e)
	if len(p.entries) == 0 {
		ps.forget(p)
	}
}

func (ps *processes) forget(p *process) {
	delete(ps.byPID, p.pid)
	if p.fd >= 0 {
		delete(ps.byFD, p.fd)
		_ = unix.Close(p.fd) // leaves the epoll set by itself
	} else {
		ps.without--
	}
}

// gone calls f for every process without a pidfd that has ended.
func (ps *processes) gone(f func(*process)) {
	if ps.without == 0 || time.Since(ps.asked) < time.Second {
		return
	}
	ps.asked = time.Now()
	for _, p := range ps.byPID {
		if p.fd < 0 && !exists(p.pid) {
			f(p)
		}
	}
}

// statusField returns a field of /proc/PID/status; known is false where that
// cannot be read.
func statusField(pid int32, key string) (value string, known bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", false
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte(key)); ok {
			return string(bytes.TrimSpace(v)), true
		}
	}
	return "", false
}

// innermost returns the pid here of a process in a PID namespace below whose
// own pid there is pid, or 0.
func innermost(pid int32) int32 {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	want := strconv.Itoa(int(pid))
	for _, d := range dirs {
		n, err := strconv.ParseInt(d.Name(), 10, 32)
		if err != nil {
			continue
		}
		v, _ := statusField(int32(n), "NSpid:")
		if ids := strings.Fields(v); len(ids) > 1 && ids[len(ids)-1] == want {
			return int32(n)
		}
	}
	return 0
}

// maps tells whether the process maps the file; known is false where that
// cannot be seen.
func maps(pid int32, id fileID) (mapped, known bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false, false
	}
	defer f.Close() //nolint:errcheck // only read
	want := fmt.Sprintf("%02x:%02x %d ", unix.Major(id.dev), unix.Minor(id.dev), id.ino)
	s := bufio.NewScanner(f)
	seen := false
	for s.Scan() {
		seen = true
		if fields := strings.Fields(s.Text()); len(fields) >= 5 && fields[3]+" "+fields[4]+" " == want {
			return true, true
		}
	}
	return false, seen && s.Err() == nil
}
