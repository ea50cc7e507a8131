package list

import (
	"errors"
	"strconv"
	"strings"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/local"
	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
)

// Command is "pmdammv list".
type Command struct {
	*cli.Command
	env   *cli.Env
	agent *cli.Agent

	want       want
	pmid       bool
	json       bool
	open       bool
	prometheus bool
}

const about = `Show what the agent exports, as pminfo would: names, and what the options ask for.
Neither pmcd nor the agent need run. A metricname stands for itself and all
metrics below it; without one all metrics are shown.`

// NewCommand makes the command.
func NewCommand(e *cli.Env) *Command {
	c := &Command{Command: cli.NewCommand("list", "[metricname | pmid | indom]...", about), env: e}
	c.Short, c.Completes = "show what is exported", "names"
	f := c.Flags
	c.Group("Options as of pminfo")
	f.BoolVarP(&c.want.desc, "desc", "d", false, "print metric description")
	f.BoolVarP(&c.want.value, "fetch", "f", false, "fetch and print values for all instances")
	f.BoolVarP(&c.want.labels, "labels", "l", false, "print labels of metrics and instances")
	f.BoolVarP(&c.pmid, "pmid", "m", false, "print PMID")
	f.BoolVarP(&c.want.oneline, "oneline", "t", false, "print (terse) oneline text")
	f.BoolVarP(&c.want.help, "helptext", "T", false, "print (verbose) help text")
	c.Group("Other forms")
	f.BoolVar(&c.json, "json", false, "print all of this as JSON (TOOLS.md describes it)")
	f.BoolVar(&c.open, "openmetrics", false, "print values as OpenMetrics text")
	f.BoolVar(&c.prometheus, "prometheus", false, "print values in the older text format of Prometheus, as pmproxy does")
	c.agent = c.AgentOptions(e)
	c.agent.DirOption()
	return c
}

// Run is the command; it returns the exit status.
func (c *Command) Run(args []string) int {
	if status, ok := c.Parse(c.env, args); !ok {
		return status
	}
	o, err := c.agent.Options()
	forms := 0
	for _, on := range []bool{c.json, c.open, c.prometheus} {
		if on {
			forms++
		}
	}
	if forms > 1 {
		err = errors.Join(err, errors.New("only one of --json, --openmetrics and --prometheus"))
	}
	if err != nil {
		return c.Misused(c.env, err)
	}
	if forms > 0 {
		c.want = everything
	}
	ctx, err := local.Open(o)
	if err != nil {
		c.env.Complain(c.Name, err)
		return cli.Failed
	}
	defer ctx.Close()
	status := cli.OK
	if err := ctx.Look(func() error { return c.list(&lister{Context: ctx, want: c.want}, &status) }); err != nil {
		c.env.Complain(c.Name, err)
		return cli.Failed
	}
	c.warn(ctx.Events(), o.Dir, status)
	return status
}

// list shows what was asked for; what there is not is said, and makes status
// what it must be.
func (c *Command) list(l *lister, status *int) error {
	args := c.Flags.Args()
	if len(args) == 0 {
		args = []string{l.Root()}
	}
	out := newPminfo(c.env.Stdout, c.want, c.pmid)
	var all []string
	for _, arg := range args {
		if id, ok := indom(arg); ok && !c.json && !c.open && !c.prometheus {
			out.indom(l, id) // before all metrics, as pminfo does
			continue
		}
		names, err := names(l, arg)
		if err != nil {
			c.env.Say("Error: %s: %v", arg, err)
			*status = cli.Failed
			continue
		}
		all = append(all, names...)
	}
	metrics, err := l.metrics(all)
	if err != nil {
		return err
	}
	if err := c.print(out, metrics); err != nil {
		return err
	}
	return out.Flush()
}

// print prints metrics in the form that was asked for.
func (c *Command) print(out *pminfo, metrics []metric) error {
	switch {
	case c.json:
		return writeJSON(out, metrics)
	case c.open, c.prometheus:
		s := newScrape(out, c.open)
		for i := range metrics {
			s.metric(&metrics[i])
		}
		for _, name := range s.lost {
			c.env.Say("%s %s: %s is left out: another metric has that name once its dots are underscores", c.env.Program, c.Name, name)
		}
		return s.end()
	}
	for i := range metrics {
		out.metric(&metrics[i])
	}
	return nil
}

// names are those at or below a name, or of a PMID.
func names(l *lister, arg string) ([]string, error) {
	n := numbers(arg)
	if len(n) == 3 {
		return l.NamesOf(pcpwire.NewPMID(n[0], n[1], n[2]))
	}
	return l.Names(arg)
}

// indom is an instance domain by its number.
func indom(arg string) (pcpwire.InDom, bool) {
	n := numbers(arg)
	if len(n) != 2 {
		return 0, false
	}
	return pcpwire.NewInDom(n[0], n[1]), true
}

// numbers takes apart such as 70.5.1; nil for anything else.
func numbers(arg string) []uint32 {
	var out []uint32
	for part := range strings.SplitSeq(arg, ".") {
		n, err := strconv.ParseUint(part, 10, 22)
		if err != nil {
			return nil
		}
		out = append(out, uint32(n))
	}
	return out
}

// warn says what is the matter with the directory, which is easily the reason
// why there is nothing to see. What is the matter with files, check tells.
func (c *Command) warn(events []exporter.Event, dir string, status int) {
	problems := false
	for _, ev := range events {
		switch {
		case ev.Level < exporter.Warning:
		case ev.File != "":
			problems = true
		default:
			c.env.Say("%s %s: %s", c.env.Program, c.Name, cli.Visible(ev.Text))
		}
	}
	switch {
	case problems:
		c.env.Say("Hint: not everything in %s is exported; '%s check' tells why", cli.Visible(dir), c.env.Program)
	case status != cli.OK:
		c.env.Say("Hint: these are the metrics of the files in %s; '%s list' shows their names", cli.Visible(dir), c.env.Program)
	}
}
