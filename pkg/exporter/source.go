package exporter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

// Why a file or a metric is not exported, besides the reasons of packages
// reader and pmda.
var (
	errFileName  = errors.New("file name cannot be part of a metric name")
	errItem      = errors.New("item does not fit a PMID")
	errItemTwice = errors.New("item occurs twice")
	errType      = errors.New("unknown type")
	errReserved  = errors.New("name is the agent's own")
)

const maxItem = 1023

// problem says why a metric of a file is not exported.
type problem struct {
	metric int
	err    error
}

// maxProblems bounds how many problems of a file are kept; all are counted.
const maxProblems = 16

// source is what follows from one Catalog alone: which of its metrics can be
// exported, and their names. It is immutable.
type source struct {
	cat      *reader.Catalog
	prefix   []byte     // of its names below the root: "file." or nothing
	plain    bool       // its names are all those below one component of its own
	items    []uint32   // by item: index of the metric + 1; the others are not exported
	tree     *pmda.Tree // names below prefix; the PMIDs are the items
	tops     []string   // first components of all names, in the order of the file
	problems []problem
	rejected int    // metrics that are not exported
	sum      uint64 // of its metrics, the same in every run; where it asks for a cluster
	err      error  // why the file is not exported at all
}

// newSource finds out what of a file can be exported.
func newSource(name string, cat *reader.Catalog, sanitize bool) *source {
	s := &source{cat: cat, plain: true}
	if cat.Header.Flags&reader.FlagNoPrefix != 0 {
		s.plain = false
	} else {
		if sanitize {
			name = sanitized(name)
		}
		if err := fileName(name); err != nil {
			s.err = err
			return s
		}
		s.prefix = []byte(name + ".")
		s.plain = !strings.Contains(name, ".")
	}
	s.choose()
	if cat.Header.Cluster != 0 {
		s.sum = s.checksum()
	}
	return s
}

// checksum is a hash of names, items and descriptors.
func (s *source) checksum() uint64 {
	h := fnv.New64a()
	var b []byte
	for i := range s.metrics() {
		m := &s.cat.Metrics[i]
		b = append(s.name(b[:0], i), 0)
		for _, v := range [...]uint32{m.Item, uint32(m.Type), uint32(m.Semantics), m.Dimension, uint32(m.Serial)} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		_, _ = h.Write(b)
	}
	return h.Sum64()
}

// fileName checks that a file's name can be part of metric names.
func fileName(name string) error {
	first, _, _ := strings.Cut(name, ".")
	if first == "control" {
		return &nameError{name, errReserved}
	}
	for comp := range strings.SplitSeq(name, ".") {
		if comp == "" || strings.ContainsFunc(comp, func(c rune) bool { return !nameRune(c) }) {
			return &nameError{name, errFileName}
		}
	}
	return nil
}

// nameError says which file's name cannot be used, and why.
type nameError struct {
	name string
	err  error
}

func (e *nameError) Error() string { return e.err.Error() + ": " + strconv.Quote(e.name) }
func (e *nameError) Unwrap() error { return e.err }

func nameRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

func sanitized(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c != '.' && !nameRune(rune(c)) {
			b[i] = '_'
		}
	}
	return string(b)
}

// choose decides which metrics are exported, in the order of the file: first
// come, first served.
func (s *source) choose() {
	var b pmda.TreeBuilder
	likely := s.cat.Metrics[:min(len(s.cat.Metrics), maxItem+1)] // more never are
	size := 0
	for i := range likely {
		size += len(s.cat.Text(likely[i].Name))
	}
	b.Grow(len(likely), size)
	taken := make([]uint32, 0, len(likely))
	var last string
	for i := range s.cat.Metrics {
		m := &s.cat.Metrics[i]
		name := s.cat.Text(m.Name)
		err := s.check(m, name, taken)
		if err == nil {
			err = b.Add(name, pcpwire.PMID(m.Item))
		}
		if err != nil {
			s.reject(i, err)
			continue
		}
		for len(taken) <= int(m.Item) {
			taken = append(taken, 0)
		}
		taken[m.Item] = uint32(i) + 1
		if len(s.prefix) > 0 {
			continue
		}
		if top := firstComponent(name); top != last {
			s.tops, last = append(s.tops, top), top
		}
	}
	if len(s.prefix) > 0 && len(taken) > 0 {
		s.tops = []string{firstComponent(s.prefix)}
	}
	s.items = taken
	s.tree = b.Build()
}

// metrics are the indexes of those that are exported, in the order of the file.
func (s *source) metrics() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := range s.cat.Metrics {
			it := s.cat.Metrics[i].Item
			if it < uint32(len(s.items)) && s.items[it] == uint32(i)+1 && !yield(uint32(i)) {
				return
			}
		}
	}
}

// len is how many they are.
func (s *source) len() int { return len(s.cat.Metrics) - s.rejected }

func (s *source) check(m *reader.Metric, name []byte, taken []uint32) error {
	switch {
	case m.Name == 0:
		return reader.ErrNoName
	case m.Item > maxItem:
		return fmt.Errorf("%w: %d", errItem, m.Item)
	case int(m.Item) < len(taken) && taken[m.Item] != 0:
		return fmt.Errorf("%w: %d", errItemTwice, m.Item)
	case !m.Type.Known():
		return fmt.Errorf("%w: %d", errType, m.Type)
	case len(s.prefix) == 0 && firstComponent(name) == "control":
		return errReserved
	}
	return nil
}

func firstComponent(name []byte) string {
	first, _, _ := bytes.Cut(name, []byte{'.'})
	return string(first)
}

func (s *source) reject(i int, err error) {
	s.rejected++
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, problem{i, err})
	}
}

// name is the full name of a metric below the root.
func (s *source) name(dst []byte, metric uint32) []byte {
	return append(append(dst, s.prefix...), s.cat.Text(s.cat.Metrics[metric].Name)...)
}

// same tells whether two metrics, of sources with one cluster, are one: their
// names and descriptors are the same as exported.
func same(a *source, i uint32, b *source, k uint32) bool {
	x, y := &a.cat.Metrics[i], &b.cat.Metrics[k]
	if x.Singular() != y.Singular() || !x.Singular() && x.Serial != y.Serial {
		return false
	}
	return describe(x) == describe(y) && joinedEqual(a.prefix, a.cat.Text(x.Name), b.prefix, b.cat.Text(y.Name))
}

// joinedEqual tells whether a+b and c+d are the same text.
func joinedEqual(a, b, c, d []byte) bool {
	if len(a) > len(c) {
		a, b, c, d = c, d, a, b
	}
	k := len(c) - len(a)
	return len(b) == k+len(d) && bytes.Equal(a, c[:len(a)]) && bytes.Equal(b[:k], c[len(a):]) && bytes.Equal(b[k:], d)
}

// elapsedUnits is microseconds.
var elapsedUnits = pcpwire.NewUnits(0, 1, 0, 0, 1, 0)

// describe is the descriptor of a metric but for its PMID and instance domain.
func describe(m *reader.Metric) pcpwire.Desc {
	d := pcpwire.Desc{
		Type: pcpwire.Type(m.Type), InDom: pcpwire.InDomNull,
		Semantics: pcpwire.Semantics(m.Semantics), Units: pcpwire.Units(m.Dimension),
	}
	if m.Semantics == 0 {
		d.Semantics = pcpwire.SemCounter
	}
	if m.Type == reader.TypeElapsed {
		d.Type, d.Semantics, d.Units = pcpwire.TypeI64, pcpwire.SemCounter, elapsedUnits
	}
	return d
}
