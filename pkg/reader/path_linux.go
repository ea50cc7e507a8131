package reader

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// openPath opens without any effect on what is there. link tells whether the
// path is that of a symbolic link, even with an error.
func openPath(path string) (fd int, st status, link bool, err error) {
	for _, flags := range []int{unix.O_PATH | unix.O_NOFOLLOW, unix.O_PATH} {
		if fd, err = open(path, flags); err != nil {
			return -1, st, link, err
		}
		if st, err = fstat(fd); err != nil {
			break
		}
		if st.kind() != unix.S_IFLNK {
			return fd, st, link, nil
		}
		link = true
		_ = unix.Close(fd)
	}
	if err == nil {
		err = unix.ELOOP // a file that became a link between the two
	} else {
		_ = unix.Close(fd)
	}
	return -1, st, link, err
}

// openFile opens for reading the regular file that the O_PATH descriptor stands
// for. Where the path is not a link, and still that of the same file, that takes
// half as long as by way of /proc. (What else it may have become meanwhile can be
// opened without an effect: nobody but root makes a device.)
func openFile(pathFD int, path string, link bool, id stamp) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	if !link {
		if fd, err := openSame(path, flags|unix.O_NOFOLLOW, id); err == nil {
			return fd, nil
		}
	}
	fd, err := open("/proc/self/fd/"+strconv.Itoa(pathFD), flags)
	if errors.Is(err, unix.ENOENT) { // no /proc
		return openSame(path, flags, id)
	}
	return fd, err
}

// openSame opens the path, EAGAIN if that is another file now.
func openSame(path string, flags int, id stamp) (int, error) {
	fd, err := open(path, flags)
	if err != nil {
		return -1, err
	}
	st, err := fstat(fd)
	if err == nil && (st.dev != id.dev || st.ino != id.ino) {
		err = unix.EAGAIN
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
