package reader

import (
	"time"

	"golang.org/x/sys/unix"
)

// stamp is what stat(2) says of one state of a file or a directory. Another
// stamp is a hint that something happened. The same one proves that nothing
// did, apart from stores through mappings, if it was not young when it was
// taken.
type stamp struct {
	dev, ino     uint64
	size         int64
	mode         uint32
	mtime, ctime int64 // nanoseconds
}

// young tells whether more may happen within the clock tick of the stamp: on
// older kernels that leaves it as it is.
func (s *stamp) young() bool {
	const tick = 20 * time.Millisecond // at least
	age := time.Now().UnixNano() - s.ctime
	return age > -int64(tick) && age < int64(tick)
}

// status is a stamp and more that stat(2) says.
type status struct {
	stamp
	links  uint64
	blocks int64 // of 512 bytes
}

func (s *status) kind() uint32 { return s.mode & unix.S_IFMT }

// stat is stat(2) of a name in the directory, or of the directory itself when
// name is "". It takes no memory.
func (d *Dir) stat(name string) (stamp, error) {
	d.cpath = append(d.cpath[:0], d.path...)
	if name != "" {
		d.cpath = append(append(d.cpath, '/'), name...)
	}
	d.cpath = append(d.cpath, 0)
	s, err := statAt(unix.AT_FDCWD, d.cpath)
	return s.stamp, err
}

// fstat is fstat(2).
func fstat(fd int) (status, error) { return statAt(fd, []byte{0}) }

// statAt is stat(2) of path, which ends in NUL, or where there is none of fd.
// Always the same call is made, lest two of them see one file differently.
func statAt(fd int, path []byte) (s status, err error) {
	var x unix.Statx_t
	switch errno := statx(fd, &path[0], &x); errno {
	case 0:
		return status{
			stamp: stamp{unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino, int64(x.Size), uint32(x.Mode), nano(x.Mtime), nano(x.Ctime)},
			links: uint64(x.Nlink), blocks: int64(x.Blocks),
		}, nil
	case unix.ENOSYS, unix.EPERM: // an old kernel or a sandbox
		var st unix.Stat_t
		if len(path) == 1 {
			err = unix.Fstat(fd, &st)
		} else {
			err = unix.Stat(string(path[:len(path)-1]), &st)
		}
		return status{
			stamp:  stamp{st.Dev, st.Ino, st.Size, st.Mode, st.Mtim.Nano(), st.Ctim.Nano()},
			links:  uint64(st.Nlink), //nolint:unconvert // 32 bits on some architectures
			blocks: st.Blocks,
		}, err
	default:
		return status{}, errno
	}
}

func nano(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
