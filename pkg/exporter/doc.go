// Package exporter presents a directory of MMV files as PCP metrics: it joins
// package reader, which knows the files, and package pmda, which knows how an
// agent behaves.
//
// A file's metrics get the cluster that it asks for, or one of its own that it
// keeps for good; names below the file's name; and instance domains whose
// numbers stay as well. What cannot be exported is left out by itself and
// told, in the log and in mmv.control.file.status.
//
// # Data
//
// The state of the directory (a reader.Snapshot) becomes an immutable Table:
// an array by cluster, of arrays by item, each pointing to the records of one
// file; a name space whose parts below the files' names are the files' own; the
// instance domains by number. A new Table shares with the one before all that
// did not change, so one file more among thousands costs that file and a few
// copies of pointers.
package exporter
