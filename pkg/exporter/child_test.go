package exporter_test

// runChild does what a test wants another process to do, when this is one.
func runChild() (code int, ok bool) { return 0, false }
