package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"

	"golang.org/x/sys/unix"
)

// watched is a file that is there all the time, as clients know it.
type watched struct {
	file string
	c    *contents
	// live says that its values count up one by one and are always there. Else the whole file is written anew again and
	// again: all values of one answer have one mark, or there are none.
	live bool
	flux *flux // of one that is not live
}

// flux is when a file is being written: after five seconds its names may go.
type flux struct {
	mu    sync.Mutex
	begun time.Time      // zero: it is complete
	slow  [][2]time.Time // when it took too long, from and to
}

const longFlux = 3 * time.Second

func (f *flux) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = time.Now()
}

func (f *flux) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.begun) > longFlux {
		f.slow = append(f.slow, [2]time.Time{f.begun, now})
	}
	f.begun = time.Time{}
}

// long tells whether the file was then, or had been a moment before, being written for too long.
func (f *flux) long(at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.begun.IsZero() && at.Sub(f.begun) > longFlux {
		return true
	}
	return slices.ContainsFunc(f.slow, func(s [2]time.Time) bool {
		return at.Sub(s[0]) > longFlux && at.Sub(s[1]) < longFlux
	})
}

// steady is a file whose values are counted up.
type steady struct {
	watched
	mem   []byte
	slots []slot
	n     uint32
}

// slot is where a value lies.
type slot struct {
	off uint64
	typ int32
	id  uint32
}

// newSteady makes the k-th steady file, complete when it appears.
func newSteady(s *stage, k int) (*steady, error) {
	rng := s.rand(fmt.Sprint("steady", k))
	c := &contents{tag: s.newTag(), version: int32(1 + k%3), gen: 1 + uint64(k), pid: int32(os.Getpid()), texts: k%2 == 0}
	c.flags = []int32{0, mmvimage.Process, mmvimage.Sentinel}[k%3]
	c.gap = []int{0, 0, 0, 4, 3}[k%5]
	if k%2 == 1 {
		c.cluster = int32(20 + k)
	}
	for item := range uint32(14) {
		c.addItem(item%7 + item/7*eachFrom + 7*uint32(k))
	}
	c.setInsts(5, rng)
	st := &steady{watched: watched{file: fmt.Sprintf("%csteady%d", "az"[k%2], k), c: c, live: true}}
	return st, st.publish(s.mmv)
}

func (st *steady) publish(dir string) error {
	img := st.c.image()
	at := img.Layout()
	path := filepath.Join(dir, st.file)
	if err := mmvimage.Write(path, img.Build()); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only mapped
	if st.mem, err = unix.Mmap(int(f.Fd()), 0, int(at.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	k := 0
	for _, item := range st.c.items {
		for _, inst := range st.c.instances(item) {
			st.slots = append(st.slots, slot{at.Value(k) + mmvimage.ValueBits, kindOf(item), identity(st.c.tag, item, inst)})
			k++
		}
	}
	return nil
}

// step counts all values up, each with one store that a reader cannot see half of: slots that are not aligned do not
// count.
func (st *steady) step() {
	st.n++
	for _, s := range st.slots {
		bits := number(s.typ, s.id, st.n)
		switch {
		case s.typ == mmvimage.String || s.off%4 != 0:
		case markBits(s.typ) < math.MaxUint16+1:
			binary.NativeEndian.PutUint32(st.mem[s.off:], uint32(bits))
		case s.off%8 == 0:
			binary.NativeEndian.PutUint64(st.mem[s.off:], bits)
		case s.typ != mmvimage.Double: // the half that counts
			binary.NativeEndian.PutUint32(st.mem[s.off+lowHalf():], uint32(bits))
		}
	}
}

// lowHalf is where the low half of 8 bytes lies.
func lowHalf() uint64 {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return 0
	}
	return 4
}

func (st *steady) close() {
	if st.mem != nil {
		_ = unix.Munmap(st.mem)
		st.mem = nil
	}
}

// count counts up until the stage ends.
func (s *stage) count() {
	t := time.NewTicker(500 * time.Microsecond)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
			for _, st := range s.steady {
				st.step()
			}
		}
	}
}

// watcher checks a watched file's values from one answer to the next.
type watcher struct {
	watched
	pmids []pcpwire.PMID
	indom pcpwire.InDom
	last  map[uint32]uint32 // mark by identity
}

// find looks the metrics up: their numbers never change. The problem is "" when all is well.
func (w *watcher) find(c *client) string {
	for i, name := range w.c.names(w.file) {
		pmid, st := c.pmid(name)
		switch {
		case c.err != nil:
			return ""
		case pmid == 0 && !w.live && w.flux.long(time.Now()):
			return ""
		case pmid == 0 || pmid.Item() != w.c.items[i]:
			return fmt.Sprintf("%s is %v (%v)", name, pmid, st)
		case len(w.pmids) == i:
			w.pmids = append(w.pmids, pmid)
		case w.pmids[i] != pmid:
			return fmt.Sprintf("%s was %v and is %v", name, w.pmids[i], pmid)
		}
		if pmid.Item() >= eachFrom {
			if d := c.desc(pmid); d != nil {
				w.indom = d.InDom
			}
		}
	}
	return ""
}

// checkInstances says what is wrong with the instances and their names, "" for nothing. A corrupted file may have joined
// the cluster of one that asks for its own, with others.
func (w *watcher) checkInstances(c *client) string {
	list := c.instances(w.indom)
	own := 0
	for _, in := range list {
		switch mine := slices.Contains(w.c.insts, in.Inst); {
		case mine && string(in.Name) == instanceName(in.Inst):
			own++
		case mine || w.c.cluster == 0:
			return fmt.Sprintf("%v: instance %d is %q", w.indom, in.Inst, in.Name)
		}
	}
	if c.err == nil && own != len(w.c.insts) && (w.live || len(list) > 0) {
		return fmt.Sprintf("%v has %d of %d instances", w.indom, own, len(w.c.insts))
	}
	return ""
}

// watchers are for an actor that watches all watched files.
func (s *stage) watchers(a *actor) []*watcher {
	var all []*watcher
	for _, w := range s.watched {
		k := &watcher{watched: w, last: map[uint32]uint32{}}
		if p := k.find(a.c); p != "" {
			a.fail(missed, w.file, "%s", p)
			continue
		}
		all = append(all, k)
	}
	return all
}

// check says what is wrong with the value sets of all metrics of the file, "" for nothing.
func (w *watcher) check(sets []pcpwire.ValueSet) (problem string) {
	var first, bits uint32 // the mark of the first value that has one
	one := false
	for i := range sets {
		set := &sets[i]
		want := len(w.c.instances(set.PMID.Item()))
		switch {
		case set.NumVal < 0 && !w.live && w.flux.long(time.Now()):
			return ""
		case set.NumVal < 0:
			return fmt.Sprintf("%v is %v", set.PMID, pcpwire.Status(set.NumVal))
		case w.live && int(set.NumVal) != want, set.NumVal > 0 && int(set.NumVal) != want:
			return fmt.Sprintf("%v has %d values, not %d", set.PMID, set.NumVal, want)
		}
		item := set.PMID.Item()
		p := check(w.c.tag, set, func(inst int32, mark, b uint32) {
			switch id := identity(w.c.tag, item, inst); {
			case w.live && b == math.MaxUint32 && mark < w.last[id]:
				problem = fmt.Sprintf("%v instance %d was %d and is %d", set.PMID, inst, w.last[id], mark)
			case w.live:
				w.last[id] = mark
			case !one:
				first, bits, one = mark, b, true
			case mark&bits&b != first&bits&b:
				problem = fmt.Sprintf("one answer has contents %d and (%v instance %d) %d", first, set.PMID, inst, mark)
			case b > bits:
				first, bits = mark, b
			}
		})
		if p != "" {
			return p
		}
		if problem != "" {
			return problem
		}
	}
	if one && bits == math.MaxUint32 {
		if first < w.last[0] {
			return fmt.Sprintf("contents %d after %d", first, w.last[0])
		}
		w.last[0] = first
	}
	return ""
}
