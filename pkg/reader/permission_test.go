package reader_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
)

const nobodyID = 65534

// asNobody runs f with the file access of a user without any rights.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f() // this user cannot read what is 0000 either
		return
	}
	runtime.LockOSThread() // of this thread alone
	defer runtime.UnlockOSThread()
	check0(t, unix.Setfsuid(nobodyID))
	defer func() {
		if err := unix.Setfsuid(0); err != nil {
			panic(err)
		}
	}()
	f()
}

// TestPermissions takes rights away and gives them back, of files, of what
// links lead to, and of the directory.
func TestPermissions(t *testing.T) {
	onEach(t, func(t *testing.T, top string) {
		open(t, top)
		dir, far := filepath.Join(top, "mmv"), filepath.Join(top, "far")
		check0(t, os.Mkdir(dir, 0o755))
		check0(t, os.Mkdir(far, 0o755))
		for _, n := range []string{"a", "b"} {
			put(t, dir, n, counter("m", 1, 1))
		}
		put(t, far, "x", counter("m", 1, 1))
		check0(t, os.Symlink(filepath.Join(far, "x"), filepath.Join(dir, "l")))
		mode := func(path string, m os.FileMode) { check0(t, os.Chmod(filepath.Join(top, path), m)) }
		mode("mmv/a", 0)
		mode("far/x", 0)
		w := watch(t, dir, reader.Options{})
		look := func(what, want string, err error) {
			t.Helper()
			asNobody(t, func() {
				for range 2 {
					s := w.Look()
					if got := states(s); got != want {
						t.Fatalf("%s: %q, want %q (%v)", what, got, want, s.Err)
					}
					if !errors.Is(s.Err, err) {
						t.Fatalf("%s: error %v, want %v", what, s.Err, err)
					}
					for _, o := range s.Others {
						if !errors.Is(o.Err, unix.EACCES) {
							t.Errorf("%s: %s: %v", what, o.Name, o.Err)
						}
					}
				}
			})
		}
		look("two unreadable", "a rejected, b loaded, l rejected", nil)
		mode("mmv/a", 0o644)
		look("one readable", "a loaded, b loaded, l rejected", nil)
		mode("far/x", 0o644)
		look("all readable", "a loaded, b loaded, l loaded", nil)
		mode("mmv/b", 0)
		look("one unreadable", "a loaded, b rejected, l loaded", nil)
		mode("far", 0)
		look("the way to one barred", "a loaded, b rejected", nil)
		mode("far", 0o755)
		mode("mmv/b", 0o644)
		look("all readable", "a loaded, b loaded, l loaded", nil)

		mode("mmv", 0o311)
		w.Rescan() // by root, if it is: a directory that cannot be listed is told by nothing when it is watched
		mode("mmv", 0o755)
		look("all readable", "a loaded, b loaded, l loaded", nil)
		mode("mmv", 0)
		look("directory barred", "", unix.EACCES)
		mode("mmv", 0o755)
		look("directory open", "a loaded, b loaded, l loaded", nil)
		mode("mmv", 0o444) // its names can be read, and no more
		look("nothing in it can be reached", "a rejected, b rejected, l rejected", nil)
		mode("mmv", 0o755)
		look("directory open", "a loaded, b loaded, l loaded", nil)
		mode(".", 0)
		look("above it barred", "", unix.EACCES)
		mode(".", 0o755)
		look("above it open", "a loaded, b loaded, l loaded", nil)
		said := 0
		for _, r := range w.reports {
			if r.Name == "" {
				said++
			}
		}
		if said != 4 {
			t.Errorf("%d reports of the directory, want 4: %+v", said, w.reports)
		}
	})
}

// open lets everybody into the directories above a test's own.
func open(t *testing.T, dir string) {
	t.Helper()
	for d := dir; d != os.TempDir() && d != "/dev/shm" && d != "/"; d = filepath.Dir(d) {
		check0(t, os.Chmod(d, 0o755))
	}
}

// droppedChild is an agent that has dropped its privileges for good. It looks
// at a directory and prints what it finds.
func droppedChild(args []string) error {
	d, err := reader.Open(args[0], reader.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	if args[1] == "kill" {
		d.NoPidfds()
	}
	say(states(d.Look()))
	return nil
}

// TestDroppedPrivileges looks as a user that owns nothing, not even its own
// /proc, and may not signal the writer.
func TestDroppedPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to be root to become another user")
	}
	dir := t.TempDir()
	open(t, dir)
	put(t, dir, "a", of(1))
	put(t, dir, "b", counter("m", 1, 1))
	put(t, dir, "c", of(nobody))
	check0(t, os.Symlink("b", filepath.Join(dir, "l")))
	check0(t, os.WriteFile(filepath.Join(dir, "u"), counter("m", 1, 1).Build(), 0o600))
	for _, how := range []string{"pidfd", "kill"} {
		c := start(t, "dropped", &unix.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}, dir, how)
		if want := "a loaded, b loaded, c dead, l loaded, u rejected"; c.said != want {
			t.Errorf("%s: %s, want %s", how, c.said, want)
		}
	}
}

// noProcChild looks where there is no /proc, and prints what it finds, before
// and after what a link leads to was written over.
func noProcChild(args []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("none", "/proc", "tmpfs", 0, ""); err != nil {
		return err
	}
	d, err := reader.Open(args[0], reader.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	found := []string{states(d.Look())}
	f, err := os.OpenFile(args[1], os.O_WRONLY, 0) //nolint:gosec // a test's own file
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(counter("n", 1, 1).Build(), 0); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, f := range d.Look().Files {
		found = append(found, f.Name+" "+names(f)[0])
	}
	say(strings.Join(found, ", "))
	return nil
}

// TestNoProc does without /proc.
func TestNoProc(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to be root to hide /proc")
	}
	dir, far := t.TempDir(), filepath.Join(t.TempDir(), "far")
	put(t, dir, "a", of(int32(os.Getpid())))
	put(t, dir, "b", of(nobody))
	check0(t, os.WriteFile(far, counter("m", 1, 1).Build(), 0o644))
	check0(t, os.Symlink(far, filepath.Join(dir, "l")))
	c := start(t, "noproc", &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}, dir, far)
	if want := "a loaded, b dead, l loaded, a m0, l n0"; c.said != want {
		t.Errorf("%s, want %s", c.said, want)
	}
}
