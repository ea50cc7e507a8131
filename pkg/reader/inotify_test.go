package reader_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// TestOverflow changes files when the queue of events has overflowed, so that
// nothing tells of that.
func TestOverflow(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	check0(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	check0(t, err)
	if n > 1<<20 {
		t.Skipf("a queue of %d events", n)
	}
	onEach(t, func(t *testing.T, dir string) {
		for _, name := range []string{"a", "b", "c"} {
			check0(t, os.WriteFile(filepath.Join(dir, name), counter("m", 1, 1).Build(), 0o644))
		}
		w := watch(t, dir, reader.Options{})
		for _, name := range []string{".0", ".1"} {
			check0(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		}
		s := w.look("a loaded, b loaded, c loaded")
		for i := range n + 1 { // the same event twice would be one
			check0(t, os.Chmod(filepath.Join(dir, fmt.Sprintf(".%d", i%2)), 0o644)) //nolint:gosec // a directory of the test
		}
		overwrite(t, filepath.Join(dir, "b"), counter("n", 1, 1).Build())
		check0(t, os.Remove(filepath.Join(dir, "c")))
		put(t, dir, "d", counter("m", 1, 1))
		next := w.look("a loaded, b loaded, d loaded")
		if got := names(next.Files[1]); got[0] != "n0" {
			t.Errorf("b is %v", got)
		}
		if s.Files[0] != next.Files[0] {
			t.Error("a is another File")
		}
		put(t, dir, "e", counter("m", 1, 1))
		w.look("a loaded, b loaded, d loaded, e loaded")
	})
}

// TestManyEvents ends, though more come all the time.
func TestManyEvents(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a", counter("m", 1, 1))
	w := watch(t, dir, reader.Options{})
	w.look("a loaded")
	stop := make(chan struct{})
	done := make(chan error)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf(".%d", i%2)), []byte{1}, 0o644); err != nil {
				<-stop
				done <- err
				return
			}
		}
	}()
	for range 2000 {
		w.look("a loaded")
	}
	close(stop)
	check0(t, <-done)
}

// TestNoInotify finds what has changed inside of files by itself, within about
// a second; what has changed in the directory at once.
func TestNoInotify(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "a")
		check0(t, os.WriteFile(path, counter("m", 1, 1).Build(), 0o644))
		w := watch(t, dir, reader.Options{NoInotify: true})
		if len(w.reports) != 1 || !errors.Is(w.reports[0].Err, reader.ErrNoInotify) {
			t.Errorf("reports: %+v", w.reports)
		}
		w.look("a loaded")
		is := func(name string) func() bool {
			return func() bool { return names(w.file("a"))[0] == name }
		}
		overwrite(t, path, counter("n", 1, 1).Build())
		eventually(t, "a written over", is("n0"))
		check0(t, os.WriteFile(path, counter("o", 3, 1).Build(), 0o644))
		eventually(t, "a longer", is("o0"))
		check0(t, os.Chmod(path, 0o600))
		w.look("a loaded")
		put(t, dir, "b", counter("m", 1, 1))
		w.look("a loaded, b loaded")
		check0(t, os.Remove(path))
		w.look("b loaded")
		if len(w.reports) != 4 { // no inotify, a loaded, b loaded, a gone
			t.Errorf("reports: %+v", w.reports)
		}
	})
}

// TestNoInotifyCost reads nothing anew when nothing has changed: a second
// look, seconds later, is told from the first by nothing.
func TestNoInotifyCost(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		put(t, dir, strconv.Itoa(i), counter("m", 10, 1))
	}
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, dir, reader.Options{NoInotify: true})
		s := w.Look()
		if len(s.Files) != 50 {
			t.Fatal(states(s))
		}
		read := readBytes(t)
		for range 5 {
			time.Sleep(2 * time.Second)
			if w.Look() != s {
				t.Error("another Snapshot")
			}
		}
		if n := readBytes(t) - read; n > 10000 { // of /proc/self/io itself
			t.Errorf("%d bytes were read", n)
		}

		overwrite(t, filepath.Join(dir, "7"), counter("longer name", 20, 1).Build())
		if w.Look() != s {
			t.Error("a second has not passed")
		}
		time.Sleep(time.Second)
		if n := len(w.file("7").Catalog.Metrics); n != 20 {
			t.Errorf("%d metrics", n)
		}
	})
}

// readBytes is how much this process has read(2).
func readBytes(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	check0(t, err)
	rest, ok := bytes.CutPrefix(b, []byte("rchar: "))
	if !ok {
		t.Fatalf("%q", b)
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(line))
	check0(t, err)
	return n
}

// limitedChild runs in a user namespace, where it may set its own limits of
// inotify, and looks at the directory args[0]. It prints what goes wrong.
func limitedChild(args []string) error {
	dir := args[0]
	limit := func(what string, n int) error {
		return os.WriteFile("/proc/sys/user/max_inotify_"+what, []byte(strconv.Itoa(n)), 0)
	}
	if err := limit("watches", 1); err != nil {
		say("skip " + err.Error())
		return nil
	}
	say(func() string {
		// no watch is left for the link; it is polled
		w := &limitedDir{}
		if err := w.open(dir); err != nil {
			return err.Error()
		}
		if got := w.look(); got != "a loaded, link loaded" {
			return got
		}
		f, err := os.OpenFile(filepath.Join(dir, "..", "far"), os.O_WRONLY, 0) //nolint:gosec // a test's own file
		if err != nil {
			return err.Error()
		}
		if _, err := f.WriteAt(counter("n", 1, 1).Build(), 0); err != nil {
			return err.Error()
		}
		if err := f.Close(); err != nil {
			return err.Error()
		}
		for _, f := range w.d.Look().Files {
			if f.Name == "link" && names(f)[0] != "n0" {
				return "the link's target has changed, and is " + names(f)[0]
			}
		}
		if len(w.told) > 0 {
			return w.told[0]
		}
		w.d.Close()

		// nor for the directory
		if err := limit("watches", 0); err != nil {
			return err.Error()
		}
		if err := w.open(dir); err != nil {
			return err.Error()
		}
		for range 3 {
			if got := w.look(); got != "a loaded, link loaded" {
				return got
			}
		}
		if err := mmvimage.Write(filepath.Join(dir, "b"), counter("m", 1, 1).Build()); err != nil {
			return err.Error()
		}
		if got := w.look(); got != "a loaded, b loaded, link loaded" {
			return got
		}
		for end := time.Now().Add(1100 * time.Millisecond); time.Now().Before(end); { // it tries again after a second
			w.look()
		}
		if len(w.told) != 1 {
			return fmt.Sprintf("told %q", w.told)
		}
		if err := limit("watches", 10); err != nil {
			return err.Error()
		}
		for end := time.Now().Add(20 * time.Second); ; w.look() {
			if n, _, _, _ := w.d.Watches(); n > 0 {
				break
			}
			if time.Now().After(end) {
				return "no watch, though there could be"
			}
		}
		w.d.Close()

		// nor an inotify at all
		if err := limit("instances", 0); err != nil {
			return err.Error()
		}
		w.told = nil
		if err := w.open(dir); err != nil {
			return err.Error()
		}
		if got := w.look(); got != "a loaded, b loaded, link loaded" {
			return got
		}
		if len(w.told) != 1 {
			return fmt.Sprintf("told %q", w.told)
		}
		w.d.Close()
		return "good"
	}())
	return nil
}

type limitedDir struct {
	d    *reader.Dir
	told []string // of the directory
}

func (w *limitedDir) open(dir string) (err error) {
	w.d, err = reader.Open(dir, reader.Options{Report: func(r reader.Report) {
		if r.Name == "" {
			w.told = append(w.told, fmt.Sprint(r.Err))
		}
	}})
	return err
}

func (w *limitedDir) look() string { return states(w.d.Look()) }

// TestWatchLimits runs out of watches, and of inotify itself.
func TestWatchLimits(t *testing.T) {
	top := t.TempDir()
	check0(t, os.Chmod(top, 0o755)) //nolint:gosec // a directory of the test
	dir := filepath.Join(top, "mmv")
	check0(t, os.Mkdir(dir, 0o755))
	put(t, dir, "a", counter("m", 1, 1))
	check0(t, os.WriteFile(filepath.Join(top, "far"), counter("m", 1, 1).Build(), 0o644))
	check0(t, os.Symlink("../far", filepath.Join(dir, "link")))
	attr := &unix.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	c := start(t, "limited", attr, dir)
	switch {
	case strings.HasPrefix(c.said, "skip"):
		t.Skip("needs a user namespace with limits of its own: " + c.said)
	case c.said != "good":
		t.Error(c.said)
	}
}
