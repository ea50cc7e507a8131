package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropPrivileges makes the process, all threads of it, run as that user, by
// name or number, with that user's groups and no way back.
func dropPrivileges(name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		var unknown user.UnknownUserError
		if u, _ = user.LookupId(name); u == nil && !errors.As(err, &unknown) {
			return err
		}
	}
	if u == nil {
		id, err := strconv.ParseUint(name, 10, 31)
		if err != nil {
			return fmt.Errorf("no user %q", name)
		}
		s := strconv.FormatUint(id, 10)
		u = &user.User{Uid: s, Gid: s}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	groups := []int{gid}
	if u.Username != "" {
		if ids, err := u.GroupIds(); err == nil {
			groups = groups[:0]
			for _, s := range ids {
				if g, err := strconv.Atoi(s); err == nil {
					groups = append(groups, g)
				}
			}
		}
	}
	if isUser(uid, gid, groups) { // each of the calls below stops all threads
		return nil
	}
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("setgroups for %s: %w", name, err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("setresgid %d: %w", gid, err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("setresuid %d: %w", uid, err)
	}
	return nil
}

// isUser tells whether the process is that user already, in every respect.
func isUser(uid, gid int, groups []int) bool {
	r, e, s := unix.Getresuid()
	rg, eg, sg := unix.Getresgid()
	have, err := unix.Getgroups()
	if err != nil || r != uid || e != uid || s != uid || rg != gid || eg != gid || sg != gid {
		return false
	}
	have, groups = append(have, gid), append(slices.Clone(groups), gid) // whether it is listed as well is all one
	slices.Sort(have)
	slices.Sort(groups)
	return slices.Equal(slices.Compact(have), slices.Compact(groups))
}

// noNewPrivileges keeps every thread from ever gaining any. A build with cgo
// cannot do that for threads that are there already.
func noNewPrivileges() error {
	_, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if e != 0 && e != syscall.ENOTSUP {
		return fmt.Errorf("no_new_privs: %w", e)
	}
	return nil
}

// dropCapabilities takes every capability from every thread: a service manager
// or the program's file may have given some to a user that is not root. A
// build with cgo cannot. Where there are none it makes no such call, which a
// seccomp filter may refuse.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, none [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err == nil && have == none {
		return nil
	}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if e != 0 && e != syscall.ENOTSUP {
		return fmt.Errorf("drop capabilities: %w", e)
	}
	return nil
}

// confine gives up what the agent does not need. Started as root it becomes
// the user asked for, or PCP's; started as anybody else it stays who it is.
func confine(asked, pcpUser string) error {
	if os.Geteuid() == 0 {
		if asked == "" {
			asked = pcpUser
		}
		if err := dropPrivileges(asked); err != nil {
			return err
		}
	} else if asked != "" {
		if u, err := user.Lookup(asked); (err != nil || u.Uid != strconv.Itoa(os.Geteuid())) && asked != strconv.Itoa(os.Geteuid()) {
			return fmt.Errorf("only root can run the agent as %s", asked)
		}
	}
	if os.Geteuid() == 0 { // -U root keeps what root can read, and has nothing to gain: see settleIn
		return nil
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return noNewPrivileges()
}
