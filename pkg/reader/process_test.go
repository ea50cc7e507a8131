package reader_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// of is an image with the PROCESS flag.
func of(pid int32) *mmvimage.Image { return counter("m", 1, 1).Flags(mmvimage.Process).PID(pid) }

// nobody is a pid that no process has.
const nobody = 1 << 30

func TestProcess(t *testing.T) {
	zombie := func(t *testing.T) int32 { // ended, and nobody has waited for it
		c := start(t, "exit", nil)
		check0(t, unix.Waitid(unix.P_PID, int(c.pid()), nil, unix.WEXITED|unix.WNOWAIT, nil))
		return c.pid()
	}
	thread := func(t *testing.T) int32 { // of this process
		tasks, err := os.ReadDir("/proc/self/task")
		check0(t, err)
		for _, d := range tasks {
			if id, err := strconv.ParseInt(d.Name(), 10, 32); err == nil && int(id) != os.Getpid() {
				return int32(id)
			}
		}
		t.Fatal("no other thread")
		return 0
	}
	for _, tt := range []struct {
		name  string
		pid   func(*testing.T) int32
		check reader.ProcessCheck
		want  string
	}{
		{"this one", func(*testing.T) int32 { return int32(os.Getpid()) }, "", "a loaded"},
		{"the first", func(*testing.T) int32 { return 1 }, reader.ProcessHost, "a loaded"},
		{"another", func(t *testing.T) int32 { return start(t, "wait", nil).pid() }, "", "a loaded"},
		{"none", func(*testing.T) int32 { return nobody }, "", "a dead"},
		{"none, any", func(*testing.T) int32 { return nobody }, reader.ProcessAny, "a dead"},
		{"none, not asked", func(*testing.T) int32 { return nobody }, reader.ProcessOff, "a loaded"},
		{"zero", func(*testing.T) int32 { return 0 }, "", "a loaded"},
		{"a zombie", zombie, "", "a dead"},
		{"a thread", thread, "", "a dead"},
		{"a thread, any", thread, reader.ProcessAny, "a dead"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pid := tt.pid(t)
			for _, pidfds := range []bool{true, false} {
				dir := t.TempDir()
				put(t, dir, "a", of(pid))
				w := watch(t, dir, reader.Options{Process: tt.check})
				if !pidfds {
					w.NoPidfds()
				}
				for range 3 {
					w.look(tt.want)
				}
				if tt.want == "a dead" {
					if e := w.other("a"); !errors.Is(e.Err, reader.ErrGone) {
						t.Errorf("error %v", e.Err)
					}
				}
			}
		})
	}
}

// TestProcessEnds hides the files of a process when it ends, all of them and
// no others, at once.
func TestProcessEnds(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		one, two := start(t, "wait", nil), start(t, "wait", nil)
		put(t, dir, "a", of(one.pid()))
		put(t, dir, "b", of(two.pid()))
		put(t, dir, "c", of(one.pid()))
		w := watch(t, dir, reader.Options{})
		w.look("a loaded, b loaded, c loaded")
		one.kill()
		w.look("a dead, b loaded, c dead")
		gen := uint64(77)
		put(t, dir, "c", of(two.pid()).Generation(gen)) // by another process
		w.look("a dead, b loaded, c loaded")
		put(t, dir, "a", counter("m", 1, 1)) // no longer asks
		w.look("a loaded, b loaded, c loaded")
		two.kill()
		w.look("a loaded, b dead, c dead")
		check0(t, os.Remove(filepath.Join(dir, "b")))
		check0(t, os.Remove(filepath.Join(dir, "c")))
		w.look("a loaded")
		if _, _, _, n := w.Watches(); n != 0 {
			t.Errorf("%d processes are watched", n)
		}
	})
}

// TestProcessEndsWithoutPidfds is noticed within about a second.
func TestProcessEndsWithoutPidfds(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "wait", nil)
	put(t, dir, "a", of(c.pid()))
	w := watch(t, dir, reader.Options{})
	w.NoPidfds()
	w.look("a loaded")
	c.kill()
	eventually(t, "the end of the process", func() bool { return states(w.Look()) == "a dead" })
}

// TestRestart is what a restarted program does, in either order: its old
// process ends, its new one writes the file again.
func TestRestart(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		for round := range 20 {
			old, next := start(t, "wait", nil), start(t, "wait", nil)
			put(t, dir, "a", of(old.pid()))
			w := watch(t, dir, reader.Options{})
			w.look("a loaded")
			if round%2 == 0 {
				old.kill()
				put(t, dir, "a", of(next.pid()))
			} else {
				put(t, dir, "a", of(next.pid()))
				old.kill()
			}
			w.look("a loaded")
			w.look("a loaded")
			next.kill()
			w.look("a dead")
			w.Close()
		}
	})
}

// TestReusedPID lets another process have the pid of one that has ended. The
// file stays dead until it is written anew.
func TestReusedPID(t *testing.T) {
	const lastPID = "/proc/sys/kernel/ns_last_pid"
	if f, err := os.OpenFile(lastPID, os.O_WRONLY, 0); err != nil {
		t.Skipf("needs to say which pid comes next: %v", err)
	} else {
		check0(t, f.Close())
	}
	dir := t.TempDir()
	first := start(t, "wait", nil)
	pid := first.pid()
	put(t, dir, "a", of(pid))
	put(t, dir, "b", of(pid))
	w := watch(t, dir, reader.Options{})
	w.look("a loaded, b loaded")
	first.kill()
	again := func() bool {
		if err := os.WriteFile(lastPID, []byte(strconv.Itoa(int(pid)-1)), 0); err != nil {
			t.Skipf("may not say which pid comes next: %v", err)
		}
		c := start(t, "wait", nil)
		if c.pid() == pid {
			return true
		}
		c.stop()
		return false
	}
	for tries := 0; !again(); tries++ {
		if tries == 100 {
			t.Skip("other processes take all pids")
		}
	}
	w.look("a dead, b dead")
	check0(t, os.Chmod(filepath.Join(dir, "a"), 0o600)) // an event, but the same file
	w.look("a dead, b dead")
	w.Rescan()
	w.look("a dead, b dead")
	m := live(t, filepath.Join(dir, "a")) // its new process publishes it again
	mmvimage.PutU64(m, mmvimage.HdrG1, 5)
	mmvimage.PutU64(m, mmvimage.HdrG2, 5)
	w.look("a loaded, b dead")
	put(t, dir, "b", of(pid))
	w.look("a loaded, b loaded")
}

// TestStrict wants the writer to map the file.
func TestStrict(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		maps, not := filepath.Join(dir, "maps"), filepath.Join(dir, "not")
		check0(t, os.WriteFile(maps, counter("m", 1, 1).Build(), 0o644))
		writer := start(t, "map", nil, maps)
		for _, path := range []string{maps, not} { // in place, so that it is mapped still
			b := of(writer.pid()).Build()
			if path == maps {
				overwrite(t, path, b)
			} else {
				check0(t, os.WriteFile(path, b, 0o644))
			}
		}
		w := watch(t, dir, reader.Options{Process: reader.ProcessStrict})
		w.look("maps loaded, not dead")
		w.Close()

		w = watch(t, dir, reader.Options{})
		for _, f := range w.look("maps loaded, not loaded").Files {
			if got := f.Unmapped(); got != (f.Name == "not") {
				t.Errorf("%s: unmapped %v", f.Name, got)
			}
		}
		w.Close()
		put(t, dir, "free", counter("m", 1, 1))
		w = watch(t, dir, reader.Options{Process: reader.ProcessOff})
		for _, f := range w.look("free loaded, maps loaded, not loaded").Files {
			if f.Unmapped() {
				t.Errorf("%s: unmapped, though nothing is checked", f.Name)
			}
		}
	})
}

// innerChild is the first process of a PID namespace. It starts one with a pid
// there that nobody has here, and says which.
func innerChild(args []string) error {
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(args[0]), 0); err != nil { //nolint:gosec // a number
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"wait"}, &syscall.ProcAttr{ //nolint:gosec // the test chooses it
		Env: []string{childEnv + "=wait"}, Files: []uintptr{r.Fd(), null.Fd(), 2},
	})
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // ends it
	return ready(strconv.Itoa(pid))
}

// TestContainer is a writer in a PID namespace below, whose file has the pid
// that it knows.
func TestContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to be root to make a PID namespace")
	}
	dir := t.TempDir()
	attr := &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	one, two := start(t, "inner", attr, "4194000"), start(t, "inner", attr, "4194000")
	if one.said != two.said {
		t.Fatalf("two namespaces, two pids: %s and %s", one.said, two.said)
	}
	inner, err := strconv.ParseInt(one.said, 10, 32)
	check0(t, err)
	if unix.Kill(int(inner), 0) == nil {
		t.Skipf("%d runs here, too", inner)
	}
	put(t, dir, "a", of(int32(inner)))
	put(t, dir, "b", of(int32(inner)))
	put(t, dir, "c", of(nobody))
	host := watch(t, dir, reader.Options{})
	host.look("a dead, b dead, c dead")
	host.Close()
	w := watch(t, dir, reader.Options{Process: reader.ProcessAny})
	w.look("a loaded, b loaded, c dead")
	if !w.file("a").Unmapped() {
		t.Error("the writer is not seen not to map the file")
	}
	one.kill()                           // the first process of a namespace takes the others with it
	w.look("a loaded, b loaded, c dead") // the other one may be meant
	two.kill()
	w.look("a dead, b dead, c dead")
}
