package exporter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const identityHeader = "pmdammv identities 1"

// maxIdentityFile bounds what is read: more than the lists can hold, even if each
// name has 255 bytes of which each is quoted as four.
const maxIdentityFile = 96 << 20

var (
	errDamaged = errors.New("damaged")
	errForeign = errors.New("belongs to another directory")
)

// savedIdentities are what is kept of a registry, in memory of their own.
type savedIdentities struct {
	counter uint64
	names   []identity
	indoms  []indomIdentity
}

// save copies what is to be kept.
func (r *registry) save() *savedIdentities {
	s := &savedIdentities{counter: r.counter, names: make([]identity, 0, len(r.names)), indoms: make([]indomIdentity, 0, len(r.indoms))}
	for _, id := range r.names {
		n := *id
		if n.present {
			n.last = r.counter
		}
		s.names = append(s.names, n)
	}
	for _, d := range r.indoms {
		n := *d
		n.last = r.lastInDom(d)
		s.indoms = append(s.indoms, n)
	}
	return s
}

// marshal makes text of it: a line each, names quoted as in Go. Beyond what the
// lists may hold, those go that were there last the longest ago.
func (s *savedIdentities) marshal(dir string) []byte {
	s.names = newest(s.names, maxNames, func(id *identity) uint64 { return id.last })
	s.indoms = newest(s.indoms, maxInDoms, func(d *indomIdentity) uint64 { return d.last })
	sort.Slice(s.names, func(i, j int) bool { return s.names[i].name < s.names[j].name })
	sort.Slice(s.indoms, func(i, j int) bool { return s.indoms[i].number < s.indoms[j].number })

	b := append([]byte(identityHeader), "\ndirectory "...)
	b = strconv.AppendQuote(b, dir)
	b = append(b, "\ncounter "...)
	b = strconv.AppendUint(b, s.counter, 10)
	b = append(b, "\n# file cluster-asked cluster since last instance+1 sum name\n"...)
	for i := range s.names {
		id := &s.names[i]
		b = appendLine(b, "file", id.name, uint64(id.asked), uint64(id.cluster), id.since, id.last, uint64(id.inst+1), id.sum)
	}
	b = append(b, "# indom cluster serial number last file\n"...)
	for i := range s.indoms {
		d := &s.indoms[i]
		b = appendLine(b, "indom", d.key.file, uint64(d.key.cluster), uint64(d.key.serial), uint64(d.number), d.last)
	}
	return append(b, "end\n"...) // tells a whole file from a cut one
}

// newest returns the n elements whose last is highest.
func newest[T any](list []T, n int, last func(*T) uint64) []T {
	if len(list) <= n {
		return list
	}
	sort.Slice(list, func(i, j int) bool { return last(&list[i]) > last(&list[j]) })
	return list[:n]
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
		key, rest, _ := strings.Cut(line, " ")
		var err error
		switch {
		case n == 1 && line != identityHeader:
			err = errors.New("not a file of identities")
		case n == 1:
		case n == 2:
			err = checkDirectory(key, rest, dir)
		case n == 3:
			err = r.parseCounter(key, rest)
		case whole:
			err = errors.New("text after the end")
		case line == "" || line[0] == '#':
		case line == "end":
			whole = true
		case key == "file":
			err = r.parseName(rest)
		case key == "indom":
			err = r.parseInDom(rest)
		default:
			err = fmt.Errorf("unknown line %.20q", line)
		}
		if errors.Is(err, errForeign) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errDamaged, n, err)
		}
	}
	if s.Err() != nil || !whole {
		return nil, fmt.Errorf("%w: it does not end with a line \"end\"", errDamaged)
	}
	r.saved = r.counter
	return r, nil
}

var (
	errTwice = errors.New("a number or name occurs twice")
	errRange = errors.New("out of range")
)

func checkDirectory(key, rest, dir string) error {
	d, err := unquote(rest)
	switch {
	case key != "directory":
		return errors.New("no directory")
	case err != nil:
		return err
	case d != dir:
		return fmt.Errorf("%w: %s", errForeign, d)
	default:
		return nil
	}
}

func (r *registry) parseCounter(key, rest string) (err error) {
	if key != "counter" {
		return errors.New("no counter")
	}
	if r.counter, err = strconv.ParseUint(rest, 10, 64); err == nil && r.counter > math.MaxInt64 { // it is to go on from here
		err = errRange
	}
	return err
}

// unquote is for what AppendQuote writes.
func unquote(s string) (string, error) {
	if s == "" || s[0] != '"' {
		return "", strconv.ErrSyntax
	}
	return strconv.Unquote(s)
}

// fields reads as many numbers as max has, which bound them, and the name after
// them.
func fields(s string, limits ...uint64) ([]uint64, string, error) {
	out := make([]uint64, len(limits))
	for i, most := range limits {
		f, rest, _ := strings.Cut(s, " ")
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return nil, "", err
		}
		if n > most {
			return nil, "", errRange
		}
		out[i], s = n, rest
	}
	name, err := unquote(s)
	return out, name, err
}

func (r *registry) parseName(s string) error {
	v, name, err := fields(s, maxCluster, maxCluster, r.counter, r.counter, math.MaxInt32, math.MaxUint64)
	if err != nil {
		return err
	}
	if name == "" || len(r.names) >= maxNames {
		return errRange
	}
	id := &identity{name: name, asked: uint32(v[0]), cluster: uint32(v[1]), since: v[2], last: v[3], inst: int32(v[4]) - 1, sum: v[5]}
	if r.names[name] != nil || id.own() && r.owner[id.cluster] != nil || r.insts[id.inst] != nil {
		return errTwice
	}
	r.names[name] = id
	r.hold(id)
	if id.inst >= 0 {
		r.insts[id.inst] = id
	}
	return nil
}

func (r *registry) parseInDom(s string) error {
	v, file, err := fields(s, maxCluster, math.MaxUint32, maxSerial, r.counter)
	if err != nil {
		return err
	}
	d := &indomIdentity{indomKey{uint32(v[0]), uint32(v[1]), file}, uint32(v[2]), v[3]}
	if d.key.cluster == 0 || d.number == 0 || len(r.indoms) >= maxInDoms {
		return errRange
	}
	if r.indoms[d.key] != nil || r.numbers[d.number] != nil {
		return errTwice
	}
	r.indoms[d.key], r.numbers[d.number] = d, d
	return nil
}

// readFile reads a regular file of bounded size.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	case st.Size() > maxIdentityFile:
		return nil, fmt.Errorf("%w: more than %d bytes", errDamaged, maxIdentityFile)
	}
	return io.ReadAll(io.LimitReader(f, maxIdentityFile))
}

// writeFile replaces the file as a whole or not at all. Only the holder of the
// lock may call it.
func writeFile(path string, data []byte) error {
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) { // of an agent that was killed
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // no secrets in it
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
