package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"pmdammv/test/mmvimage"
)

// together is the stage on which all writers work on one directory for that long.
func (t *torture) together(ctx context.Context, base, name string, d time.Duration) error {
	s, err := t.newStage(ctx, base, name)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.play(d); err != nil {
		return err
	}
	return s.result()
}

func (s *stage) play(d time.Duration) error {
	acts, err := s.cast()
	if err != nil {
		return err
	}
	pipe, err := s.newAgent("pipe", false, nil, "-U", strconv.Itoa(os.Getuid()))
	if err != nil {
		return err
	}
	s.agents = append(s.agents, pipe)
	sock, err := s.newAgent("socket", true, nil)
	if err != nil {
		return err
	}
	s.agents = append(s.agents, sock)
	if s.pmcd, err = startPMCD(s); err != nil {
		return err
	}
	c, err := connect(pipe)
	if err != nil {
		return err
	}
	acts = append(acts, act{"flood", flood, c})
	s.counter.Go(s.count)

	measured := []*agent{pipe, sock, s.pmcd.agent}
	s.run(d/4, sock, 0, acts)
	if err := s.rest(c, sock, measured, true); err != nil {
		return err
	}
	s.run(d-d/4, sock, 1, acts)
	if err := s.rest(c, sock, measured, false); err != nil || s.ctx.Err() != nil {
		return err
	}
	if err := s.again(pipe, c); err != nil {
		return err
	}
	return s.pmcd.finish()
}

// again kills an agent and starts it once more: all numbers must be what they were.
func (s *stage) again(old *agent, c *client) error {
	a := &actor{stage: s, ctx: s.ctx, name: "again", c: c}
	all := s.watchers(a)
	old.stopping.Store(true)
	_ = syscall.Kill(old.pid, syscall.SIGKILL)
	<-old.done
	next, err := s.newAgent("pipe", false, nil, "-U", strconv.Itoa(os.Getuid()))
	if err != nil {
		return err
	}
	s.agents = append(s.agents, next)
	if a.c, err = connect(next); err != nil {
		return err
	}
	for _, k := range all {
		if p := k.find(a.c); p != "" {
			a.fail(wrong, k.file, "after a restart: %s", p)
		}
	}
	return nil
}

// cast makes the watched files, and says who is to do what.
func (s *stage) cast() ([]act, error) {
	for k := range 8 {
		st, err := newSteady(s, k)
		if err != nil {
			return nil, err
		}
		s.steady = append(s.steady, st)
		s.watched = append(s.watched, st.watched)
	}
	acts := []act{
		{"churn", churn, nil},
		{"busy", churn, nil},
		{"corrupt", corrupt, nil},
		{"killed", killed, nil},
		{"pidnames", pidNames, nil},
		{"thousand", thousand, nil},
		{"overflow", overflow, nil},
		{"through", throughPMCD, nil},
	}
	if s.library != "" {
		acts = append(acts, act{"library", library(s.library), nil})
	}
	for name, write := range rewriters() {
		w, err := newRewritten(s, name)
		if err != nil {
			return nil, err
		}
		s.watched = append(s.watched, w)
		acts = append(acts, act{name, rewrites(w, write), nil})
	}
	slices.SortFunc(s.watched, func(a, b watched) int { return int(a.c.tag) - int(b.c.tag) })
	return acts, nil
}

// rest lets the agents come to rest with the watched files alone, and measures them: for later, or against then.
func (s *stage) rest(c *client, sock *agent, agents []*agent, first bool) error {
	if s.ctx.Err() != nil {
		return nil
	}
	if err := s.tidy(); err != nil {
		return err
	}
	sc, err := connect(sock)
	if err != nil {
		return err
	}
	// What could not be let go of while answers were made goes with the next change.
	poke := filepath.Join(s.mmv, "poke")
	for _, image := range [][]byte{mmvimage.New(1).Build(), nil} {
		if image == nil {
			remove(poke)
		} else if err := mmvimage.Write(poke, image); err != nil {
			return err
		}
		c.control(controlFiles)
		sc.control(controlFiles)
		time.Sleep(300 * time.Millisecond) // pmcd's agent has clients enough
	}
	if !first {
		for _, c := range []*client{c, sc} {
			s.faultsOf(c)
		}
	}
	sc.close()
	var wg sync.WaitGroup
	for _, a := range agents {
		wg.Go(func() {
			if err := s.compare(a, first); err != nil && s.ctx.Err() == nil {
				s.fatal(err)
			}
		})
	}
	wg.Wait()
	return nil
}

// compare measures an agent, the least of some times, as its collector and its closed connections take a while.
func (s *stage) compare(a *agent, first bool) error {
	var u usage
	for n := range 10 {
		now, err := a.measure()
		if err != nil {
			return err
		}
		if n == 0 {
			u = now
		}
		u = usage{min(u.memory, now.memory), min(u.fds, now.fds), min(u.maps, now.maps), min(u.files, now.files)}
		time.Sleep(100 * time.Millisecond)
	}
	if first {
		a.usual = u
		s.r.say("%s at rest: %v", a.name, u)
	} else {
		text := fmt.Sprintf("%s: %v, then %v", a.name, a.usual, u)
		if d := time.Duration(a.slowest.Load()); d > 0 {
			text += fmt.Sprintf("; slowest answer %v", d.Round(time.Millisecond))
		}
		s.r.remember("%s", text)
	}
	if u.files != len(s.watched) {
		s.r.fail(growth, "%s has %d mappings of %d files", a.name, u.files, len(s.watched))
	}
	if first {
		return nil
	}
	room := 10 << 10
	if s.opts.racy {
		room = 96 << 10
	}
	switch {
	case u.memory > a.usual.memory+room:
		s.r.fail(growth, "%s: memory grew from %d to %d kB", a.name, a.usual.memory, u.memory)
	case u.fds > a.usual.fds:
		s.r.fail(growth, "%s: descriptors grew from %d to %d", a.name, a.usual.fds, u.fds)
	case u.maps > a.usual.maps+50:
		s.r.fail(growth, "%s: mappings grew from %d to %d", a.name, a.usual.maps, u.maps)
	}
	return nil
}
