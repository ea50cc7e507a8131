package exporter

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// saveDelay is how long the identities wait to be written, for more to come.
	saveDelay = 50 * time.Millisecond
	// lockWait is how long an agent that is about to end is waited for.
	lockWait = 500 * time.Millisecond
)

// keeper keeps the registry in a file, written by a goroutine of its own.
type keeper struct {
	path  string
	dir   string
	event func(Event)
	// content is what is to be in the file, nil: what is. At the last call of
	// all, all that may differ counts.
	content func(last bool) *savedIdentities
	failed  func()   // the last content is not in the file
	lock    *os.File // nil: the file is not to be written
	locked  bool     // by this agent
	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	failing bool
	empty   bool // load found nothing of use
}

// load reads the file at path for dir; what is wrong is told, and what it then
// means: an empty registry. Unless readOnly, the file is locked for the life of
// the agent, later if another one has it now; where it is not to be written to,
// the keeper has no lock.
func (k *keeper) load(readOnly bool) *registry {
	if !readOnly {
		k.acquire()
	}
	data, err := readFile(k.path)
	if err == nil {
		var r *registry
		if r, err = unmarshal(data, k.dir); err == nil {
			return r
		}
	}
	k.empty = true
	switch {
	case errors.Is(err, os.ErrNotExist):
	case errors.Is(err, errForeign):
		k.tell(Warning, "saved identities in %s are not used and not replaced: %v; until that file is gone, or another is named, numbers are not kept", k.path, err)
		k.release()
	case errors.Is(err, errDamaged) && k.locked:
		aside := k.path + ".damaged"
		if e := os.Rename(k.path, aside); e != nil {
			k.tell(Warning, "saved identities in %s are not used and not replaced: %v; set aside: %v", k.path, err, e)
			k.release()
			break
		}
		k.tell(Warning, "saved identities in %s are not used: %v; they are now in %s", k.path, err, aside)
	default:
		k.tell(Warning, "saved identities cannot be read: %v", err)
		k.release()
	}
	return newRegistry()
}

func (k *keeper) tell(level Level, format string, args ...any) {
	k.event(Event{Level: level, Text: visible(fmt.Sprintf(format, args...))})
}

const notKept = "numbers given in this run are not kept for the next: "

// acquire takes the lock.
func (k *keeper) acquire() {
	path := k.path + ".lock"
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644) //nolint:gosec // nothing is in it
	if err != nil {
		k.tell(Warning, notKept+"%v", err)
		return
	}
	k.lock = f
	for end := time.Now().Add(lockWait); k.tryLock() != nil; time.Sleep(lockWait / 50) {
		if time.Now().After(end) {
			k.failing = true
			k.tell(Warning, notKept+"another agent has locked %s; with each change that is tried again", path)
			return
		}
	}
}

// tryLock takes the lock if nobody has it.
func (k *keeper) tryLock() (err error) {
	if !k.locked {
		err = unix.Flock(int(k.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		k.locked = err == nil
	}
	return err
}

func (k *keeper) release() {
	if k.lock != nil {
		_ = k.lock.Close()
		k.lock = nil
	}
}

// start begins to write when wake asks for it.
func (k *keeper) start() {
	k.wake, k.stop, k.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(k.done)
		for {
			select {
			case <-k.stop:
				k.flush(true)
				return
			case <-k.wake:
			}
			select { // more may come
			case <-k.stop:
			case <-time.After(saveDelay):
			}
			k.flush(false)
		}
	}()
}

// save has the file written soon. There is one caller at a time.
func (k *keeper) save() {
	if k.wake == nil {
		k.start()
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// close writes what is still to be written.
func (k *keeper) close() {
	if k.wake == nil {
		k.flush(true)
	} else {
		close(k.stop)
		<-k.done
	}
	k.release()
}

func (k *keeper) flush(last bool) {
	content := k.content(last)
	if content == nil {
		return
	}
	err := k.tryLock()
	if err == nil {
		err = writeFile(k.path, content.marshal(k.dir))
	}
	switch {
	case err != nil:
		k.failed()
		if !k.failing {
			k.tell(Warning, notKept+"%v", err)
		}
	case k.failing:
		k.tell(Info, "numbers are kept in %s again", k.path)
	}
	k.failing = err != nil
}
