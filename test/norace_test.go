//go:build !race

package test

// buildMode builds the agent as it is released.
var buildMode = []string{"-trimpath"}
