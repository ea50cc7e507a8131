package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// passedFiles are the sockets that systemd passes, sd_listen_fds(3); children
// do not get them. (go-systemd's package for it brings crypto/tls along, which
// takes 0.3 ms to start and 0.9 MB.)
func passedFiles() (files []*os.File) {
	pid, n := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	count, err := strconv.Atoi(n)
	if err != nil || pid != strconv.Itoa(os.Getpid()) {
		return nil
	}
	const first = 3 // SD_LISTEN_FDS_START
	for fd := first; fd < first+count; fd++ {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "LISTEN_FD_"+strconv.Itoa(fd)))
	}
	return files
}

// manager is systemd, when this process is the main one of a unit of its own.
// An agent that pmcd starts finds pmcd's notification socket in its
// environment, and must not speak for pmcd.
type manager struct{ there bool }

// findManager is to be called before the environment is cleared.
func findManager() manager {
	me := strconv.Itoa(os.Getpid())
	return manager{os.Getenv("LISTEN_PID") == me || os.Getenv("SYSTEMD_EXEC_PID") == me}
}

// tell sends states as in sd_notify(3).
func (m manager) tell(states ...string) {
	if m.there {
		_, _ = daemon.SdNotify(false, strings.Join(states, "\n")) // a manager that is not there misses nothing
	}
}

// reloading tells that a reload begins; it ends with READY=1.
func (m manager) reloading() {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	m.tell("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000))
}

// watchdog does the check, and tells that it came back, twice in the time that
// systemd allows; without one it returns.
func (m manager) watchdog(ctx context.Context, check func()) {
	limit, err := daemon.SdWatchdogEnabled(true)
	if err != nil || limit == 0 || !m.there {
		return
	}
	t := time.NewTicker(limit / 2)
	defer t.Stop()
	for {
		check()
		m.tell("WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// stderrIsJournal tells whether standard error goes to the journal: systemd
// names that very file in JOURNAL_STREAM.
func stderrIsJournal() bool {
	var st unix.Stat_t
	if unix.Fstat(2, &st) != nil {
		return false
	}
	return os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
