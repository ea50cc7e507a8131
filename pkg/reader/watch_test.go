package reader_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
)

// TestWatchQuiet calls after a quiet time, and not never while there is none.
func TestWatchQuiet(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name   string
		events []time.Duration // when they come, since the beginning
		lost   []time.Duration
		beside bool // they are about something else
		want   []time.Duration
	}{
		{name: "none"},
		{name: "one", events: []time.Duration{5 * ms}, want: []time.Duration{15 * ms}},
		{name: "some in a row", events: []time.Duration{0, 9 * ms, 18 * ms, 27 * ms}, want: []time.Duration{37 * ms}},
		{name: "two apart", events: []time.Duration{0, 50 * ms}, want: []time.Duration{10 * ms, 60 * ms}},
		{name: "beside it", events: []time.Duration{0, 50 * ms}, beside: true},
		{name: "lost", lost: []time.Duration{3 * ms}, want: []time.Duration{13 * ms}},
		{
			name:   "never quiet", // told of after ten quiet times, 100 ms, again and again
			events: every(6*ms, 300*ms),
			want:   []time.Duration{106 * ms, 214 * ms, 310 * ms},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}
				begin := time.Now()
				var got []time.Duration
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					reader.WatchEvents(ctx, w, "/d", 10*ms, func() { got = append(got, time.Since(begin)) })
					close(done)
				}()
				name := "/d/file"
				if tt.beside {
					name = "/e/file"
				}
				for _, at := range tt.events {
					time.Sleep(at - time.Since(begin))
					w.Events <- fsnotify.Event{Name: name, Op: fsnotify.Write}
				}
				for _, at := range tt.lost {
					time.Sleep(at - time.Since(begin))
					w.Errors <- fsnotify.ErrEventOverflow
				}
				time.Sleep(time.Second)
				cancel()
				<-done
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

func every(step, end time.Duration) (out []time.Duration) {
	for at := time.Duration(0); at <= end; at += step {
		out = append(out, at)
	}
	return out
}

// TestWatch follows the directory through all that can happen to it.
func TestWatch(t *testing.T) {
	onEach(t, func(t *testing.T, top string) {
		above := filepath.Join(top, "a", "b")
		dir := filepath.Join(above, "mmv")
		var calls atomic.Int64
		opened := openedSince(t)
		ctx, cancel := context.WithCancel(t.Context())
		check0(t, reader.Watch(ctx, dir+"/", time.Millisecond, func() { calls.Add(1) }))
		step := func(what string, do func()) {
			t.Helper()
			before := calls.Load()
			do()
			eventually(t, what, func() bool { return calls.Load() > before })
		}
		step("made, with what is above it", func() { check0(t, os.MkdirAll(dir, 0o755)) })
		// from here on it is watched, whatever came first; a file shows that
		settle := func() {
			t.Helper()
			eventually(t, "its files are watched", func() bool {
				before := calls.Load()
				put(t, dir, "probe", counter("m", 1, 1))
				for range 50 {
					if calls.Load() > before {
						return true
					}
					time.Sleep(time.Millisecond)
				}
				return false
			})
		}
		settle()
		step("a file made", func() { put(t, dir, "x", counter("m", 1, 1)) })
		step("a file written", func() { overwrite(t, filepath.Join(dir, "x"), []byte("y")) })
		step("a file removed", func() { check0(t, os.Remove(filepath.Join(dir, "x"))) })
		step("it removed", func() { check0(t, os.RemoveAll(dir)) })
		step("it made again", func() { check0(t, os.Mkdir(dir, 0o755)) })
		settle()
		step("it renamed", func() { check0(t, os.Rename(dir, dir+".away")) })
		step("it renamed back", func() { check0(t, os.Rename(dir+".away", dir)) })
		settle()
		step("all removed", func() { check0(t, os.RemoveAll(filepath.Join(top, "a"))) })
		step("all made again", func() { check0(t, os.MkdirAll(dir, 0o755)) })
		settle()
		cancel()
		eventually(t, "all is closed", func() bool { return len(opened()) == 0 })
	})
}

// TestWatchEnds with its context; goleak sees whether its goroutines do.
func TestWatchEnds(t *testing.T) {
	opened := openedSince(t)
	ctx, cancel := context.WithCancel(t.Context())
	check0(t, reader.Watch(ctx, t.TempDir(), time.Millisecond, func() {}))
	if len(opened()) == 0 {
		t.Error("nothing is open")
	}
	cancel()
	eventually(t, "all is closed", func() bool { return len(opened()) == 0 })
}

// TestWatchError is told of.
func TestWatchError(t *testing.T) {
	var loop error
	dir := filepath.Join(t.TempDir(), "loop")
	check0(t, os.Symlink("loop", dir))
	if loop = reader.Watch(t.Context(), dir, time.Millisecond, func() {}); loop == nil {
		t.Error("no error")
	}
	if errors.Unwrap(loop) == nil {
		t.Errorf("%v wraps nothing", loop)
	}
}
