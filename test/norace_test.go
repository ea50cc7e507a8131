//go:build !race

package test

// agentBuild is for env(1): the agent as it is released.
var agentBuild = []string{"CGO_ENABLED=0", "go", "build", "-trimpath"}
