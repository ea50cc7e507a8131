package reader

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	dirMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB |
		unix.IN_CLOSE_WRITE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	fileMask = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	selfMask = unix.IN_IGNORED | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_UNMOUNT
)

// inotify is a raw inotify descriptor, read in the request's own path: an
// event is in its queue when the call that caused it has returned.
type inotify struct {
	fd    int   // -1: none to be had
	dir   int32 // watch of the directory, -1: none
	files map[int32][]*entry
	buf   []byte
	names map[string]uint32 // events of a file, put together
}

func (in *inotify) open(epfd int, without bool) (err error) {
	in.fd, in.dir = -1, -1
	in.files, in.names = map[int32][]*entry{}, map[string]uint32{}
	if without {
		return errors.New("switched off")
	}
	if in.fd, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		in.fd = -1
		return fmt.Errorf("inotify: %w", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(in.fd)}
	if err = unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, in.fd, &ev); err != nil {
		in.close()
		return fmt.Errorf("epoll: %w", err)
	}
	in.buf = make([]byte, 16<<10)
	return nil
}

func (in *inotify) close() {
	if in.fd >= 0 {
		_ = unix.Close(in.fd)
		in.fd = -1
	}
}

// watching tells whether changes of the directory are told.
func (in *inotify) watching() bool { return in.dir >= 0 }

// queued is how many bytes of events there are.
func (in *inotify) queued() int {
	n, err := unix.IoctlGetInt(in.fd, unix.TIOCINQ)
	if err != nil {
		return 1
	}
	return n
}

func (in *inotify) ready() bool { return in.queued() > 0 }

func (in *inotify) watchDir(path string) error {
	in.unwatchDir()
	wd, err := unix.InotifyAddWatch(in.fd, path, dirMask)
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	in.dir = int32(wd)
	return nil
}

func (in *inotify) unwatchDir() {
	if in.dir >= 0 {
		_, _ = unix.InotifyRmWatch(in.fd, uint32(in.dir))
		in.dir = -1
	}
}

// watchFile watches the file that e names, open as fd, which may change
// without the directory being told.
func (in *inotify) watchFile(e *entry, fd int) bool {
	if in.fd < 0 {
		return false
	}
	n, err := unix.InotifyAddWatch(in.fd, "/proc/self/fd/"+strconv.Itoa(fd), fileMask)
	wd := int32(n)
	switch {
	case err != nil:
		in.unwatch(e)
		return false
	case wd != e.wd:
		in.unwatch(e)
		in.share(e, wd)
	}
	return true
}

// share lets e have a watch that others may have, too: links to one file.
func (in *inotify) share(e *entry, wd int32) {
	e.wd = wd
	in.files[wd] = append(in.files[wd], e)
}

func (in *inotify) unwatch(e *entry) {
	if e.wd < 0 {
		return
	}
	rest := slices.DeleteFunc(in.files[e.wd], func(o *entry) bool { return o == e })
	if len(rest) > 0 {
		in.files[e.wd] = rest
	} else {
		delete(in.files, e.wd)
		_, _ = unix.InotifyRmWatch(in.fd, uint32(e.wd))
	}
	e.wd = -1
}

// read takes what is in the queue now: the names of files that may have
// changed, whether all may have, and whether the directory itself has moved or
// gone. What comes meanwhile is for the next time, so that it ends.
func (in *inotify) read() (names map[string]uint32, all, self bool) {
	clear(in.names)
	for left := in.queued(); left > 0; {
		n, err := unix.Read(in.fd, in.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		left -= n
		for b := in.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			// struct inotify_event: wd, mask, cookie, length of the name, name
			wd, mask := int32(native.Uint32(b)), native.Uint32(b[4:])
			end := unix.SizeofInotifyEvent + native.Uint32(b[12:])
			name := b[unix.SizeofInotifyEvent:end]
			b = b[end:]
			a, s := in.event(wd, mask, bytes.TrimRight(name, "\x00"))
			all, self = all || a, self || s
		}
	}
	return in.names, all, self
}

func (in *inotify) event(wd int32, mask uint32, name []byte) (all, self bool) {
	linked := in.files[wd]
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		return true, false
	case linked != nil:
		for _, e := range linked {
			in.names[e.name] |= mask
			if mask&unix.IN_IGNORED != 0 {
				e.wd = -1
			}
		}
		if mask&unix.IN_IGNORED != 0 {
			delete(in.files, wd)
		}
	case wd != in.dir: // of a watch that was given up
	case mask&selfMask != 0:
		if mask&unix.IN_IGNORED != 0 {
			in.dir = -1
		}
		return true, true
	case len(name) == 0: // the directory's own mode or owner
		return true, false
	default:
		in.names[string(name)] |= mask
	}
	return false, false
}
