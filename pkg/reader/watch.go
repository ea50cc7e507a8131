package reader

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch calls changed after the directory has changed and been quiet for that
// long, or for ten times as long has not been quiet, until ctx ends. It is there
// so that work is done before somebody asks; nothing correct may rest on it.
// While the directory does not exist, its parent is watched for it. Nothing
// runs while nothing changes. It returns at once, with an error, where the
// system has no more watches.
func Watch(ctx context.Context, dir string, quiet time.Duration, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := add(w, dir); err != nil {
		_ = w.Close()
		return err
	}
	go func() {
		defer func() { _ = w.Close() }()
		watch(ctx, w, dir, quiet, changed)
	}()
	return nil
}

// add watches dir, or its parent while it does not exist.
func add(w *fsnotify.Watcher, dir string) error {
	parent := filepath.Dir(dir)
	if w.Add(dir) == nil {
		_ = w.Remove(parent)
		return nil
	}
	if err := w.Add(parent); err != nil {
		return err
	}
	if w.Add(dir) == nil { // it came between the two
		_ = w.Remove(parent)
	}
	return nil
}

func watch(ctx context.Context, w *fsnotify.Watcher, dir string, quiet time.Duration, changed func()) {
	timer := time.NewTimer(quiet)
	timer.Stop()
	var first time.Time // of the events not yet told, zero: none
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-w.Events:
			if !ok {
				return
			}
			if ev.Name != dir && filepath.Dir(ev.Name) != dir {
				continue // beside the directory
			}
			if ev.Name == dir {
				_ = add(w, dir) // without one, requests still look
			}
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			if now.Sub(first) < 10*quiet {
				timer.Reset(quiet)
			}
		case _, ok := <-w.Errors: // events were lost
			if !ok {
				return
			}
			first = time.Now()
			timer.Reset(quiet)
		case <-timer.C:
			first = time.Time{}
			changed()
		}
	}
}
