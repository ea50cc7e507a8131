package pmda

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// socketMode lets pmcd's user in by the group of the socket.
const socketMode = 0o660

// retryTime is how long to wait before the next try to bind a path again.
const retryTime = time.Second

// A unixSocket is a socket's path in the file system, and what was bound there.
type unixSocket struct {
	path  string
	group int    // of the socket, or -1
	own   bool   // made here, not inherited
	id    inode  // of what is there, zero when not known
	made  inode  // of what was bound here
	said  string // the last trouble
}

type inode struct{ dev, ino uint64 }

// inodeOf is zero when there is no socket.
func inodeOf(path string) inode {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return inode{}
	}
	return inode{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // some architectures have 32 bits
}

// ListenUnix listens on a socket in the file system, which it makes with mode
// 0660 and, if it may, for that group (-1: leave it). A socket that nobody
// listens on any more is replaced, the directory is made with mode 0755 when
// it is missing.
func ListenUnix(path string, group int) (*Listener, error) {
	s := &unixSocket{path: path, group: group, own: true}
	l, err := s.bind()
	if err != nil {
		return nil, err
	}
	return &Listener{l: l, unix: s}, nil
}

// errInUse means that another process listens there.
var errInUse = errors.New("another process listens there")

// bind makes the socket. Nobody can connect before its owner and mode are right.
func (s *unixSocket) bind() (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("socket %s: %w", s.path, err)
	}
	if s.alive() {
		return fail(errInUse)
	}
	if inodeOf(s.path) != (inode{}) {
		if err := os.Remove(s.path); err != nil {
			return fail(err)
		}
	}
	if dir := filepath.Dir(s.path); os.Mkdir(dir, 0o755) == nil { //nolint:gosec // others must reach the socket; bind tells what is wrong
		_ = os.Chmod(dir, 0o755) //nolint:gosec // whatever the umask
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	f := os.NewFile(uintptr(fd), s.path)
	defer f.Close() //nolint:errcheck // FileListener has a duplicate
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: s.path}); err != nil {
		return fail(err)
	}
	if err := os.Chmod(s.path, socketMode); err != nil {
		return fail(err)
	}
	_ = os.Lchown(s.path, -1, s.group) // to a group of which it is not, only root may
	if err := unix.Listen(fd, backlog); err != nil {
		return fail(err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return fail(err)
	}
	s.own, s.id = true, inodeOf(s.path)
	s.made = s.id
	return l, nil
}

// alive tells whether anybody listens at the path.
func (s *unixSocket) alive() bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return true // nothing is known: leave it alone
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: s.path})
	return err == nil || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES)
}

// remove takes the path away if it is still that of the socket made here.
func (s *unixSocket) remove() {
	if s.made != (inode{}) && inodeOf(s.path) == s.made {
		_ = os.Remove(s.path) // may belong to root: the next start replaces it
	}
}

// there tells whether the path leads to a listener: this one, or one that
// another process has put in its place.
func (s *unixSocket) there() bool {
	now := inodeOf(s.path)
	switch {
	case now == inode{}:
		return false
	case now == s.id:
		return true
	case s.alive():
		s.id = now
		return true
	}
	return false
}

// guard accepts on a unix socket, and binds it again whenever its path is gone.
func (s *server) guard(current net.Listener, u *unixSocket) error {
	failed := make(chan error, 1)
	accept := func(nl net.Listener) {
		s.wg.Go(func() {
			if err := s.accept(nl); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	accept(current)
	defer func() {
		u.remove()
		_ = current.Close()
	}()
	w := newDirWatch()
	defer w.close()
	for {
		watched := w.add(filepath.Dir(u.path)) // before the look at the path, so that nothing is missed
		ok := u.there()
		if !ok {
			nl, err := u.bind()
			if ok = err == nil; ok {
				s.log.Warn("socket " + u.path + " was gone and is made again")
				_ = current.Close()
				current = nl
				accept(current)
				u.said = ""
			} else if !u.own {
				return fmt.Errorf("the path is gone, and whoever made it must make it again: %w", err)
			} else if err.Error() != u.said {
				u.said = err.Error()
				s.log.Error("the path is gone: " + err.Error())
			}
		}
		var retry <-chan time.Time
		if !ok || !watched {
			retry = time.After(retryTime)
		}
		select {
		case <-s.ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-w.changed:
		case <-retry:
		}
	}
}

// A dirWatch tells that names have gone from a directory, or it itself.
type dirWatch struct {
	f       *os.File
	changed chan struct{}
}

// newDirWatch starts a goroutine that ends with close. Without inotify the
// watch never tells anything, and add is false.
func newDirWatch() *dirWatch {
	w := &dirWatch{changed: make(chan struct{}, 1)}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return w
	}
	w.f = os.NewFile(uintptr(fd), "inotify")
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := w.f.Read(buf); err != nil {
				return
			}
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}()
	return w
}

func (w *dirWatch) add(dir string) bool {
	if w.f == nil {
		return false
	}
	const gone = unix.IN_DELETE | unix.IN_MOVE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	raw, err := w.f.SyscallConn()
	if err != nil {
		return false
	}
	added := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.InotifyAddWatch(int(fd), dir, gone)
		added = err == nil
	})
	return err == nil && added
}

func (w *dirWatch) close() {
	if w.f != nil {
		_ = w.f.Close() // ends the goroutine
	}
}
