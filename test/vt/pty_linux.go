package vt

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open makes a pseudo-terminal of that size. The program has the terminal; what
// is written to the master it reads, and the other way round.
func Open(w, h int) (master, terminal *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = Resize(master, w, h)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, terminal, nil
}

// Resize changes the size of the terminal, which its programs are told of.
func Resize(master *os.File, w, h int) error {
	return unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(h), Col: uint16(w)})
}
