package pmda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"pmdammv/pkg/pcpwire"
)

const maxLabelName = 254

// A labelScan finds the labels of a record.
type labelScan struct {
	buf    bytes.Buffer   // compact texts of the records since it was emptied
	labels []scannedLabel // of the last record, sorted by name
	whole  []byte         // text of the last record, if flat and without bad names

	text []byte
	path []byte // dotted name of the map being scanned
	flat bool
	bad  []byte // first bad name
}

// A scannedLabel is a label of a record. Its name (unless dotted) and its
// value are parts of the record's compact text, at these offsets.
type scannedLabel struct {
	name, value       []byte
	nameOff, valueOff int
	flags             uint8
}

// record finds the labels of a record, for which it is valid until buf is
// emptied. After an error there are none, but for ErrLabelName, which leaves
// the good ones.
func (s *labelScan) record(src []byte, flags uint8) error {
	s.labels, s.whole, s.bad = s.labels[:0], nil, nil
	if len(src) > maxLabelText {
		return fmt.Errorf("%w: %d bytes", ErrLabelSize, len(src))
	}
	start := s.buf.Len()
	if err := json.Compact(&s.buf, src); err != nil {
		return fmt.Errorf("%w: %w", ErrLabelJSON, err)
	}
	s.text, s.path, s.flat = s.buf.Bytes()[start:], s.path[:0], true
	if s.text[0] != '{' {
		return ErrLabelJSON
	}
	s.object(0, flags)
	err := s.sort()
	if err != nil {
		s.labels = s.labels[:0]
		return err
	}
	if s.bad != nil {
		return fmt.Errorf("%w: %.64q", ErrLabelName, s.bad)
	}
	if s.flat {
		s.whole = s.text
	}
	return nil
}

// sort sorts the labels by name, and finds those that cannot be a set.
func (s *labelScan) sort() error {
	if len(s.labels) > maxLabels {
		return fmt.Errorf("%w: more than %d labels", ErrLabelSize, maxLabels)
	}
	sort.Sort((*byName)(&s.labels))
	for i := 1; i < len(s.labels); i++ {
		if bytes.Equal(s.labels[i-1].name, s.labels[i].name) {
			return fmt.Errorf("%w: %.64q", ErrLabelTwice, s.labels[i].name)
		}
	}
	return nil
}

// byName is for package sort: an instance of slices.SortFunc is 20 KB of program.
type byName []scannedLabel

func (l *byName) Len() int           { return len(*l) }
func (l *byName) Less(i, j int) bool { return bytes.Compare((*l)[i].name, (*l)[j].name) < 0 }
func (l *byName) Swap(i, j int)      { (*l)[i], (*l)[j] = (*l)[j], (*l)[i] }

// object takes the members of the object at text[i] as labels, and returns
// where it ends. The text is known to be valid and without white space.
// Recursion goes no deeper than a name has components.
func (s *labelScan) object(i int, flags uint8) (end int) {
	for i++; s.text[i] != '}'; {
		if s.text[i] == ',' {
			i++
		}
		name := i + 1
		i = skipValue(s.text, i)
		key := s.text[name : i-1]
		value := i + 1
		if !s.goodName(key) {
			i = skipValue(s.text, value)
			if s.bad == nil {
				s.bad = key
			}
			continue
		}
		isMap := s.text[value] == '{'
		if isMap && s.text[value+1] != '}' {
			s.flat = false
			above := len(s.path)
			s.path = append(append(s.path, key...), '.')
			i = s.object(value, flags|uint8(pcpwire.LabelCompound))
			s.path = s.path[:above]
			continue
		}
		i = skipValue(s.text, value)
		l := scannedLabel{name: key, value: s.text[value:i], nameOff: name, valueOff: value, flags: flags}
		if isMap {
			l.flags |= uint8(pcpwire.LabelCompound)
		}
		if len(s.path) > 0 {
			l.name = slices.Concat(s.path, key)
		}
		if len(s.labels) <= maxLabels {
			s.labels = append(s.labels, l)
		}
	}
	return i + 1
}

// goodName reports whether key, below the current path, is a name of a label.
func (s *labelScan) goodName(key []byte) bool {
	return len(key) > 0 && len(s.path)+len(key) <= maxLabelName &&
		!slices.ContainsFunc(key, func(c byte) bool { return !nameByte(c) })
}

// skipValue returns where the value at text[i] ends.
func skipValue(text []byte, i int) int {
	depth := 0
	for ; ; i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth <= 1 {
				return i + depth
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
}
