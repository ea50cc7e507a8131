//go:build race

package pcpwire_test

// raceEnabled says that the race detector is on, which allocates.
const raceEnabled = true
