package reader

import (
	"bytes"
	"errors"
	"fmt"

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
	files map[int32]*entry
	buf   []byte
	names map[string]struct{}
}

func (in *inotify) open(epfd int, without bool) (err error) {
	in.fd, in.dir = -1, -1
	in.files, in.names = map[int32]*entry{}, map[string]struct{}{}
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
func (in *inotify) watching() bool { return in.fd >= 0 && in.dir >= 0 }

// ready tells whether there are events.
func (in *inotify) ready() bool {
	n, err := unix.IoctlGetInt(in.fd, unix.TIOCINQ)
	return err != nil || n > 0
}

func (in *inotify) watchDir(path string) error {
	if in.fd < 0 {
		return nil
	}
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

// watchFile watches the file that e names through a link, whose changes the
// directory does not tell.
func (in *inotify) watchFile(e *entry, path string) error {
	if in.fd < 0 {
		return errors.New("no inotify")
	}
	wd, err := unix.InotifyAddWatch(in.fd, path, fileMask)
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	if int32(wd) != e.wd {
		in.unwatch(e)
		if in.files[int32(wd)] != nil {
			return errors.New("two links to one file")
		}
		e.wd = int32(wd)
		in.files[e.wd] = e
	}
	return nil
}

func (in *inotify) unwatch(e *entry) {
	if e.wd >= 0 && in.fd >= 0 {
		_, _ = unix.InotifyRmWatch(in.fd, uint32(e.wd))
		delete(in.files, e.wd)
	}
	e.wd = -1
}

// read empties the queue: the names of files that may have changed, whether
// all may have, and whether the directory itself has moved or gone.
func (in *inotify) read() (names map[string]struct{}, all, self bool) {
	clear(in.names)
	for {
		n, err := unix.Read(in.fd, in.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return in.names, all, self
		}
		for b := in.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			// struct inotify_event: wd, mask, cookie, length of the name, name
			wd, mask := int32(native.Uint32(b)), native.Uint32(b[4:])
			end := unix.SizeofInotifyEvent + native.Uint32(b[12:])
			name := b[unix.SizeofInotifyEvent:end]
			b = b[end:]
			switch e := in.files[wd]; {
			case mask&unix.IN_Q_OVERFLOW != 0:
				all = true
			case e != nil:
				in.names[e.name] = struct{}{}
				if mask&unix.IN_IGNORED != 0 {
					delete(in.files, wd)
					e.wd = -1
				}
			case wd != in.dir: // of a watch that was given up
			case mask&selfMask != 0:
				all, self = true, true
				if mask&unix.IN_IGNORED != 0 {
					in.dir = -1
				}
			default:
				in.names[string(bytes.TrimRight(name, "\x00"))] = struct{}{}
			}
		}
	}
}
