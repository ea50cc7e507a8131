//go:build race

package test

// agentBuild is for env(1): the agent like the tests, with the race detector, which ends it at the first race.
var agentBuild = []string{"CGO_ENABLED=1", "go", "build", "-race"}
