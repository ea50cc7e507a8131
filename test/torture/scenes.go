package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"

	"golang.org/x/sys/unix"
)

// fewFiles is an agent that may map no more than maxFiles.
const maxFiles = 20

func fewFiles(a *actor) {
	file := func(i int) string { return fmt.Sprintf("%s%02d", a.name, i) }
	there := map[int]*contents{}
	for a.more() {
		for range 1 + a.rng.IntN(10) {
			i := a.rng.IntN(3 * maxFiles)
			switch there[i] {
			case nil:
				there[i] = a.plain()
				a.must(mmvimage.Write(a.path(file(i)), there[i].image().Build()))
			default:
				delete(there, i)
				a.must(os.Remove(a.path(file(i))))
			}
		}
		a.did("%d files there", len(there))
		got := 0
		for i, c := range there {
			name := c.names(file(i))[0]
			pmid, st := a.c.pmid(name)
			if pmid == 0 {
				if st != pcpwire.ErrName {
					a.fail(wrong, file(i), "%s is %v", name, st)
				}
				continue
			}
			got++
			a.match(file(i), c, pmid.Cluster())
		}
		if want := min(maxFiles, len(there)); a.c.err == nil && got != want {
			a.fail(missed, file(0), "%d files are exported, want %d of %d", got, want, len(there))
		}
		if n := a.c.control(controlFiles); n != int64(got) && a.c.err == nil {
			a.fail(wrong, file(0), "mmv.control.files is %d, want %d", n, got)
		}
		if n := a.c.control(controlRejected); n != int64(len(there)-got) && a.c.err == nil {
			a.fail(wrong, file(0), "mmv.control.rejected is %d, want %d", n, len(there)-got)
		}
		a.r.count("looks at too many files", 1)
	}
}

// fewDescriptors has no descriptors for watching processes, so that their end is found out by asking, once a second.
func fewDescriptors(a *actor) {
	for a.more() {
		cmd := exec.CommandContext(a.ctx, "sleep", "1000")
		if err := cmd.Start(); err != nil {
			a.must(err)
			return
		}
		c := random(a.rng, a.newTag(), a.newMark())
		c.flags, c.pid = mmvimage.Process, int32(cmd.Process.Pid)
		file := fmt.Sprintf("%s%d", a.name, a.rng.IntN(3))
		a.publish(file, c)
		kill(cmd)
		a.did("killed process %d", c.pid)
		a.waitNothing(file)
		for range 20 {
			a.step(file + "x")
		}
		a.r.count("processes without a pidfd", 1)
	}
}

// waitNothing waits until a file has no values any more, where nothing tells of that, so that it may take somewhat more
// than a second.
func (a *actor) waitNothing(file string) {
	s := a.state(file)
	for deadline := time.Now().Add(10 * time.Second); a.more(); time.Sleep(10 * time.Millisecond) {
		if a.anything(s) == nil {
			break
		}
		if time.Now().After(deadline) {
			a.fail(wrong, file, "it still has values ten seconds later")
			break
		}
	}
	s.c = nil
}

// directories does everything to the directory itself.
func directories(a *actor) {
	file := a.name
	away := a.mmv + ".away"
	for n := 0; a.more(); n++ {
		c := random(a.rng, a.newTag(), a.newMark())
		a.state(file).was = nil
		a.publish(file, c)
		switch k := a.rng.IntN(6); k {
		case 0, 1:
			a.did("moved the directory away")
			a.must(os.Rename(a.mmv, away))
			a.expectGone(file)
			if k == 1 {
				a.did("put another in its place")
				a.must(mkdir(a.mmv, 0o755))
				d := random(a.rng, c.tag, a.newMark())
				a.publish(file, d)
				remove(a.mmv)
				a.expectGone(file)
			}
			a.did("moved it back")
			a.must(os.Rename(away, a.mmv))
			a.expect(file, c)
		case 2:
			a.did("removed the directory")
			remove(a.mmv)
			a.expectGone(file)
			a.did("made it again")
			a.must(mkdir(a.mmv, 0o755))
			a.publish(file, c)
		case 3:
			a.did("removed the directory and made it again")
			remove(a.mmv)
			a.must(mkdir(a.mmv, 0o755))
			a.expectGone(file)
		case 4:
			a.did("took the directory's mode and gave it back")
			a.must(os.Chmod(a.mmv, 0))
			_, _ = a.c.pmid("mmv." + file) // root sees it all the time
			a.must(mkdir(a.mmv, 0o755))
			a.state(file).c = nil
			a.expect(file, c)
		case 5:
			a.did("a file is in the directory's place, then a link to it")
			a.must(os.Rename(a.mmv, away))
			a.must(os.WriteFile(a.mmv, []byte("not a directory"), 0o644)) //nolint:gosec // to be read by others
			a.expectGone(file)
			remove(a.mmv)
			a.must(os.Symlink(away, a.mmv))
			a.expect(file, c)
			a.must(os.WriteFile(filepath.Join(away, "x"), c.image().Build(), 0o644)) //nolint:gosec // to be read by others
			a.must(os.Rename(filepath.Join(away, "x"), filepath.Join(away, file)))
			a.state(file).c = nil
			a.expect(file, c)
			remove(a.mmv)
			a.must(os.Rename(away, a.mmv))
			a.expect(file, c)
		}
		a.r.count("changes of the directory", 1)
	}
}

// childBlind is the first argument of this program as one that takes away what a program needs for file events, and then
// becomes that program.
const childBlind = "blind"

// blindly makes a command run in a user namespace that has none of that kind, which is instances or watches.
func blindly(kind string) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		uid, gid := os.Getuid(), os.Getgid()
		cmd.Args = append([]string{exe, childBlind, kind}, append(cmd.Args, "-U", strconv.Itoa(uid))...)
		cmd.Path = exe
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.GidMappingsEnableSetgroups = uid == 0
		if uid != 0 {
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_RESOURCE}
		}
		return nil
	}
}

// blind is a stage without file events. Where user namespaces are not allowed, all instances that the user may have are
// taken, which no other agent of this program needs meanwhile.
func (t *torture) blind(ctx context.Context, base, kind string) func(string, time.Duration) error {
	return func(name string, d time.Duration) error {
		test := command("/bin/true")
		err := blindly(kind)(test)
		if err == nil {
			err = test.Run()
		}
		if err == nil {
			return t.alone(ctx, base, churn, blindly(kind))(name, d)
		}
		if kind != "instances" || os.Getuid() == 0 {
			t.r.remember("not done: %s: %v", name, err)
			return nil
		}
		for {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				break
			}
			defer unix.Close(fd) //nolint:errcheck // at the end of the stage
		}
		return t.alone(ctx, base, churn, nil)(name, d)
	}
}

// becomeBlind is that child.
func becomeBlind(args []string) error {
	if err := os.WriteFile("/proc/sys/user/max_inotify_"+args[0], []byte("0"), 0); err != nil { //nolint:gosec // our own argument
		return err
	}
	return syscall.Exec(args[1], args[1:], os.Environ()) //nolint:gosec // the program under test
}

// isBlind tells whether the agent has said that there are no file events.
func isBlind(a *agent) bool {
	b, err := os.ReadFile(a.log)
	return err == nil && strings.Contains(string(b), "no file events")
}

// limited makes a command run with few descriptors.
func limited(n int) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		path, err := exec.LookPath("prlimit")
		if err != nil {
			return err
		}
		cmd.Args = append([]string{path, fmt.Sprintf("--nofile=%d", n)}, slices.Clone(cmd.Args)...)
		cmd.Path = path
		return nil
	}
}
