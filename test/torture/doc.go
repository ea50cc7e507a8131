// Command torture looks for what makes an agent fall over, mix things up or miss something: writers of all kinds create,
// replace, rename, truncate, rewrite, corrupt and leave files, beside steady ones, while clients ask through a real pmcd,
// through a pipe as fast as they can, and through a socket right after each change. `make torture MINUTES=n` runs it.
//
// Every value says in itself which metric of which file it belongs to, for which instance, and in which contents of the
// file it was written (values.go), so that an answer shows by itself whether it is right.
//
// A run is a few stages, each with a directory on tmpfs or on the disk and agents of its own:
//
//	together   pmcd with the agent on a pipe, pmlogger, one agent more on a pipe, and one on a socket. All writers.
//	rewriting  one file that is rewritten as fast as can be, under as many reads as can be
//	churn      one writer that does everything to a few files, as fast as can be
//	names      more names, one after another, than there are numbers for
//	thousand   1000 files, of which 500 are truncated between two requests
//	limits     more files than the agent may map, few descriptors
//	blind      no inotify instance or no watch to be had
//	directory  the directory itself goes, comes, moves and changes its mode
//
// It ends with status 1 when an answer was wrong or too late, a file was missed, an agent died, or its memory,
// descriptors or mappings grew.
package main
