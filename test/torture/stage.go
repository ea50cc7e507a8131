package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// torture is a whole run.
type torture struct {
	r       *report
	opts    options
	library string // the program that uses libpcp_mmv, "" for none
	tags    atomic.Uint32
	marks   atomic.Uint32
	pids    atomic.Int64
}

// newTag is a number for a file, of 15 bits and never 0; after long it comes again.
func (t *torture) newTag() uint32 { return 1 + t.tags.Add(1)%(1<<15-1) }

func (t *torture) newMark() uint32 { return t.marks.Add(1) }

// stage is one directory with its agents.
type stage struct {
	*torture
	name, dir, mmv string

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	err    error // why it cannot go on

	agents  []*agent
	pmcd    *pmcd
	steady  []*steady
	watched []watched
	counter sync.WaitGroup
}

// newStage makes a directory below base.
func (t *torture) newStage(ctx context.Context, base, name string) (*stage, error) {
	dir, err := os.MkdirTemp(base, "torture.")
	if err != nil {
		return nil, err
	}
	s := &stage{torture: t, name: name, dir: dir, mmv: filepath.Join(dir, "tmp", "mmv")}
	s.ctx, s.cancel = context.WithCancel(ctx)
	t.r.say("%s in %s", name, dir)
	for _, d := range []string{dir, s.mmv, filepath.Join(dir, "elsewhere")} {
		if err := mkdir(d, 0o755); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// fatal ends the stage because the machine, not the agent, does not do its part.
func (s *stage) fatal(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.cancel()
}

// rand gives an actor its own chance, the same for the same seed.
func (s *stage) rand(name string) *rand.Rand {
	h := fnv.New64()
	_, _ = h.Write([]byte(s.name + name))
	return rand.New(rand.NewPCG(uint64(s.opts.seed), h.Sum64())) //nolint:gosec // chance, not secrets
}

// newAgent starts an agent on the stage's directory.
func (s *stage) newAgent(name string, socket bool, wrap func(*exec.Cmd) error, options ...string) (*agent, error) {
	a, err := startAgent(s.r, s.cancel, s.dir, name, socket, wrap, s.opts.agent, options...)
	if err != nil {
		return nil, err
	}
	a.name = s.name + "/" + name
	return a, nil
}

// close ends everything and removes the directory.
func (s *stage) close() {
	s.cancel()
	s.counter.Wait()
	s.pmcd.stop()
	for _, a := range s.agents {
		a.stop()
	}
	for _, st := range s.steady {
		st.close()
	}
	if s.opts.keep {
		s.r.say("%s is kept in %s", s.name, s.dir)
		return
	}
	_ = os.Chmod(s.mmv, 0o755) //nolint:gosec // it may have no mode at all
	_ = os.RemoveAll(s.dir)
}

// result is why the stage could not be finished, nil when it was, or was ended from outside.
func (s *stage) result() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// act is what an actor does, with the client that it is to use, nil for one of its own.
type act struct {
	name string
	play func(*actor)
	c    *client
}

// run lets actors work for that long, those that the options ask for.
func (s *stage) run(d time.Duration, sock *agent, round int, acts []act) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range acts {
		if !s.opts.only.MatchString(p.name) {
			continue
		}
		a := &actor{stage: s, ctx: ctx, name: p.name, rng: s.rand(fmt.Sprint(p.name, round)), c: p.c}
		wg.Go(func() {
			if a.c == nil {
				c, err := connect(sock)
				if err != nil {
					a.must(fmt.Errorf("connect to %s: %w", sock.name, err))
					return
				}
				a.c = c
				defer c.close()
			}
			p.play(a)
		})
	}
	wg.Wait()
}

// faultsOf adds the faults that an agent has caught to those of the run.
func (s *stage) faultsOf(c *client) {
	if n := c.control(controlFaults); n > 0 {
		s.r.faults.Add(n)
	}
}

// tidy removes all files but those that are watched.
func (s *stage) tidy() error {
	list, err := os.ReadDir(s.mmv)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, w := range s.watched {
		keep[w.file] = true
	}
	for _, e := range list {
		if !keep[e.Name()] {
			remove(filepath.Join(s.mmv, e.Name()))
		}
	}
	return nil
}
