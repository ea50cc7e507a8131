package image

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// MaxSize is the largest file that is read unless more is asked for: what the
// agent takes.
const MaxSize = 256 << 20

// Why a file is not read.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooBig     = errors.New("too big")
)

// Read returns the bytes of a regular file of up to limit bytes, without
// waiting for anything (a FIFO, a device) and without mapping it.
func Read(path string, limit int64) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG { // opening a device may do something
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	case st.Size > limit:
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooBig, st.Size, limit)}
	}
	data := make([]byte, st.Size)
	n := 0
	for n < len(data) {
		k, err := f.ReadAt(data[n:], int64(n))
		n += k
		if errors.Is(err, io.EOF) { // it has become shorter
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return data[:n], nil
}
