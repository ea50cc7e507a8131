// Package check finds everything that is wrong with MMV files, and with a
// directory of them, and says what the agent does about it and what the writer
// should do.
//
// What the agent does is asked of the agent itself (packages reader and
// exporter, run here); the explanations are this package's own. Where the agent
// complains of something that this package does not know, its words are shown
// as they are, so nothing it does goes unexplained.
package check

import "fmt"

// Severity is how bad a finding is.
type Severity string

// An Error breaks the format: the writer must be mended. A Warning is about a
// well-formed file that is not, or may not be, exported as it was meant.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Code names a kind of finding, for good.
type Code string

// Finding is one thing that is wrong. In JSON, Index and Offset are -1 where
// there is none.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Section  string   `json:"section"` // header, toc, indom, instance, metric, value, string or label; file: none of them
	Index    int      `json:"index"`   // of the entry in its section
	Field    string   `json:"field"`
	Offset   int64    `json:"offset"`  // of the field in the file
	Problem  string   `json:"problem"` // what is wrong, with the numbers
	Agent    string   `json:"agent"`   // what the agent does about it
	Writer   string   `json:"writer"`  // what is to be done
}

// Where is like "metric[3] name at offset 88".
func (f *Finding) Where() string {
	s := f.Section
	if f.Index >= 0 {
		s += fmt.Sprintf("[%d]", f.Index)
	}
	if f.Field != "" {
		s += " " + f.Field
	}
	if f.Offset >= 0 {
		s += fmt.Sprintf(" at offset %d", f.Offset)
	}
	return s
}

// newFinding makes one; what there is to say of its kind is added.
func newFinding(code Code, section string, index int, field string, offset int64, problem string) Finding {
	k := kindOf(code)
	return Finding{code, k.severity, section, index, field, offset, problem, k.agent, k.writer}
}

// fileFinding is about the file, not its bytes.
func fileFinding(code Code, format string, args ...any) Finding {
	return newFinding(code, "file", -1, "", -1, fmt.Sprintf(format, args...))
}

// list collects findings, of each kind only so many.
type list struct {
	max     int // of one kind; 0: all
	found   []Finding
	counts  map[Code]int
	omitted int
}

func (l *list) add(f Finding) {
	if l.room(f.Code) {
		l.found = append(l.found, f)
	}
}

// room counts a finding and tells whether it is to be listed.
func (l *list) room(code Code) bool {
	if l.counts == nil {
		l.counts = map[Code]int{}
	}
	l.counts[code]++
	if l.max > 0 && l.counts[code] > l.max {
		l.omitted++
		return false
	}
	return true
}
