package exporter_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"pmdammv/pkg/exporter"
	"pmdammv/test/mmvimage"
)

// TestDay has a program with a name of its own come and go every 15 seconds of
// a day, beside ten that stay: what that takes must not grow once as many names
// are known as are kept.
func TestDay(t *testing.T) {
	const warm, day = 16384 + 16, 24 * 60 * 60 / 15
	programs := warm + day
	if raceEnabled {
		t.Skip("memory of the race detector's own would be counted")
	}
	b := newBox(t, func(o *exporter.Options) { o.Event = func(exporter.Event) {} })
	file := func(i int) *mmvimage.Image {
		insts := []mmvimage.Inst{{ID: 1, Name: fmt.Sprintf("worker %d", i)}, {ID: 2, Name: "main"}}
		return mmvimage.New(int32(1+i%3)).InDom(1, "workers", "", insts...).Metric(many("jobs", 1, 1, int64(i), 2)).Metric(metric("done", 2, int64(i)))
	}
	for i := range 10 {
		b.put(fmt.Sprintf("service%d", i), file(i))
	}
	b.start()
	used := func() (heap uint64, fds int) {
		runtime.GC()
		runtime.GC() // what has finalizers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return m.HeapAlloc, len(list)
	}
	var heap uint64
	var fds int
	for i := range programs {
		if i == warm {
			heap, fds = used()
		}
		name := fmt.Sprintf("app%d", i)
		b.put(name, file(i))
		if i%100 == 0 {
			equal(t, "value", b.all(nil, "mmv."+name+".done"), strconv.Itoa(i))
		} else {
			b.look()
		}
		b.remove(name)
		b.look()
	}
	nowHeap, nowFDs := used()
	t.Logf("%d bytes and %d descriptors after %d programs, %d and %d after %d", heap, fds, warm, nowHeap, nowFDs, programs)
	// A list of who has been absent longest comes and goes.
	if nowHeap > heap+heap/5 || nowFDs > fds {
		t.Errorf("%d bytes and %d descriptors after %d programs, %d and %d after %d", heap, fds, warm, nowHeap, nowFDs, programs)
	}
	if got := len(b.names()); got != 20 {
		t.Errorf("%d names at the end", got)
	}
}
