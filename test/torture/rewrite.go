package main

import (
	"context"
	"maps"
	"os"
	"strings"
	"time"

	"pmdammv/test/mmvimage"
)

// rewriters write one file anew all the time. Clients watch these files: their names must never go, and no answer may
// mix what a file held at different times.
func rewriters() map[string]func(a *actor, c *contents) error {
	place := func(w rewriting) func(*actor, *contents) error {
		var last *opening
		return func(a *actor, c *contents) error {
			last.close()
			f, err := w.begin(a.path(a.name), c.image().Build())
			if last = f; err != nil {
				return err
			}
			if a.rng.IntN(4) == 0 {
				pause(a.rng.IntN(300))
			}
			return f.complete()
		}
	}
	mapped := place(rewriting{mapped: true, last: true})
	same := []func(*actor, *contents) error{place(rewriting{}), place(rewriting{truncate: true})}
	return map[string]func(*actor, *contents) error{
		"looper": place(rewriting{truncate: true, mapped: true, last: true}),
		"mapper": func(a *actor, c *contents) error { // the same size, so that no event tells of anything
			c.gap = 0
			return mapped(a, c)
		},
		"writer":   place(rewriting{}),
		"republic": place(rewriting{truncate: true, last: true}),
		"sametime": func(a *actor, c *contents) error { // the same generation, which is often a time in seconds
			c.gen = 7
			return same[a.rng.IntN(2)](a, c)
		},
		"renamer": func(a *actor, c *contents) error { return mmvimage.Write(a.path(a.name), c.image().Build()) },
	}
}

// largeRewriters write files of so many values that the agent reads them in parts, and what refers to values when one is
// asked for.
func largeRewriters() map[string]func(a *actor, c *contents) error {
	w := rewriters()
	ways := []func(a *actor, c *contents) error{w["writer"], w["republic"], w["renamer"]}
	return map[string]func(a *actor, c *contents) error{
		"large":       func(a *actor, c *contents) error { return ways[a.rng.IntN(len(ways))](a, c) },
		"largemapper": w["mapper"],
	}
}

func pause(microseconds int) {
	if microseconds > 0 {
		time.Sleep(time.Duration(microseconds) * time.Microsecond)
	}
}

// newRewritten makes the file of a rewriter for the first time.
func newRewritten(s *stage, name string) (watched, error) {
	rng := s.rand(name)
	c := &contents{tag: s.newTag(), mark: s.newMark(), version: 1 + rng.Int32N(3), gen: 1, pid: 1}
	for item := range uint32(14) {
		c.addItem(item%7 + item/7*eachFrom + 7*rng.Uint32N(60))
	}
	c.setInsts(3, rng)
	if strings.HasPrefix(name, "large") {
		for item := range uint32(80) {
			c.addItem(eachFrom + item)
		}
		c.setInsts(55, rng)
	}
	return watched{file: name, c: c, flux: &flux{}}, mmvimage.Write(s.mmv+"/"+name, c.image().Build())
}

// rewrites lets a rewriter work, and asks now and then, if its client has an agent to ask.
func rewrites(w watched, write func(*actor, *contents) error) func(*actor) {
	c := w.c // also for the next time
	return func(a *actor) {
		n := 0
		for a.more() {
			n++
			c = c.shuffled(a.rng, a.newMark())
			a.did("contents %d (generation %d), items %v", c.mark, c.gen, c.items)
			w.flux.begin()
			err := write(a, c)
			w.flux.end()
			if err != nil {
				a.must(err)
				return
			}
			if n%20 == 0 && a.c.a != nil {
				a.expect(w.file, c)
				pause(a.rng.IntN(3000))
			}
			if a.c.a != nil {
				pause(a.rng.IntN(2000)) // there are others
			}
		}
		a.r.count("rewritten: "+w.file, n)
	}
}

// flood asks the agent on the pipe as fast as it can, mostly for the files that are being rewritten.
func flood(a *actor) {
	all := a.watchers(a)
	for n := 0; a.more(); n++ {
		k := all[a.rng.IntN(len(all))]
		switch {
		case n%50 == 0:
			a.askAll(all)
		case n%50 == 2:
			if p := k.checkInstances(a.c); p != "" {
				a.fail(wrong, k.file, "%s", p)
			}
		case n%500 == 1:
			if p := k.find(a.c); p != "" {
				a.fail(wrong, k.file, "%s", p)
			}
		default:
			if k.live && n%8 != 0 {
				continue
			}
			if p := k.check(a.c.fetch(k.pmids)); p != "" {
				a.fail(wrong, k.file, "%s", p)
			}
			if !k.live {
				a.r.rewritten.Add(1)
			}
			if k.file == "looper" {
				a.r.looped.Add(1)
			}
		}
	}
}

// askAll fetches everything at once.
func (a *actor) askAll(all []*watcher) {
	pmids := all[0].pmids[:0:0]
	for _, k := range all {
		pmids = append(pmids, k.pmids...)
	}
	sets := a.c.fetch(pmids)
	for _, k := range all {
		if sets == nil {
			return
		}
		if p := k.check(sets[:len(k.pmids)]); p != "" {
			a.fail(wrong, k.file, "among all: %s", p)
		}
		sets = sets[len(k.pmids):]
	}
}

// rewriting is the stage on which one file at a time is rewritten as fast as can be, under as many reads as can be.
func (t *torture) rewriting(ctx context.Context, base string) func(string, time.Duration) error {
	return func(name string, d time.Duration) error {
		s, err := t.newStage(ctx, base, name)
		if err != nil {
			return err
		}
		defer s.close()
		if err := s.rewriteInTurn(d); err != nil {
			return err
		}
		return s.result()
	}
}

func (s *stage) rewriteInTurn(d time.Duration) error {
	for k := range 2 {
		st, err := newSteady(s, k)
		if err != nil {
			return err
		}
		s.steady = append(s.steady, st)
		s.watched = append(s.watched, st.watched)
	}
	s.counter.Go(s.count)
	a, err := s.newAgent("pipe", false, nil)
	if err != nil {
		return err
	}
	s.agents = append(s.agents, a)
	c, err := connect(a)
	if err != nil {
		return err
	}
	all, always := rewriters(), s.watched
	maps.Copy(all, largeRewriters())
	for name, write := range all {
		w, err := newRewritten(s, name)
		if err != nil {
			return err
		}
		s.watched = append(always[:2:2], w)
		c.control(controlFiles) // from now on the agent knows it
		share := d / time.Duration(3*(len(all)-1))
		if name == "looper" {
			share = 2 * d / 3
		}
		s.run(share, nil, 0, []act{{name, rewrites(w, write), &client{}}, {"flood", flood, c}})
	}
	s.faultsOf(c)
	return nil
}

// remove takes away what is at a path, if anything is.
func remove(path string) { _ = os.RemoveAll(path) }
