package reader

import (
	"time"

	"golang.org/x/sys/unix"
)

// stamp is what stat(2) says of a file or a directory. Another stamp is a hint
// that something happened. The same one proves that nothing did, apart from
// stores through mappings, if it was not young when it was taken.
type stamp struct {
	dev, ino     uint64
	size         int64
	mode         uint32
	mtime, ctime int64 // nanoseconds
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{uint64(st.Dev), st.Ino, st.Size, st.Mode, st.Mtim.Nano(), st.Ctim.Nano()} //nolint:unconvert // some architectures have 32 bits
}

// young tells whether more may happen within the clock tick of the stamp: on
// older kernels that leaves it as it is.
func (s *stamp) young() bool {
	const tick = 20 * time.Millisecond // at least
	age := time.Now().UnixNano() - s.ctime
	return age > -int64(tick) && age < int64(tick)
}

// stat is stat(2) of a name in the directory, or of the directory itself when
// name is "". It takes no memory.
func (d *Dir) stat(name string) (s stamp, err error) {
	d.cpath = append(d.cpath[:0], d.path...)
	if name != "" {
		d.cpath = append(append(d.cpath, '/'), name...)
	}
	d.cpath = append(d.cpath, 0)
	x := &d.statx
	switch errno := statx(&d.cpath[0], x); errno {
	case 0:
		dev := unix.Mkdev(x.Dev_major, x.Dev_minor)
		return stamp{dev, x.Ino, int64(x.Size), uint32(x.Mode), nano(x.Mtime), nano(x.Ctime)}, nil
	case unix.ENOSYS, unix.EPERM: // an old kernel or a sandbox
		var st unix.Stat_t
		if err := unix.Stat(string(d.cpath[:len(d.cpath)-1]), &st); err != nil {
			return stamp{}, err
		}
		return stampOf(&st), nil
	default:
		return stamp{}, errno
	}
}

func nano(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
