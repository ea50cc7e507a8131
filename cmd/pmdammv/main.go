// How many processors it uses the agent says itself (useOneProcessor). What the
// runtime starts to follow changes of their number takes 0.3 ms.
//
//go:debug updatemaxprocs=0

// Command pmdammv exports memory-mapped-value (MMV) files to Performance
// Co-Pilot: see pmdammv(1), or run it with --help.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// version is set when the program is built.
var version = "devel"

// exitUsage is EX_USAGE of <sysexits.h>: with it the service is not started again.
// (A Go program that crashes has status 2.)
const exitUsage = 64

func main() {
	if len(os.Args) > 1 {
		if run := tool(os.Args[1]); run != nil {
			os.Exit(run(os.Args[2:]))
		}
	}
	opts, err := parseOptions(os.Args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "pmdammv: %v\nTry 'pmdammv --help'.\n", err)
		os.Exit(exitUsage)
	}
	if err := run(opts); err != nil {
		fmt.Fprintf(os.Stderr, "pmdammv: %v\n", err)
		os.Exit(1)
	}
}
