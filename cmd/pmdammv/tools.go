package main

import (
	"os"

	"pmdammv/cmd/pmdammv/internal/check"
	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/dump"
	"pmdammv/cmd/pmdammv/internal/list"
	"pmdammv/cmd/pmdammv/internal/watch"
)

// tool returns the sub-command of that name: it takes the arguments and returns
// the exit status. Without one the program is the agent.
func tool(name string) func(args []string) int {
	switch name {
	case "dump":
		return dump.NewCommand(toolEnv()).Run
	case "list":
		return list.NewCommand(toolEnv()).Run
	case "check":
		return check.NewCommand(toolEnv()).Run
	case "watch":
		return watch.NewCommand(toolEnv()).Run
	default:
		return nil
	}
}

// toolEnv is what sub-commands have of this process. They alone may print:
// to the agent, standard output is the way to pmcd.
func toolEnv() *cli.Env {
	return cli.NewEnv(cli.Env{
		Program: os.Args[0], Version: version, In: os.Stdin,
		Out:  os.Stdout, //nolint:forbidigo // a sub-command is no agent
		Err:  os.Stderr,
		Conf: readConfig().get,
	})
}
