//go:build !race

package exporter_test

// raceEnabled says that the race detector is on, which allocates.
const raceEnabled = false
