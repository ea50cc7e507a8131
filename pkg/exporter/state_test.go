package exporter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/exporter"
)

// wait waits until something is so.
func wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func (b *box) savedState() string {
	if st, err := os.Stat(b.state); err != nil || !st.Mode().IsRegular() || st.Size() > 1<<20 {
		return "nothing to read"
	}
	data, err := os.ReadFile(b.state)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// toldOf counts the events since the last told that have a text in them.
func (b *box) toldOf(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range b.events {
		if strings.Contains(ev.Text, text) {
			n++
		}
	}
	return n
}

const stateTail = "# indom cluster serial number last file\nend\n"

func TestStateFile(t *testing.T) {
	b := newBox(t).keep()
	b.put("a", asking(7))
	b.put("b\tb", one(1)) // rejected
	b.start()
	b.look()
	wait(t, "the file is there", func() bool { return strings.HasSuffix(b.savedState(), stateTail) })
	head := fmt.Sprintf("pmdammv identities 1\ndirectory %q\n", b.dir)
	if got := b.savedState(); !strings.HasPrefix(got, head) || !strings.Contains(got, "\nfile 7 7 ") || !strings.Contains(got, ` "b\tb"`+"\n") {
		t.Errorf("saved:\n%s", got)
	}
	st, err := os.Stat(b.state)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "mode", st.Mode(), 0o644)
	b.put("c", asking(8))
	b.look()
	wait(t, "it is replaced", func() bool { return strings.Contains(b.savedState(), "\nfile 8 8 ") })
	if now, err := os.Stat(b.state); err != nil || os.SameFile(st, now) {
		t.Errorf("written in place: %v", err)
	}
	if left, err := filepath.Glob(b.state + "?*"); err != nil || len(left) != 1 || left[0] != b.state+".lock" {
		t.Errorf("left over: %q, %v", left, err)
	}
}

// What happens last is in the file when the agent has ended.
func TestStateAtExit(t *testing.T) {
	b := newBox(t).keep()
	b.start()
	b.put("a", one(1))
	b.look()
	b.stop()
	if got := b.savedState(); !strings.Contains(got, "\nfile 0 1 ") {
		t.Errorf("saved:\n%s", got)
	}
	was := b.savedState()
	b.start()
	b.look()
	b.remove("a")
	b.look()
	b.stop() // when it was there last is worth a write then
	if got := b.savedState(); got == was || !strings.Contains(got, "\nfile 0 1 ") {
		t.Errorf("saved:\n%s", got)
	}
}

// No answer waits for the file: it cannot even be written here.
func TestStateIsOffThePath(t *testing.T) {
	b := newBox(t).keep()
	b.start()
	fifo := b.state + ".new"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	b.put("a", one(1))
	equal(t, "value", b.values("mmv.a.m"), "1")
	wait(t, "what was in the way is replaced", func() bool { return strings.Contains(b.savedState(), "\nfile 0 1 ") })
}

func TestStateNotUsable(t *testing.T) {
	good := func(dir string) string {
		return fmt.Sprintf("pmdammv identities 1\ndirectory %q\ncounter 9\nfile 0 5 1 9 0 0 \"a\"\n", dir) + stateTail
	}
	damage := func(old, text string) func(*box) {
		return func(b *box) {
			s := good(b.dir)
			if !strings.Contains(s, old) {
				t.Fatal(old)
			}
			if err := os.WriteFile(b.state, []byte(strings.Replace(s, old, text, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	damaged := "they are now in"
	tests := []struct {
		name    string
		set     func(*box)
		told    string
		cluster string // of a: 5 when the file is used
		kept    bool   // a's number is in the file afterwards
	}{
		{"good", damage("end", "end"), "", "5", true},
		{"missing", func(*box) {}, "no saved identities", "1", true},
		{"empty", func(b *box) { must(t, os.WriteFile(b.state, nil, 0o600)) }, damaged, "1", true},
		{"other version", damage("identities 1", "identities 2"), damaged, "1", true},
		{"no directory", damage("directory", "directories"), damaged, "1", true},
		{"no counter", damage("counter 9\n", ""), damaged, "1", true},
		{"bad counter", damage("counter 9", "counter -9"), damaged, "1", true},
		{"cut", damage("end\n", ""), damaged, "1", true},
		{"more after the end", damage("end\n", "end\nfile 0 6 1 9 0 0 \"b\"\n"), damaged, "1", true},
		{"not a number", damage("file 0 5", "file 0 five"), damaged, "1", true},
		{"too few numbers", damage("1 9 0 0", "1 9 0"), damaged, "1", true},
		{"a number too many", damage("1 9 0 0", "1 9 0 0 0"), damaged, "1", true},
		{"unknown line", damage("file", "pile"), damaged, "1", true},
		{"not quoted", damage(`"a"`, "a"), damaged, "1", true},
		{"text behind", damage(`"a"`, `"a" b`), damaged, "1", true},
		{"no name", damage(`"a"`, `""`), damaged, "1", true},
		{"cluster out of range", damage("file 0 5", "file 0 4096"), damaged, "1", true},
		{"later than now", damage("1 9 0 0", "10 9 0 0"), damaged, "1", true},
		{"name twice", damage("# indom", "file 0 6 1 9 0 0 \"a\"\n# indom"), damaged, "1", true},
		{"cluster twice", damage("# indom", "file 0 5 1 9 0 0 \"b\"\n# indom"), damaged, "1", true},
		{"instance twice", damage("9 0 0 \"a\"\n", "9 1 0 \"a\"\nfile 0 6 1 9 1 0 \"b\"\n"), damaged, "1", true},
		{"indom of no cluster", damage("end", "indom 0 1 1 9 \"\"\nend"), damaged, "1", true},
		{"indom without number", damage("end", "indom 1 1 0 9 \"\"\nend"), damaged, "1", true},
		{"indom number twice", damage("end", "indom 1 1 5 9 \"\"\nindom 1 2 5 9 \"\"\nend"), damaged, "1", true},
		{"indom twice", damage("end", "indom 1 1 5 9 \"\"\nindom 1 1 6 9 \"\"\nend"), damaged, "1", true},
		{"foreign", damage("/mmv\"", "/other\""), "belongs to another directory", "1", false},
		{"a directory", func(b *box) { must(t, os.Mkdir(b.state, 0o700)) }, "not a regular file", "1", false},
		{"a fifo", func(b *box) { must(t, unix.Mkfifo(b.state, 0o600)) }, "not a regular file", "1", false},
		{"a device", func(b *box) { must(t, os.Symlink("/dev/zero", b.state)) }, "not a regular file", "1", false},
		{"a link", func(b *box) {
			damage("end", "end")(b)
			must(t, os.Rename(b.state, b.state+"-there"))
			must(t, os.Symlink(b.state+"-there", b.state))
		}, "", "5", true},
		{"a link to nothing", func(b *box) { must(t, os.Symlink(b.state+"-nowhere", b.state)) }, "no saved identities", "1", true},
		{"a lock that is a link", func(b *box) { must(t, os.Symlink(b.state+"-nowhere", b.state+".lock")) }, "not kept", "1", false},
		{"a lock that is a directory", func(b *box) { must(t, os.Mkdir(b.state+".lock", 0o700)) }, "not kept", "1", false},
		{"no place", func(b *box) { b.opts.Identities = b.state + "/none/identities" }, "not kept", "1", false},
		{"too large", func(b *box) {
			damage("end", "end")(b)
			must(t, os.Truncate(b.state, 1<<30))
		}, damaged, "1", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t).keep()
			tt.set(b)
			was := b.savedState()
			b.put("a", one(1))
			b.start()
			equal(t, "cluster", b.clusters("a"), tt.cluster)
			for range 3 {
				b.put("b", one(2))
				b.look()
				b.remove("b")
				b.look()
			}
			b.stop()
			if n := b.toldOf(tt.told); tt.told != "" && n != 1 {
				t.Errorf("told %d times: %q", n, b.told())
			}
			if tt.told == "" && (b.toldOf("identities") != 0 || b.toldOf("kept") != 0) {
				t.Errorf("told: %q", b.told())
			}
			kept := strings.Contains(b.savedState(), "\nfile 0 "+tt.cluster+" ")
			equal(t, "kept", kept, tt.kept)
			aside, err := os.ReadFile(b.state + ".damaged")
			equal(t, "set aside", err == nil, tt.told == damaged)
			if err == nil && tt.name != "too large" {
				equal(t, "what is set aside", string(aside), was)
			}
			if !tt.kept && tt.name == "foreign" {
				equal(t, "not touched", b.savedState(), was)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A second agent on the same file uses what is saved and writes nothing.
func TestStateLocked(t *testing.T) {
	b := newBox(t).keep()
	b.put("z", one(1))
	b.start()
	b.put("a", one(1))
	b.look()
	wait(t, "saved", func() bool { return strings.Contains(b.savedState(), `"a"`) })
	c := newBox(t)
	c.dir, c.state, c.opts.Dir = b.dir, b.state, b.dir
	c.keep().start()
	c.put("c", one(1))
	equal(t, "numbers", c.clusters("a", "c", "z"), "2 3 1")
	c.stop()
	equal(t, "times that it is said", c.toldOf("another agent has locked"), 1)
	if strings.Contains(b.savedState(), `"c"`) {
		t.Error("written without the lock")
	}
	c.opts.ReadOnly = true
	c.told()
	c.start()
	equal(t, "numbers, read only", c.clusters("a", "z"), "2 1")
	c.put("d", one(1))
	c.look()
	c.stop()
	if told := c.told(); len(told) != 2 || strings.Contains(b.savedState(), `"d"`) { // the number of files, and d
		t.Errorf("read only: %q", told)
	}
	b.stop() // the lock ends with the agent
	c.opts.ReadOnly = false
	c.start()
	c.stop()
	equal(t, "times that it is said with the lock free", c.toldOf("locked"), 0)
}

// An agent that does not get the lock at its start takes it when the other has gone,
// and then keeps all numbers that it has given.
func TestStateLockedAtFirst(t *testing.T) {
	b := newBox(t).keep()
	b.put("z", one(1))
	b.start()
	b.look()
	c := newBox(t)
	c.dir, c.state, c.opts.Dir = b.dir, b.state, b.dir
	c.keep().start()
	c.put("m", one(1))
	c.look()
	b.stop()
	c.put("a", one(1))
	c.look()
	wait(t, "numbers to be kept", func() bool { return strings.Contains(c.savedState(), `"a"`) })
	equal(t, "numbers", c.clusters("a", "m", "z"), "3 2 1")
	c.restart()
	equal(t, "numbers after a restart", c.clusters("a", "m", "z"), "3 2 1")
	equal(t, "times that it is said to work", c.toldOf("kept in"), 1)
}

// An agent that takes over waits a moment for the one before.
func TestStateTakenOver(t *testing.T) {
	b := newBox(t).keep().start()
	b.put("a", one(1))
	b.look()
	c := newBox(t)
	c.dir, c.state, c.opts.Dir = b.dir, b.state, b.dir
	c.keep()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.s.Close()
		b.e.Close()
	}()
	c.start()
	<-done
	b.e = nil
	equal(t, "cluster", c.clusters("a"), "1")
	equal(t, "told", c.toldOf("locked"), 0)
}

// Where the file cannot be written that is said once, and when it can again.
func TestStateUnwritable(t *testing.T) {
	b := newBox(t).keep()
	b.start()
	b.look()
	block := b.state + ".new"
	must(t, os.MkdirAll(block+"/x", 0o700)) // cannot be removed
	for i := range 3 {
		b.put(fmt.Sprint("f", i), one(1))
		b.look()
		wait(t, "an attempt", func() bool { return b.toldOf("not kept") > 0 })
	}
	b.put("f4", one(1))
	b.look()
	must(t, os.RemoveAll(block))
	b.stop()
	equal(t, "times that it is said", b.toldOf("not kept"), 1)
	equal(t, "times that it is said to work again", b.toldOf("kept in"), 1)
	if got := b.savedState(); strings.Count(got, "\nfile ") != 4 {
		t.Errorf("saved:\n%s", got)
	}
}

func TestStateFullDisk(t *testing.T) {
	b := newBox(t).keep()
	b.put("a", one(1))
	b.start()
	b.look()
	b.stop()
	was := b.savedState()
	for i := range 20 {
		b.put(fmt.Sprint("new", i), one(1))
	}
	out := asChild(t, "full", filepath.Dir(b.dir))
	equal(t, "times that it is said", strings.Count(out, "not kept for the next: "), 1)
	if !strings.Contains(out, "file too large") {
		t.Errorf("told:\n%s", out)
	}
	equal(t, "saved", b.savedState(), was)
	if _, err := os.Stat(b.state + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left over: %v", err)
	}
	out = asChild(t, "room", filepath.Dir(b.dir))
	if strings.Contains(out, "not kept") || !strings.Contains(b.savedState(), `"new19"`) {
		t.Errorf("with room:\n%s%s", out, b.savedState())
	}
}

// A place where the agent's user may not write, or not even read.
func TestStateNotAllowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	b := newBox(t).keep()
	b.put("a", one(1))
	for dir := b.dir; dir != "/"; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.Mode().Perm()&5 != 5 && strings.HasPrefix(dir, os.TempDir()+"/") {
			must(t, os.Chmod(dir, 0o755)) //nolint:gosec // a test's
		}
	}
	b.start()
	b.look()
	b.stop()
	was := b.savedState()
	b.put("b", one(1))
	out := asChild(t, "nobody", filepath.Dir(b.dir))
	if strings.Count(out, "permission denied") != 1 || b.savedState() != was {
		t.Errorf("told:\n%s", out)
	}
	must(t, os.Chmod(b.state, 0o600))
	if out = asChild(t, "nobody", filepath.Dir(b.dir)); !strings.Contains(out, "saved identities cannot be read") {
		t.Errorf("told:\n%s", out)
	}
	must(t, os.Chmod(b.state, 0o644)) //nolint:gosec // as it was
}

// Without a file nothing is said.
func TestNoState(t *testing.T) {
	b := newBox(t)
	b.put("a", one(1))
	b.start()
	b.look()
	equal(t, "told", strings.Join(b.told(), "\n"), "i : 1 file with 1 metric in "+b.dir)
	b.opts.FileMetrics = exporter.FileMetricsOff
	b.restart()
	b.look()
	equal(t, "told", strings.Join(b.told(), "\n"), "i : 1 file with 1 metric in "+b.dir)
}
