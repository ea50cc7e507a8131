package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"

	"golang.org/x/sys/unix"
)

// killed starts writers with the PROCESS flag and kills them at any moment; their files must go with them.
func killed(a *actor) {
	for n := 0; a.more(); n++ {
		file := fmt.Sprintf("%s%d", a.name, a.rng.IntN(3))
		a.killOne(file)
		a.r.count("writers killed", 1)
		if a.rng.IntN(2) == 0 {
			remove(a.path(file))
		}
	}
	for i := range 3 {
		remove(a.path(fmt.Sprintf("%s%d", a.name, i)))
	}
}

// killOne has a child of this program write a file again and again until it is killed.
func (a *actor) killOne(file string) {
	s := a.state(file)
	tag := a.newTag()
	exe, err := os.Executable()
	if err != nil {
		a.must(err)
		return
	}
	cmd := command(exe, childWriter, a.path(file), strconv.Itoa(int(tag)), strconv.FormatUint(a.rng.Uint64(), 10))
	in, err1 := cmd.StdinPipe() // it ends with us
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		a.must(fmt.Errorf("start a writer: %w, %w", err1, err2))
		return
	}
	defer in.Close() //nolint:errcheck // the writer is dead
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		a.must(err)
	}
	s.was = childContents(tag, cmd.Process.Pid)
	a.did("process %d writes %s (tag %d)", cmd.Process.Pid, file, tag)
	names := s.was.names(file)
	pmid, st := a.c.pmid(names[0])
	if pmid == 0 {
		a.fail(missed, file, "%s is %v (%v)", names[0], pmid, st)
	}
	s.known = pmid.Cluster()
	_, err = io.WriteString(in, "\n")
	a.must(err)
	for range a.rng.IntN(20) {
		if got, st := a.c.pmid(names[0]); got != pmid {
			a.fail(wrong, file, "%s was %v and is %v (%v)", names[0], pmid, got, st)
			break
		}
	}
	pause(a.rng.IntN(3000))
	a.must(cmd.Process.Kill())
	// Dead, but its parent has not yet asked how it ended.
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR { //nolint:revive // again
	}
	a.did("killed")
	if a.rng.IntN(2) == 0 {
		_ = cmd.Wait()
		a.did("reaped")
	}
	a.expectNothing(file)
	_ = cmd.Wait()
	a.expectNothing(file)
}

// childWriter is the first argument of this program as a writer to be killed.
const childWriter = "writer"

// childContents is what such a writer begins with.
func childContents(tag uint32, pid int) *contents {
	c := &contents{tag: tag, mark: 1, version: 1, gen: 1, pid: int32(pid), flags: mmvimage.Process, insts: []int32{2, 0, 40}}
	for item := range uint32(14) {
		c.addItem(item%7 + item/7*eachFrom)
	}
	return c
}

// writeUntilKilled is the child: it says when its file is there, and when it is told to, writes it anew in place until its
// standard input ends.
func writeUntilKilled(args []string) error {
	path := args[0]
	tag, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // chance, not secrets
	c := childContents(uint32(tag), os.Getpid())
	if err := mmvimage.Write(path, c.image().Build()); err != nil {
		return err
	}
	if _, err := unix.Write(1, []byte("ready\n")); err != nil {
		return err
	}
	orders := bufio.NewReader(os.Stdin)
	if _, err := orders.ReadString('\n'); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, orders)
		os.Exit(0)
	}()
	var last *opening
	for {
		last.close()
		c = c.shuffled(rng, c.mark+1)
		w := rewriting{rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0}
		image := c.image().Build()
		f, err := w.begin(path, image)
		if err != nil {
			return err
		}
		if err := f.complete(); err != nil {
			return err
		}
		last = f
		time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
	}
}

// library runs the program of the tests that uses PCP's own library, and kills it.
func library(bin string) func(*actor) {
	return func(a *actor) {
		for a.more() {
			a.useLibrary(bin, fmt.Sprintf("%s%d", a.name, a.rng.IntN(3)))
			a.r.count("programs with libpcp_mmv", 1)
		}
		for i := range 3 {
			remove(a.path(fmt.Sprintf("%s%d", a.name, i)))
		}
	}
}

func (a *actor) useLibrary(bin, file string) {
	version, cluster := 1+a.rng.IntN(3), []string{"0", "300", "301"}[a.rng.IntN(3)]
	cmd := command(bin, strconv.Itoa(version), file, cluster, strconv.Itoa(int(mmvimage.Process)))
	cmd.Env = append(cmd.Env, "PCP_TMP_DIR="+a.dir+"/tmp")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		a.must(fmt.Errorf("start %s: %w, %w", bin, err1, err2))
		return
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		a.must(err)
	}
	a.did("program %d with the library has written %s, version %d, cluster %s", cmd.Process.Pid, file, version, cluster)
	name := "mmv." + file + ".count"
	pmid, st := a.c.pmid(name)
	if pmid == 0 {
		a.fail(missed, file, "%s is %v (%v)", name, pmid, st)
	}
	for n := range uint64(a.rng.IntN(20)) {
		_, _ = io.WriteString(in, "\n")
		_, _ = lines.ReadString('\n')
		sets := a.c.fetch([]pcpwire.PMID{pmid})
		if sets == nil {
			break
		}
		if sets[0].NumVal != 1 {
			a.fail(missed, file, "%v has %d values", pmid, sets[0].NumVal)
		} else if v, err := sets[0].Values[0].Extract(sets[0].Format, pcpwire.TypeU64); err != nil || v.Bits != n+1 {
			a.fail(wrong, file, "%v is %d (%v), not %d", pmid, v.Bits, err, n+1)
		}
	}
	kill(cmd)
	a.did("killed")
	if pmid, st := a.c.pmid(name); pmid != 0 {
		a.fail(wrong, file, "%s of a dead program is %v (%v)", name, pmid, st)
	}
	_ = in.Close()
}

// kill ends a program at once, and waits for its end.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
