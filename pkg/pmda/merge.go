package pmda

import (
	"bytes"
	"errors"
	"fmt"

	"pmdammv/pkg/pcpwire"
)

// A LabelRecord holds labels: a JSON object of any number of them.
type LabelRecord struct {
	JSON []byte
	// Optional marks the labels as notes which do not identify anything
	// (PM_LABEL_OPTIONAL).
	Optional bool
}

// Limits of a label set on the wire. libpcp takes neither longer texts nor
// more labels in a PDU.
const (
	maxLabels    = 254
	maxLabelText = 65533
)

// Why labels of a record were left out of a set.
var (
	// ErrLabelJSON: the record is not one JSON object; all of it is left out.
	ErrLabelJSON = errors.New("not a JSON object")
	// ErrLabelName: a name is not of 1 to 254 letters, digits and
	// underscores; that label is left out.
	ErrLabelName = errors.New("bad label name")
	// ErrLabelTwice: a name occurs twice in the record; all of it is left out.
	ErrLabelTwice = errors.New("label name occurs twice")
	// ErrLabelSize: the record, or the set with it, has more than 254 labels
	// or more than 65533 bytes; all of the record is left out.
	ErrLabelSize = errors.New("labels do not fit")
)

// MergeLabels makes a label set of records, in order (__pmAddLabels of
// libpcp, which however leaves a single record nested, and names labels in maps
// of it by the last component). Of two labels with one name the later one stays.
//
// The text of a single record is used as it is, without insignificant white
// space; except at level LabelInstances, when a value is a map or a label was
// left out. Otherwise the text is made anew as one flat object, sorted by
// name. Members of a map become labels of their own with dotted names
// ({"a":{"b":1}} is {"a.b":1}) and the flag LabelCompound, which an empty map
// has too. Values are taken over verbatim.
//
// Names may be what PCP 7.2 allows: letters, digits and underscores in any
// order. (Earlier releases want a letter first, and leave out the whole
// record for one bad name, which for records of one label is the same thing.)
//
// What is wrong with one record does not touch the others: the set returned
// is good even if there is an error, which joins one per record and label left
// out. A set without labels has no text. The set has its own memory; its
// instance is InstNull.
func MergeLabels(level pcpwire.LabelLevel, records []LabelRecord) (pcpwire.LabelSet, error) {
	var m labelMerger
	return m.merge(level, records)
}

// A labelMerger merges label records into one set after the other. The sets
// share its memory until reset.
type labelMerger struct {
	text  []byte          // texts of finished sets
	index []pcpwire.Label // labels of finished sets

	scan   labelScan
	labels []scannedLabel // labels of the current set, sorted by name
	spare  []scannedLabel
}

// reset takes back the memory of all sets.
func (m *labelMerger) reset() {
	if cap(m.text) > keepBuffer || m.scan.buf.Cap() > keepBuffer {
		*m = labelMerger{}
	}
	m.text, m.index = m.text[:0], m.index[:0]
}

func (m *labelMerger) merge(level pcpwire.LabelLevel, records []LabelRecord) (pcpwire.LabelSet, error) {
	m.scan.buf.Reset()
	m.labels = m.labels[:0]
	var (
		errs []error
		used int    // records that labels came from
		asIs []byte // text of the last one of them, if it may stay as it is
	)
	for i, r := range records {
		flags := uint8(level)
		if r.Optional {
			flags |= uint8(pcpwire.LabelOptional)
		}
		err := m.scan.record(r.JSON, flags)
		if len(m.scan.labels) > 0 {
			if ferr := m.fold(m.scan.labels); ferr != nil {
				err = ferr
			} else {
				used++
				asIs = m.scan.whole
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("label record %d: %w", i, err))
		}
	}
	if used != 1 || level == pcpwire.LabelInstances {
		asIs = nil
	}
	return m.finish(asIs), errors.Join(errs...)
}

// fold merges sorted labels into those of the set.
func (m *labelMerger) fold(add []scannedLabel) error {
	out := m.spare[:0]
	for old := m.labels; len(old) > 0 || len(add) > 0; {
		order := 1
		switch {
		case len(add) == 0:
			order = -1
		case len(old) > 0:
			order = bytes.Compare(old[0].name, add[0].name)
		}
		if order < 0 {
			out, old = append(out, old[0]), old[1:]
			continue
		}
		out, add = append(out, add[0]), add[1:]
		if order == 0 {
			old = old[1:]
		}
	}
	m.spare = out
	if n := flatSize(out); len(out) > maxLabels || n > maxLabelText {
		return fmt.Errorf("%w: %d labels of %d bytes", ErrLabelSize, len(out), n)
	}
	m.labels, m.spare = out, m.labels
	return nil
}

// flatSize is the length of the flat text of labels.
func flatSize(labels []scannedLabel) int {
	n := len(`{}`)
	for _, l := range labels {
		n += len(`"":,`) + len(l.name) + len(l.value)
	}
	return n - min(1, len(labels))
}

// finish makes the set of the merged labels: its text is asIs, where the
// labels know their places, or else made anew.
func (m *labelMerger) finish(asIs []byte) pcpwire.LabelSet {
	set := pcpwire.LabelSet{Inst: pcpwire.InstNull}
	if len(m.labels) == 0 {
		return set
	}
	text, index := len(m.text), len(m.index)
	m.text = append(m.text, asIs...)
	for _, l := range m.labels {
		if asIs == nil {
			m.text = append(m.text, ',', '"')
			l.nameOff = len(m.text) - text
			m.text = append(m.text, l.name...)
			m.text = append(m.text, '"', ':')
			l.valueOff = len(m.text) - text
			m.text = append(m.text, l.value...)
		}
		m.index = append(m.index, pcpwire.Label{
			NameOff:  uint16(l.nameOff),
			NameLen:  uint8(len(l.name)),
			Flags:    l.flags,
			ValueOff: uint16(l.valueOff),
			ValueLen: uint16(len(l.value)),
		})
	}
	if asIs == nil {
		m.text[text] = '{'
		m.text = append(m.text, '}')
	}
	set.JSON = m.text[text:len(m.text):len(m.text)]
	set.Labels = m.index[index:len(m.index):len(m.index)]
	return set
}
