package exporter

import (
	"pmdammv/pkg/reader"
)

// FileMetrics says which metrics about the files themselves there are.
type FileMetrics string

// The choices.
const (
	FileMetricsOff      FileMetrics = "off"      // PCP's own control metrics only
	FileMetricsProblems FileMetrics = "problems" // and the state of files that are not cleanly loaded
	FileMetricsAll      FileMetrics = "all"      // and the state, size, … of all
)

// Options steer an Exporter.
type Options struct {
	Dir         string // of the MMV files; need not exist
	Prefix      string // PMNS root, default "mmv"
	Domain      uint32 // of all PMIDs and InDoms
	PCPVersion  string // of the installed PCP, like "6.0.3": its control metrics are served
	Identities  string // file that numbers are kept in, "" for none
	ReadOnly    bool   // never write Identities
	FileMetrics FileMetrics
	// SanitizeNames replaces what may not be in a metric's name, in the names
	// of files, by "_", instead of rejecting the file.
	SanitizeNames bool
	Reader        reader.Options // Report is the Exporter's own
	// Event is told what happens, one call at a time; nil for nobody.
	Event func(Event)
	// Published is called when a change of what is exported, or the first request
	// for some of it, has left garbage behind; nil for nobody.
	Published func()
	// Debug is told of a store into the debug metric; nil if it cannot be set.
	Debug func(options string) error
}

// Level is how much an event matters.
type Level int8

// The levels.
const (
	Info Level = iota
	Warning
	Error
)

// Event is something that an operator may want to know. File is the name of
// the file that it is about, or "".
type Event struct {
	Level Level
	File  string
	Text  string
}
