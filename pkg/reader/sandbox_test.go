package reader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
)

// sandboxChild runs where statx, pidfd_open and inotify fail with the errno
// args[0], as on old kernels (ENOSYS) and in sandboxes (EPERM). It looks at the
// directory args[1], ends the process args[2] and looks until that is seen.
func sandboxChild(args []string) error {
	errno, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil {
		return err
	}
	if err := deny(uint32(errno), unix.SYS_STATX, unix.SYS_PIDFD_OPEN, unix.SYS_INOTIFY_INIT1); err != nil {
		return err
	}
	told := 0
	d, err := reader.Open(args[1], reader.Options{Report: func(r reader.Report) {
		if r.Name == "" {
			told++
		}
	}})
	if err != nil {
		return err
	}
	defer d.Close()
	first := states(d.Look())
	for range 3 {
		if got := states(d.Look()); got != first {
			return fmt.Errorf("%s, then %s", first, got)
		}
	}
	pid, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return err
	}
	for { // the test gives up on it
		if after := states(d.Look()); after != first {
			say(fmt.Sprintf("%s; %s; told %d", first, after, told))
			return nil
		}
	}
}

// deny lets system calls of this process fail with errno (seccomp(2)).
func deny(errno uint32, calls ...uint32) error {
	const (
		load, jumpIfEqual, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		allThreads             = 1 // SECCOMP_FILTER_FLAG_TSYNC
	)
	filter := make([]unix.SockFilter, 0, len(calls)+3)
	filter = append(filter, unix.SockFilter{Code: load, K: 0}) // seccomp_data.nr
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{Code: jumpIfEqual, Jt: uint8(len(calls) - i), K: call})
	}
	filter = append(filter, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | errno})
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, allThreads, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return e
	}
	return nil
}

// TestSandbox does without what old kernels and sandboxes do not have.
func TestSandbox(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		t.Run(errno.Error(), func(t *testing.T) {
			dir := t.TempDir()
			writer := start(t, "wait", nil)
			put(t, dir, "a", counter("m", 1, 1))
			put(t, dir, "b", of(nobody))
			put(t, dir, "c", of(writer.pid()))
			check0(t, os.Symlink("a", filepath.Join(dir, "l")))
			check0(t, os.Symlink("nowhere", filepath.Join(dir, "n")))
			c := start(t, "sandbox", nil, strconv.Itoa(int(errno)), dir, strconv.Itoa(int(writer.pid())))
			if want := "a loaded, b dead, c loaded, l loaded; a loaded, b dead, c dead, l loaded; told 1"; c.said != want {
				t.Errorf("%s, want %s", c.said, want)
			}
			writer.kill()
		})
	}
}
