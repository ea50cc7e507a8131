package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of failure.
const (
	wrong  = "wrong answers"
	missed = "missed files"
	death  = "deaths"
	slow   = "slow answers"
	growth = "growth"
)

// tooSlow is when pmcd gives an agent up. The race detector makes it many times slower than it is.
const (
	tooSlow     = 5 * time.Second
	tooSlowRacy = 20 * time.Second
)

// report counts, and prints what goes wrong.
type report struct {
	out       io.Writer
	began     time.Time
	requests  atomic.Int64
	rewritten atomic.Int64 // fetches of files that are being rewritten
	looped    atomic.Int64 // of one that is truncated, extended and filled all the time
	faults    atomic.Int64
	slowest   atomic.Int64
	tooSlow   time.Duration
	self      *starvation
	cut       atomic.Int64 // slowest answer after the truncation of 500 of 1000 files

	mu       sync.Mutex
	failures map[string]int
	done     map[string]int // changes by kind of writer
	lines    []string       // what is to be said at the end
	first    []string       // failures
}

func newReport(out io.Writer) *report {
	return &report{out: out, self: newStarvation(os.Getpid(), nil), tooSlow: tooSlow, began: time.Now(), failures: map[string]int{}, done: map[string]int{}}
}

// say prints a line with the time since the start.
func (r *report) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(format, args...)
}

func (r *report) print(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, "%8.3fs %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// fail counts a failure and prints it, unless there were many of its kind.
func (r *report) fail(kind, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[kind]++
	switch n := r.failures[kind]; {
	case n < 20:
		r.print("FAILED, "+kind+": "+format, args...)
		if len(r.first) < repeated {
			r.first = append(r.first, kind+": "+fmt.Sprintf(format, args...))
		}
	case n == 20:
		r.print("more %s are only counted", kind)
	}
}

func (r *report) count(what string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[what] += n
}

// remember keeps a line for the end.
func (r *report) remember(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
	r.print(format, args...)
}

// most keeps the larger in v.
func most(v *atomic.Int64, d time.Duration) {
	for old := v.Load(); int64(d) > old; old = v.Load() {
		if v.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

// repeated is how many failures are said again at the end: of a long output it is what is looked at.
const repeated = 5

// finish prints the result and says whether all was well.
func (r *report) finish(head string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format+"\n", args...) }
	p("")
	p("%s, %v", head, time.Since(r.began).Round(time.Second))
	for _, l := range r.lines {
		p("  %s", l)
	}
	for _, k := range slices.Sorted(maps.Keys(r.done)) {
		p("  %-28s %d", k, r.done[k])
	}
	p("requests                       %d", r.requests.Load())
	p("  of files being rewritten     %d", r.rewritten.Load())
	p("  of the looping writer        %d", r.looped.Load())
	p("faults caught                  %d", r.faults.Load())
	p("slowest answer                 %v", time.Duration(r.slowest.Load()).Round(time.Microsecond))
	p("  500 of 1000 files truncated  %v", time.Duration(r.cut.Load()).Round(time.Microsecond))
	bad := 0
	for _, k := range []string{wrong, missed, death, slow, growth} {
		p("%-30s %d", k, r.failures[k])
		bad += r.failures[k]
	}
	for _, f := range r.first {
		p("  %s", f)
	}
	return bad == 0
}
