// Package test holds the end-to-end tests: the agent under a real pmcd, with real writers of MMV files and PCP's own
// clients, and beside PCP's own agent on the same files. `make test` installs what they use.
//
// The flag -agent PATH puts another agent in the place of the one built from this module; with -update, and PCP's own
// agent, it makes the goldens in testdata anew.
package test
