package reader

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
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
	pid     int32 // as files have it
	host    int32 // as this process sees it
	fd      int   // its pidfd, -1 without
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
	maxFD   int  // pidfds, so that some descriptors are left
	noPidfd bool // the kernel or a sandbox refuses them
	without int  // processes without a pidfd
	asked   time.Time
	inner   map[int32][]int32 // during a Look: innermost pids to pids here
}

// spareFDs is how many descriptors watched writers leave to everything else.
const spareFDs = 64

func newProcesses(epfd int, check ProcessCheck) processes {
	ps := processes{epfd: epfd, check: check, byPID: map[int32]*process{}, byFD: map[int]*process{}, maxFD: 1024 - spareFDs}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		ps.maxFD = int(min(lim.Cur, 1<<30)) - spareFDs
	}
	return ps
}

// watch returns the writer of e, a file with that id, nil if it does not run.
// Its end will be known.
func (ps *processes) watch(e *entry, pid int32, id fileID) *process {
	if p := ps.byPID[pid]; p != nil {
		p.entries[e] = struct{}{}
		return p
	}
	if fd, alive := ps.open(pid); alive {
		return ps.add(e, pid, pid, fd)
	}
	return ps.watchInner(e, pid, id)
}

// watchInner is watch for processes of PID namespaces below: one that maps the
// file before others.
func (ps *processes) watchInner(e *entry, pid int32, id fileID) *process {
	if ps.check != ProcessAny {
		return nil
	}
	if p := ps.byPID[pid]; p != nil {
		p.entries[e] = struct{}{}
		return p
	}
	hosts := slices.Clone(ps.innermost(pid))
	sort.SliceStable(hosts, func(i, j int) bool {
		x, _ := mapsFile(hosts[i], id, e.name)
		y, _ := mapsFile(hosts[j], id, e.name)
		return x && !y
	})
	for _, host := range hosts {
		if fd, alive := ps.open(host); alive {
			return ps.add(e, pid, host, fd)
		}
	}
	return nil
}

func (ps *processes) add(e *entry, pid, host int32, fd int) *process {
	p := &process{pid: pid, host: host, fd: fd, entries: map[*entry]struct{}{e: {}}}
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
	return p
}

// open returns a pidfd of the process, -1 where there are none to be had.
func (ps *processes) open(pid int32) (fd int, alive bool) {
	if !ps.noPidfd && len(ps.byFD) < ps.maxFD {
		fd, err := unix.PidfdOpen(int(pid), 0)
		switch err {
		case nil:
			if ended(fd) {
				_ = unix.Close(fd)
				return -1, false
			}
			return fd, true
		case unix.ESRCH, unix.EINVAL, unix.ENOENT: // no such process, or a thread of one
			return -1, false
		case unix.ENOSYS, unix.EPERM:
			ps.noPidfd = true
		}
	}
	return -1, exists(pid)
}

// ended tells whether the process of a pidfd has, even if nobody has waited
// for it.
func ended(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}

// exists asks whether a process, neither a thread nor a zombie, has that pid.
func exists(pid int32) bool {
	if err := unix.Kill(int(pid), 0); err != nil && err != unix.EPERM {
		return false
	}
	status := readStatus(pid)
	tgid, known := field(status, "Tgid:")
	state, _ := field(status, "State:")
	threads, _ := field(status, "Threads:") // the first one may have ended before others
	zombie := threads == "1" && (strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X"))
	return !known || tgid == strconv.Itoa(int(pid)) && !zombie
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

// gone returns the processes without a pidfd that have ended.
func (ps *processes) gone() (out []*process) {
	if ps.without == 0 || time.Since(ps.asked) < time.Second {
		return nil
	}
	ps.asked = time.Now()
	for _, p := range ps.byPID {
		if p.fd < 0 && !exists(p.host) {
			out = append(out, p)
		}
	}
	return out
}

// readStatus returns /proc/PID/status, nothing where that cannot be read.
func readStatus(pid int32) []byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	return b
}

// field returns a field of a status file.
func field(status []byte, key string) (value string, known bool) {
	for line := range bytes.Lines(status) {
		if v, ok := bytes.CutPrefix(line, []byte(key)); ok {
			return string(bytes.TrimSpace(v)), true
		}
	}
	return "", false
}

// innermost returns the pids here of the processes in PID namespaces below
// whose own pid there is pid. It reads /proc once for all files of a Look.
func (ps *processes) innermost(pid int32) []int32 {
	if ps.inner == nil {
		ps.inner = map[int32][]int32{}
		dirs, _ := os.ReadDir("/proc")
		for _, d := range dirs {
			host, err := strconv.ParseInt(d.Name(), 10, 32)
			if err != nil {
				continue
			}
			v, _ := field(readStatus(int32(host)), "NSpid:")
			ids := strings.Fields(v)
			if len(ids) < 2 {
				continue
			}
			if n, err := strconv.ParseInt(ids[len(ids)-1], 10, 32); err == nil {
				ps.inner[int32(n)] = append(ps.inner[int32(n)], int32(host))
			}
		}
	}
	return ps.inner[pid]
}

// mapsFile tells whether the process maps the file of that id and name; known is
// false where that cannot be seen. Some file systems (btrfs, overlayfs) show
// another device there than stat(2), so the same inode number and name is
// enough.
func mapsFile(pid int32, id fileID, name string) (mapped, known bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false, false
	}
	defer f.Close() //nolint:errcheck // only read
	dev := fmt.Sprintf("%02x:%02x", unix.Major(id.dev), unix.Minor(id.dev))
	ino := strconv.FormatUint(id.ino, 10)
	s := bufio.NewScanner(f)
	seen := false
	for s.Scan() { // address perms offset dev inode pathname
		seen = true
		line := strings.Fields(s.Text())
		if len(line) < 5 || line[4] != ino {
			continue
		}
		if line[3] == dev || strings.Contains(s.Text(), "/"+name) {
			return true, true
		}
	}
	return false, seen && s.Err() == nil
}
