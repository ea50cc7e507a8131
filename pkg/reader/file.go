package reader

import (
	"sync"
	"sync/atomic"
)

// File is one loaded file: its Catalog, immutable, and its live values. A file
// that changes becomes another File. Its methods may be used from any
// goroutine between Dir.Acquire and Dir.Release.
type File struct {
	Name    string
	Catalog *Catalog
	// Held says that the file is being rewritten: names and descriptors are
	// those from before, and there are no values.
	Held bool

	id     fileID
	head   mapping // with the header; nothing when Held, or unmapped
	m      mapping // with the live values; may be the same
	dir    *Dir
	pid    int32 // of the writer, as this process sees it; 0: not checked
	marked atomic.Bool

	laying sync.Mutex // of what follows
	laid   *Layout    // of a Catalog without one
}

// unmap lets go of the file's memory.
func (f *File) unmap() {
	if f.head != f.m {
		f.head.unmap()
	}
	f.m.unmap()
	f.head, f.m = mapping{}, mapping{}
}

// mappings is how many it has.
func (f *File) mappings() int {
	if f.head != f.m {
		return 2
	}
	return 1
}

// faulted tells whether a recovered panic is a fault of the file's memory.
func (f *File) faulted(r any) bool { return f.m.faulted(r) || f.head.faulted(r) }

// fileID tells one file from another, and a changed one from an unchanged one.
// Times are not part of it: a store through a mapping changes them, or not.
type fileID struct {
	dev, ino uint64
	size     int64
}

// suspect asks the next Look to look at the file again.
func (f *File) suspect() {
	if !f.marked.Swap(true) {
		f.dir.suspects.Add(1)
	}
}

// Unmapped tells whether the writer of a file with the PROCESS flag can be seen
// not to map it: its pid may by now be another program's. That alone is no
// reason to hide anything.
func (f *File) Unmapped() bool {
	if f.pid == 0 {
		return false
	}
	mapped, known := mapsFile(f.pid, f.id, f.Name)
	return known && !mapped
}

// State is what a file in the directory is.
type State uint8

// The states. Only loaded files, and pending ones that are Held, have metrics.
const (
	Loaded   State = iota
	Pending        // the writer has not finished
	Rejected       // something is wrong with it
	Dead           // the writer has gone and the file asks to go with it
)

// String is the state's name.
func (s State) String() string {
	return [...]string{"loaded", "pending", "rejected", "dead"}[s]
}

// Entry is a file that is not loaded, and why.
type Entry struct {
	Name  string
	State State
	Err   error
}

// Snapshot is the state of the directory at one moment. It is immutable and
// shares the Files that did not change with the one before.
type Snapshot struct {
	Files  []*File // loaded or Held, by name in byte order
	Others []Entry // pending (also those that are Held), rejected and dead, by name
	// Err says why the directory cannot be read, nil if it can.
	Err error
	// Touches is what Dir.Touches was.
	Touches uint64
}
