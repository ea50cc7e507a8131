package watch

import (
	"context"
	"errors"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/local"
	"pmdammv/pkg/exporter"
)

// Command is "pmdammv watch".
type Command struct {
	*cli.Command
	env   *cli.Env
	agent *cli.Agent

	samples  int
	interval string
	raw      bool
	sort     string
	filter   string
	plain    bool
}

const about = `Show metrics as they change: values, counters per second as pmval has them, and
what happens to the files. A metricname stands for itself and all metrics below
it; without one all metrics of files are shown. Where standard output is not a
terminal, each value is a line of time, metric, instance, value and units, with
tabs between them.`

// NewCommand makes the command.
func NewCommand(e *cli.Env) *Command {
	c := &Command{Command: cli.NewCommand("watch", "[metricname]...", about), env: e}
	c.Short, c.Completes = "show metrics as they change", "names"
	f := c.Flags
	f.IntVarP(&c.samples, "samples", "s", 0, "terminate after this `number` of samples")
	f.StringVarP(&c.interval, "interval", "t", "1sec", "sampling interval `delta`, such as 2, 500msec or 1min30sec")
	f.BoolVarP(&c.raw, "raw", "r", false, "raw counter values (no rate conversion)")
	f.StringVar(&c.sort, "sort", "name", "`order`: name, value or change")
	f.StringVar(&c.filter, "filter", "", "show only what has these `words` in metric or instance")
	f.BoolVar(&c.plain, "plain", false, "print lines, also to a terminal")
	c.agent = c.AgentOptions(e)
	c.agent.DirOption()
	c.Notes = "In a terminal, ? shows the keys."
	return c
}

// Run is the command; it returns the exit status.
func (c *Command) Run(args []string) int {
	if status, ok := c.Parse(c.env, args); !ok {
		return status
	}
	m := &model{raw: c.raw, filter: c.filter, colour: c.env.Colour(), files: true}
	o, err := c.agent.Options()
	err = errors.Join(err, c.settings(m))
	if err != nil {
		return c.Misused(c.env, err)
	}
	m.dir = o.Dir
	if err := c.watch(o, m); err != nil {
		c.env.Complain(c.Name, err)
		return cli.Failed
	}
	return cli.OK
}

// settings takes over what the options say of the view.
func (c *Command) settings(m *model) error {
	var err error
	if m.interval, err = parseInterval(c.interval); err != nil {
		return err
	}
	if c.samples < 0 {
		return errors.New("the number of samples must be positive")
	}
	for ; m.sort < orders; m.sort++ {
		if m.sort.String() == c.sort {
			return nil
		}
	}
	return errors.New("--sort=" + c.sort + " is none of name, value, change")
}

func (c *Command) watch(o exporter.Options, m *model) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends what writes to somebody who does not read
	agent, err := local.Open(o)
	if err != nil {
		return err
	}
	defer agent.Close()
	s := &sampler{ctx: agent, nodes: c.Flags.Args(), at: time.Now()}
	if len(s.nodes) == 0 {
		s.files = true
	}
	if c.plain || !c.env.Terminal() || c.env.In == nil || !term.IsTerminal(int(c.env.In.Fd())) {
		return lines(ctx, s, newPlain(c.env.Stdout, m), c.samples)
	}
	t := &terminal{screen: screen{in: c.env.In, out: c.env.Out}, model: m, sampler: s, samples: c.samples}
	return t.run(ctx)
}
