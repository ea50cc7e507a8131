//go:build !race

package pmda_test

// raceEnabled says that the race detector is on, which allocates.
const raceEnabled = false
