//go:build race

package test

// buildMode builds the agent like the tests: with the race detector, which ends it at the first race.
var buildMode = []string{"-race"}
