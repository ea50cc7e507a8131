package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"pmdammv/cmd/pmdammv/internal/check"
	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/complete"
	"pmdammv/cmd/pmdammv/internal/dump"
	"pmdammv/cmd/pmdammv/internal/list"
	"pmdammv/cmd/pmdammv/internal/watch"
)

// tool returns the sub-command of that name: it takes the arguments and returns
// the exit status. Without one the program is the agent.
func tool(name string) func(args []string) int {
	switch name {
	case "check":
		return check.NewCommand(toolEnv()).Run
	case "dump":
		return dump.NewCommand(toolEnv()).Run
	case "list":
		return list.NewCommand(toolEnv()).Run
	case "watch":
		return watch.NewCommand(toolEnv()).Run
	case "completion":
		return func(args []string) int {
			e := toolEnv()
			return complete.Run(e, complete.Program{Name: "pmdammv", Agent: agentFlags(), Commands: commands(e)}, args)
		}
	case "help":
		return func(args []string) int { return help(toolEnv(), args) }
	default:
		return nil
	}
}

// toolEnv is what sub-commands have of this process. They alone may print:
// to the agent, standard output is the way to pmcd.
func toolEnv() *cli.Env {
	cfg := readConfig()
	return cli.NewEnv(cli.Env{
		Program: os.Args[0], Version: version, In: os.Stdin,
		Out:  os.Stdout, //nolint:forbidigo // a sub-command is no agent
		Err:  os.Stderr,
		Conf: cfg.get, ConfFile: func(name string) string { return cfg.file[name] },
	})
}

// commands are the sub-commands for people.
func commands(e *cli.Env) []*cli.Command {
	return []*cli.Command{
		check.NewCommand(e).Command, dump.NewCommand(e).Command, list.NewCommand(e).Command, watch.NewCommand(e).Command, complete.NewCommand(),
	}
}

// agentFlags are the options without a sub-command.
func agentFlags() *pflag.FlagSet {
	f := (&options{prefix: "mmv", domain: 70}).flags()
	f.BoolP("help", "?", false, "show this and exit")
	f.BoolP("version", "V", false, "show the version and exit")
	return f
}

// help says what sub-commands there are, or the same as the --help of one.
func help(e *cli.Env, args []string) int {
	if len(args) > 0 && slices.Contains([]string{"-?", "-h", "--help"}, args[0]) {
		args = nil
	}
	all := commands(e)
	var b strings.Builder
	fmt.Fprintf(&b, `Usage: %[1]s [options]
       %[1]s COMMAND [options] ...

Without a command, %[1]s is an agent for pmcd: '%[1]s --help' shows its options.
The commands are for people; they need neither pmcd nor the agent:

`, e.Program)
	for _, c := range all {
		if len(args) > 0 && c.Name == args[0] {
			return show(e, c.Help(e.Program))
		}
		fmt.Fprintf(&b, "  %-12s%s\n", c.Name, c.Short)
	}
	fmt.Fprintf(&b, "\n'%s COMMAND --help' says more of each.\n", e.Program)
	if len(args) > 0 {
		e.Say("%s help: there is no command %q", e.Program, args[0])
		return cli.Usage
	}
	return show(e, b.String())
}

func show(e *cli.Env, text string) int {
	if _, err := io.WriteString(e.Stdout, text); err != nil {
		return cli.Failed
	}
	return cli.OK
}
