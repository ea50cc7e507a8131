package main

import (
	"runtime"
	"runtime/debug"
	"time"
)

// The collector runs when there is garbage worth it, not by the clock and not
// as a share of the heap: after a change of the files, when what they were is
// garbage, and when so much has been allocated since then. An idle agent is
// never woken by it.
const (
	collectAfter = 100 * time.Millisecond // a change; others may follow
	leastGarbage = 8 << 20
)

// collector is told of changes.
type collector struct{ timer *time.Timer }

func newCollector() *collector {
	c := &collector{}
	c.timer = time.AfterFunc(time.Hour, collect)
	c.timer.Stop()
	return c
}

// changed has the garbage of a change collected soon.
func (c *collector) changed() { c.timer.Reset(collectAfter) }

// collect collects, gives free memory back, and allows half as much again, or
// leastGarbage, until the next time.
func collect() {
	debug.SetGCPercent(-1)
	debug.FreeOSMemory()
	var s runtime.MemStats // runtime/metrics takes 0.1 ms of a start
	runtime.ReadMemStats(&s)
	used := s.Sys - s.HeapReleased
	debug.SetMemoryLimit(int64(used + max(used/2, leastGarbage)))
}
