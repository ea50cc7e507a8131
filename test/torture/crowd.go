package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// plain is a file with one metric, as small as can be; the agent chooses its cluster.
func (a *actor) plain() *contents {
	return &contents{tag: a.newTag(), mark: a.newMark(), version: 1, gen: 1, pid: 1, items: []uint32{7 * a.rng.Uint32N(70)}}
}

// pidNames has 5000 files one after another, called after processes that are never seen again: more than there are
// clusters.
func pidNames(a *actor) {
	for n := 0; n < 5000 && a.more(); n++ {
		file := fmt.Sprintf("program_%d", 10000+a.pids.Add(1))
		c := a.plain()
		a.did("file %d, %s", n, file)
		if n%2 == 0 {
			a.publish(file, c)
		} else {
			a.rewrite(file, c)
		}
		a.must(os.Remove(a.path(file)))
		if n%10 == 0 {
			a.expectGone(file)
		}
		delete(a.files, file)
		a.r.count("files named after pids", 1)
	}
}

// thousand truncates 500 of 1000 files between two requests, again and again.
func thousand(a *actor) {
	const all = 1000
	file := func(i int) string { return fmt.Sprintf("%s%03d", a.name, i) }
	cs := make([]*contents, all)
	pmids := make([]pcpwire.PMID, all)
	for i := 0; i < all && a.more(); i++ {
		cs[i] = a.plain()
		a.must(mmvimage.Write(a.path(file(i)), cs[i].image().Build()))
	}
	defer func() {
		for i := range all {
			remove(a.path(file(i)))
		}
	}()
	for round := 0; a.more() && round < 5; round++ {
		a.did("round %d", round)
		for i := range all {
			name := cs[i].names(file(i))[0]
			pmid, st := a.c.pmid(name)
			if pmid == 0 {
				a.fail(missed, file(i), "%s is %v (%v)", name, pmid, st)
				return
			}
			pmids[i] = pmid
		}
		a.matchAll(file, cs, pmids, nil)
		cut := map[int]bool{}
		for _, i := range a.rng.Perm(all)[:all/2] {
			at := cs[i].image().Layout()
			size := []uint64{0, at.Values, at.Size - 1 - a.rng.Uint64N(mmvimage.ValueSize-1)}[a.rng.IntN(3)]
			a.must(os.Truncate(a.path(file(i)), int64(size)))
			cut[i] = true
		}
		start := time.Now()
		a.matchAll(file, cs, pmids, cut)
		if a.c.a.sock == "" { // alone, as pmcd is
			most(&a.r.cut, time.Since(start))
		}
		a.r.count("500 of 1000 truncated", 1)
		for i := range all {
			switch {
			case !cut[i]:
			case i%2 == 0:
				cs[i] = a.twin(cs[i])
				a.must(mmvimage.Write(a.path(file(i)), cs[i].image().Build()))
			default:
				cs[i] = a.twin(cs[i])
				a.must(os.WriteFile(a.path(file(i)), cs[i].image().Build(), 0o644)) //nolint:gosec // to be read by others
			}
		}
	}
}

// matchAll fetches one metric of each file: those that are cut have no value, all others have theirs.
func (a *actor) matchAll(file func(int) string, cs []*contents, pmids []pcpwire.PMID, cut map[int]bool) {
	sets := a.c.fetch(pmids)
	for i := range sets {
		missing, problem := cs[i].match(&sets[i])
		switch {
		case cut[i] && sets[i].NumVal > 0:
			a.fail(wrong, file(i), "%v has a value although it is cut", sets[i].PMID)
		case !cut[i] && problem != "":
			a.fail(map[bool]string{true: missed, false: wrong}[missing], file(i), "%s", problem)
		}
	}
}

// overflow stops an agent while more happens than its queue of events can hold.
func overflow(a *actor) {
	limit := 0
	if b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events"); err == nil {
		_, _ = fmt.Sscan(string(b), &limit)
	}
	if limit == 0 || limit > 200000 {
		a.r.remember("not done: overflow of a queue of %d events", limit)
		return
	}
	own, err := a.newAgent("stopped", false, nil)
	if err != nil {
		a.must(err)
		return
	}
	defer own.stop()
	c, err := connect(own)
	if err != nil {
		a.must(err)
		return
	}
	old := a.c
	a.c = c
	defer func() { a.c = old }()
	for round := 0; round < 3 && a.more(); round++ {
		a.overflowOnce(own, limit)
	}
	a.files = nil
	for i := range 40 {
		remove(a.path(fmt.Sprintf("%s%d", a.name, i)))
	}
	a.faultsOf(c)
}

func (a *actor) overflowOnce(own *agent, limit int) {
	file := func(i int) string { return fmt.Sprintf("%s%d", a.name, i) }
	for i := range 40 {
		a.publish(file(i), a.plain())
	}
	a.must(syscall.Kill(own.pid, syscall.SIGSTOP))
	a.did("stopped the agent")
	noise := filepath.Join(a.mmv, ".noise")
	for range limit/3 + 1 { // created, closed, deleted
		f, err := os.Create(noise)
		if err != nil {
			a.must(err)
			break
		}
		_ = f.Close()
		_ = os.Remove(noise)
	}
	a.did("made %d events", 3*(limit/3+1))
	next := make([]*contents, 40)
	for i := range next {
		path, old := a.path(file(i)), a.state(file(i)).c
		c := a.twin(old)
		switch i % 5 {
		case 0:
			c = nil
			a.must(os.Remove(path))
		case 1:
			a.must(mmvimage.Write(path, c.image().Build()))
		case 2:
			a.must(os.WriteFile(path, c.image().Build(), 0o644)) //nolint:gosec // to be read by others
		case 3: // the same generation and size, another metric
			c.items = []uint32{(old.items[0] + 7) % 490}
			a.must(os.WriteFile(path, c.image().Build(), 0o644)) //nolint:gosec // to be read by others
		case 4:
			c = old
		}
		next[i] = c
	}
	a.must(syscall.Kill(own.pid, syscall.SIGCONT))
	a.did("changed 32 of 40 files and let it go on")
	for i, c := range next {
		if c == nil {
			a.expectGone(file(i))
		} else {
			a.expect(file(i), c)
		}
	}
	a.r.count("event queues overflowed", 1)
}
