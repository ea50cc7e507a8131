package exporter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const identityHeader = "pmdammv identities 1"

// maxIdentityFile bounds what is read: more than the lists can hold.
const maxIdentityFile = 32 << 20

var (
	errDamaged = errors.New("damaged")
	errForeign = errors.New("belongs to another directory")
)

// marshal writes the registry as text: a line each, names quoted as in Go.
func (r *registry) marshal(dir string) []byte {
	b := append([]byte(identityHeader), "\ndirectory "...)
	b = strconv.AppendQuote(b, dir)
	b = append(b, "\ncounter "...)
	b = strconv.AppendUint(b, r.counter, 10)
	b = append(b, "\n# file cluster-asked cluster since last instance+1 name\n"...)
	for _, id := range slices.SortedFunc(maps.Values(r.names), func(a, b *identity) int { return strings.Compare(a.name, b.name) }) {
		b = appendLine(b, "file", id.name, uint64(id.asked), uint64(id.cluster), id.since, id.last, uint64(id.inst+1))
	}
	b = append(b, "# indom cluster serial number last file\n"...)
	for _, d := range slices.SortedFunc(maps.Values(r.indoms), func(a, b *indomIdentity) int { return int(a.number) - int(b.number) }) {
		b = appendLine(b, "indom", d.key.file, uint64(d.key.cluster), uint64(d.key.serial), uint64(d.number), d.last)
	}
	return append(b, "end\n"...) // tells a whole file from a cut one
}

func appendLine(b []byte, key, name string, numbers ...uint64) []byte {
	b = append(b, key...)
	for _, n := range numbers {
		b = strconv.AppendUint(append(b, ' '), n, 10)
	}
	return append(strconv.AppendQuote(append(b, ' '), name), '\n')
}

// unmarshal is the reverse of marshal. The error wraps errForeign for a file of
// another directory, errDamaged for anything else that is wrong.
func unmarshal(data []byte, dir string) (*registry, error) {
	r := newRegistry()
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, 1<<16)
	n, whole := 0, false
	for s.Scan() {
		n++
		line := s.Text()
		var err error
		switch key, rest, _ := strings.Cut(line, " "); {
		case n == 1 && line != identityHeader:
			err = errors.New("not a file of identities")
		case n == 1 || line == "" || key[:1] == "#":
		case whole:
			err = errors.New("text after the end")
		case key == "directory":
			var d string
			if d, err = strconv.Unquote(rest); err == nil && d != dir {
				return nil, fmt.Errorf("%w: %s", errForeign, d)
			}
		case key == "counter":
			r.counter, err = strconv.ParseUint(rest, 10, 64)
		case key == "file":
			err = r.parseName(rest)
		case key == "indom":
			err = r.parseInDom(rest)
		case line == "end":
			whole = true
		default:
			err = fmt.Errorf("unknown line %.20q", line)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errDamaged, n, err)
		}
	}
	if s.Err() != nil || !whole {
		return nil, fmt.Errorf("%w: it does not end with a line \"end\"", errDamaged)
	}
	return r, nil
}

var errTwice = errors.New("a number or name occurs twice")

func (r *registry) parseName(s string) error {
	var asked, cluster uint32
	var since, last uint64
	var inst int32
	var name string
	if _, err := fmt.Sscanf(s, "%d %d %d %d %d %q", &asked, &cluster, &since, &last, &inst, &name); err != nil {
		return err
	}
	inst--
	if asked > maxCluster || cluster > maxCluster || inst < -1 || name == "" || len(r.names) >= maxNames {
		return errors.New("out of range")
	}
	id := &identity{name: name, asked: asked, cluster: cluster, inst: inst, since: since, last: last}
	if r.names[name] != nil || id.own() && r.owner[cluster] != nil || inst >= 0 && r.insts[inst] != nil {
		return errTwice
	}
	r.names[name] = id
	r.hold(id)
	if inst >= 0 {
		r.insts[inst] = id
	}
	return nil
}

func (r *registry) parseInDom(s string) error {
	var d indomIdentity
	if _, err := fmt.Sscanf(s, "%d %d %d %d %q", &d.key.cluster, &d.key.serial, &d.number, &d.last, &d.key.file); err != nil {
		return err
	}
	if d.key.cluster > maxCluster || d.number == 0 || d.number > maxSerial || len(r.indoms) >= maxInDoms {
		return errors.New("out of range")
	}
	if r.indoms[d.key] != nil || r.numbers[d.number] != nil {
		return errTwice
	}
	r.indoms[d.key], r.numbers[d.number] = &d, &d
	return nil
}

// keeper keeps the registry in a file, written by a goroutine of its own.
type keeper struct {
	path    string
	dir     string
	event   func(Event)
	content func() []byte // what is to be in the file, nil: what is
	lock    *os.File      // held for the life of the agent; nil: read only
	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	failing bool
	fresh   bool // there was no file
}

// load reads the file at path for dir; what is wrong is told, and what it then
// means: an empty registry.
func (k *keeper) load(readOnly bool) *registry {
	if !readOnly {
		k.acquire()
	}
	data, err := readFile(k.path)
	if errors.Is(err, os.ErrNotExist) {
		k.fresh = true
		return newRegistry()
	}
	var r *registry
	if err == nil {
		r, err = unmarshal(data, k.dir)
	}
	switch {
	case err == nil:
		return r
	case errors.Is(err, errForeign):
		k.tell("saved identities in %s are not used and not replaced: %v", k.path, err)
		k.release()
	case errors.Is(err, errDamaged) && k.lock != nil:
		aside := k.path + ".damaged"
		if e := os.Rename(k.path, aside); e != nil {
			aside = "nowhere: " + e.Error()
		}
		k.tell("saved identities in %s are %v; set aside as %s", k.path, err, aside)
	default:
		k.tell("saved identities cannot be read: %v", err)
		k.release()
	}
	return newRegistry()
}

func (k *keeper) tell(format string, args ...any) {
	k.event(Event{Level: Warning, Text: fmt.Sprintf(format, args...)})
}

// readFile reads a regular file of bounded size.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.Join(err, errors.New("not a regular file"))}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIdentityFile+1))
	if err == nil && len(data) > maxIdentityFile {
		err = fmt.Errorf("%w: more than %d bytes", errDamaged, maxIdentityFile)
	}
	return data, err
}

// acquire takes the lock; without it the file is not written.
func (k *keeper) acquire() {
	f, err := os.OpenFile(k.path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		k.tell("numbers given in this run are not kept for the next: %v", err)
		return
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		k.tell("numbers given in this run are not kept for the next: another agent has locked %s", f.Name())
		_ = f.Close()
		return
	}
	k.lock = f
}

func (k *keeper) release() {
	if k.lock != nil {
		_ = k.lock.Close()
		k.lock = nil
	}
}

// start begins to write when save asks for it.
func (k *keeper) start() {
	k.wake, k.stop, k.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(k.done)
		for {
			select {
			case <-k.stop:
				k.flush()
				return
			case <-k.wake:
			}
			select { // more may come
			case <-k.stop:
			case <-time.After(50 * time.Millisecond):
			}
			k.flush()
		}
	}()
}

// save has the file written soon.
func (k *keeper) save() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// close writes what is still to be written.
func (k *keeper) close() {
	close(k.stop)
	<-k.done
	k.release()
}

func (k *keeper) flush() {
	data := k.content()
	if data == nil {
		return
	}
	err := writeFile(k.path, data)
	if err != nil && !k.failing {
		k.tell("numbers given in this run are not kept for the next: %v", err)
	}
	k.failing = err != nil
}

// writeFile replaces the file as a whole or not at all.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
