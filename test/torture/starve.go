package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// starvation notes how long a process has to wait for a processor, so that a busy machine is not taken for a slow agent.
type starvation struct {
	pid int

	mu      sync.Mutex
	samples []sample // by time
}

type sample struct {
	at     time.Time
	waited time.Duration
}

// newStarvation watches the process until stop is closed.
func newStarvation(pid int, stop <-chan struct{}) *starvation {
	s := &starvation{pid: pid, samples: []sample{{time.Now(), 0}}}
	go func() {
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				s.take()
			}
		}
	}()
	return s
}

// take measures now: the sum over all threads, where the kernel tells.
func (s *starvation) take() time.Duration {
	var sum time.Duration
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(s.pid) + "/task/*/schedstat")
	for _, f := range tasks {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // that thread has ended
		}
		var ran, waited time.Duration
		if _, err := fmt.Sscan(string(b), &ran, &waited); err == nil {
			sum += waited
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, sample{time.Now(), sum})
	if len(s.samples) > 1000 {
		s.samples = s.samples[500:]
	}
	return sum
}

// since is how long the process has waited since then.
func (s *starvation) since(start time.Time) time.Duration {
	now := s.take()
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.samples[0].waited
	for _, p := range s.samples {
		if p.at.After(start) {
			break
		}
		was = p.waited
	}
	return max(now-was, 0)
}

// starving tells whether that an answer has not come since then may be for want of a processor.
func (a *agent) starving(start time.Time) bool {
	return time.Since(start)-a.waited(start) < hung && time.Since(start) < 10*hung
}

// waited is how long the agent and this program have waited for a processor since then.
func (a *agent) waited(start time.Time) time.Duration {
	d := a.r.self.since(start)
	if a.starved != nil {
		d += a.starved.since(start)
	}
	return d
}

// late judges an answer that took that long until now.
func (r *report) late(a *agent, d time.Duration, request string) {
	if d <= r.tooSlow {
		return
	}
	waited := a.waited(time.Now().Add(-d))
	if d-waited > r.tooSlow {
		r.fail(slow, "%s answers %.200s after %v (%v without a processor)", a.name, request, d, waited)
		return
	}
	r.count("late for want of a processor", 1)
	r.say("%s answers %.60s after %v, %v of them without a processor", a.name, request, d, waited)
}
