package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	agent   string
	minutes float64
	seed    int64
	only    *regexp.Regexp // actors
	stages  *regexp.Regexp
	keep    bool
	racy    bool // the agent is built with the race detector
	tmpfs   string
	disk    string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "torture: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 {
		switch args[0] {
		case childWriter:
			return writeUntilKilled(args[1:])
		case childBlind:
			return becomeBlind(args[1:])
		}
	}
	opts, err := parse(args)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // whoever reads what is printed may go before all is cleaned up
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	t := &torture{r: newReport(os.Stderr), opts: *opts}
	if opts.racy {
		t.r.tooSlow = tooSlowRacy // also for client.py, which tells of more
	}
	err = t.all(ctx)
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("interrupted"))
	}
	if good := t.r.finish(fmt.Sprintf("torture -minutes %g -seed %d -agent %s", opts.minutes, opts.seed, opts.agent)); !good {
		err = errors.Join(err, errors.New("not all was well"))
	}
	return err
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("torture", flag.ContinueOnError)
	f.StringVar(&o.agent, "agent", "bin/pmdammv", "the agent")
	f.Float64Var(&o.minutes, "minutes", 1, "how long")
	f.Int64Var(&o.seed, "seed", 0, "where chance begins; 0: somewhere")
	only := f.String("only", "", "only actors that match this regular expression")
	stages := f.String("stages", "", "only stages that match this regular expression")
	f.BoolVar(&o.keep, "keep", false, "keep the directories")
	f.StringVar(&o.tmpfs, "tmpfs", "/dev/shm", "a directory on tmpfs")
	f.StringVar(&o.disk, "disk", "/var/tmp", "a directory that is not")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return nil, err
	}
	if o.stages, err = regexp.Compile(*stages); err != nil {
		return nil, err
	}
	if o.agent, err = filepath.Abs(o.agent); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(o.agent)
	if err != nil {
		return nil, err
	}
	for _, s := range info.Settings {
		o.racy = o.racy || s.Key == "-race" && s.Value == "true"
	}
	if o.seed == 0 {
		o.seed = time.Now().UnixNano() % 1e9
	}
	return o, nil
}

// all runs all stages.
func (t *torture) all(ctx context.Context) error {
	built, err := os.MkdirTemp("", "torture.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built) //nolint:errcheck // nothing of value
	t.library = filepath.Join(built, "writer")
	gcc := command("gcc", "-O1", "-o", t.library, "test/writers/writer.c", "-lpcp_mmv", "-lpcp")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.library = ""
		t.r.remember("not done: programs with libpcp_mmv: %v %s", err, out)
	}
	total := time.Duration(t.opts.minutes * float64(time.Minute))
	stages := []struct {
		name  string
		share time.Duration // percent of the time
		play  func(name string, d time.Duration) error
	}{
		{"rewriting", 24, t.rewriting(ctx, t.opts.tmpfs)},
		{"churn/tmpfs", 6, t.alone(ctx, t.opts.tmpfs, churn, nil)},
		{"churn/disk", 4, t.alone(ctx, t.opts.disk, churn, nil)},
		{"thousand", 3, t.alone(ctx, t.opts.tmpfs, thousand, nil)},
		{"names", 3, t.alone(ctx, t.opts.tmpfs, pidNames, nil)},
		{"together/tmpfs", 22, func(n string, d time.Duration) error { return t.together(ctx, t.opts.tmpfs, n, d) }},
		{"together/disk", 16, func(n string, d time.Duration) error { return t.together(ctx, t.opts.disk, n, d) }},
		{"limits/files", 3, t.alone(ctx, t.opts.tmpfs, fewFiles, nil, "--max-files", strconv.Itoa(maxFiles))},
		{"limits/descriptors", 3, t.alone(ctx, t.opts.disk, fewDescriptors, limited(40))},
		{"blind/instances", 4, t.blind(ctx, t.opts.tmpfs, "instances")},
		{"blind/watches", 4, t.blind(ctx, t.opts.disk, "watches")},
		{"directory/tmpfs", 4, t.alone(ctx, t.opts.tmpfs, directories, nil)},
		{"directory/disk", 4, t.alone(ctx, t.opts.disk, directories, nil)},
	}
	for _, s := range stages {
		if ctx.Err() != nil {
			return nil
		}
		if !t.opts.stages.MatchString(s.name) {
			continue
		}
		if err := s.play(s.name, total*s.share/100); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// alone is a stage with one actor and one agent.
func (t *torture) alone(ctx context.Context, base string, play func(*actor), wrap func(*exec.Cmd) error, options ...string) func(string, time.Duration) error {
	return func(name string, d time.Duration) error {
		s, err := t.newStage(ctx, base, name)
		if err != nil {
			return err
		}
		defer s.close()
		a, err := s.newAgent("agent", false, wrap, options...)
		if err != nil {
			return err
		}
		s.agents = append(s.agents, a)
		c, err := connect(a)
		if err != nil {
			t.r.remember("not done: %s: %v %s", name, err, a.tail())
			a.stopping.Store(true)
			return nil
		}
		_ = c.control(controlFiles) // after a look
		blind := isBlind(a)
		if strings.HasPrefix(name, "blind/") && !blind {
			t.r.remember("not done: %s: the agent has file events", name)
			return nil
		}
		deadline, cancel := context.WithTimeout(s.ctx, d)
		defer cancel()
		act := &actor{stage: s, ctx: deadline, name: "file", rng: s.rand("alone"), c: c, blind: blind}
		play(act)
		s.faultsOf(c)
		return s.result()
	}
}
