package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Watch calls changed after the directory has changed and been quiet for that
// long, or for ten times as long has not been quiet, until ctx ends. It is there
// so that work is done before somebody asks; nothing correct may rest on it.
// While the directory does not exist, or cannot be read, the nearest one above
// it is watched for it. Nothing runs while nothing changes. It returns at once,
// with an error where the system has no more watches.
func Watch(ctx context.Context, dir string, quiet time.Duration, changed func()) error {
	dir = filepath.Clean(dir)
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	if err := follow(w, dir); err != nil {
		_ = w.Close()
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	go func() {
		defer func() { _ = w.Close() }()
		watch(ctx, w, dir, quiet, changed)
	}()
	return nil
}

// follow watches dir, or the nearest directory above it that can be, and only
// that.
func follow(w *fsnotify.Watcher, dir string) error {
	at := dir
	for {
		err := w.Add(at)
		if err == nil {
			break
		}
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR)
		if up := filepath.Dir(at); up != at && missing {
			at = up
			continue
		}
		return err
	}
	if at != dir && w.Add(dir) == nil { // it came between the two
		at = dir
	}
	for _, other := range w.WatchList() {
		if other != at {
			_ = w.Remove(other)
		}
	}
	return nil
}

func watch(ctx context.Context, w *fsnotify.Watcher, dir string, quiet time.Duration, changed func()) {
	timer := time.NewTimer(quiet)
	timer.Stop()
	defer timer.Stop()
	var first time.Time // of the events not yet told, zero: none
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-w.Events:
			switch {
			case !ok:
				return
			case ev.Name == dir || strings.HasPrefix(dir, strings.TrimSuffix(ev.Name, "/")+"/"):
				_ = follow(w, dir) // without one, requests still look
			case filepath.Dir(ev.Name) != dir:
				continue // beside the way to it
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
