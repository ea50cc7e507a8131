package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/pkg/exporter"
)

// Command is "pmdammv check".
type Command struct {
	*cli.Command
	env   *cli.Env
	agent *cli.Agent
	all   bool
	json  bool
	quiet bool
	user  string
}

const about = `Find everything that is wrong with MMV files: where, what the agent does about
it, and what the program that writes the file should do. Without arguments, look
at the files of this host's agent.`

const notes = `The exit status is 0 when nothing is wrong, 1 when there are only warnings, and
2 when there are errors, or something cannot be looked at.`

// NewCommand makes the command.
func NewCommand(e *cli.Env) *Command {
	c := &Command{Command: cli.NewCommand("check", "[file | directory]...", about), env: e}
	c.Notes, c.Short, c.Completes = notes, "say what is wrong with files, and why metrics are missing", "files"
	f := c.Flags
	f.BoolVarP(&c.all, "all", "a", false, "list every finding, not only the first 20 of a kind in a file")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "say nothing of files with which nothing is wrong")
	f.BoolVar(&c.json, "json", false, "print JSON (TOOLS.md describes it)")
	f.StringVarP(&c.user, "username", "U", "", "`user` as which the agent runs (default $PCP_USER)")
	c.agent = c.AgentOptions(e)
	return c
}

// Run is the command; it returns the exit status.
func (c *Command) Run(args []string) int {
	if status, ok := c.Parse(c.env, args); !ok {
		return status
	}
	o, err := c.agent.Options()
	if err != nil {
		return c.Misused(c.env, err)
	}
	if _, err := findUser(c.user); c.user != "" && err != nil {
		return c.Misused(c.env, err)
	}
	reports, status := c.reports(c.options(o), c.Flags.Args())
	for _, r := range reports {
		status = max(status, r.Status())
	}
	if err := c.print(reports, status); err != nil {
		c.env.Complain(c.Name, err)
		return cli.Usage
	}
	return status
}

// options are what the command line says of checks.
func (c *Command) options(agent exporter.Options) Options {
	o := Options{Agent: agent, User: c.user, Limit: 20}
	if o.User == "" {
		o.User = c.env.Conf("PCP_USER")
	}
	if c.all {
		o.Limit = 0
	}
	for _, tmp := range []string{c.confFile("PCP_TMP_DIR"), "/var/lib/pcp/tmp", "/var/tmp", "/var/tmp/pcp", "/tmp", "/tmp/pcp", os.TempDir()} {
		if dir := filepath.Join(tmp, agent.Prefix); tmp != "" && !slices.Contains(o.Other, dir) {
			o.Other = append(o.Other, dir)
		}
	}
	return o
}

func (c *Command) confFile(name string) string {
	if c.env.ConfFile == nil {
		return ""
	}
	return c.env.ConfFile(name)
}

// reports looks at all that was asked for; what cannot be looked at is said.
func (c *Command) reports(o Options, args []string) (reports []*Report, status int) {
	host := o.Agent.Dir
	if len(args) == 0 {
		args = []string{host}
	}
	for _, arg := range args {
		r, err := one(o, c.env.FindFile(arg), host)
		if err != nil {
			c.env.Complain(c.Name, err)
			status = cli.Usage
		}
		if r == nil {
			continue
		}
		if arg == host {
			if file := c.confFile("PCP_TMP_DIR"); file != "" && file != c.env.Conf("PCP_TMP_DIR") {
				r.Note = "PCP_TMP_DIR is set in the environment; for what is started without it, it is " + file
			}
			if f := pmcdKnows(c.env.Conf("PCP_PMCDCONF_PATH"), o.Agent); f != nil {
				r.Findings = append(r.Findings, *f)
			}
		}
		reports = append(reports, r)
	}
	return reports, status
}

// one looks at a directory or a file. A file in the host's directory is seen
// among the others there.
func one(o Options, arg, host string) (*Report, error) {
	st, err := os.Lstat(arg)
	if arg != host && (err != nil || !st.IsDir() && !cli.IsDir(arg)) {
		if err != nil {
			return nil, err
		}
		if !sameDir(filepath.Dir(arg), host) {
			return Alone(o, arg)
		}
		r, err := Directory(o)
		if r != nil {
			r.only(filepath.Base(arg))
		}
		return r, err
	}
	if arg != host {
		o.Agent.Dir, o.Agent.Identities = arg, "" // what is kept there is of another directory
	}
	return Directory(o)
}

func sameDir(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// only drops all files but one.
func (r *Report) only(name string) {
	for i := range r.Files {
		if r.Files[i].Name == name {
			r.Files = r.Files[i : i+1]
			return
		}
	}
}

// pmcdKnows looks for the agent in pmcd's configuration. Where there is none,
// PCP is not installed, and that is not for us to judge.
func pmcdKnows(path string, o exporter.Options) *Finding {
	text, err := os.ReadFile(path)
	if err != nil || configured(string(text), o.Prefix, o.Domain) {
		return nil
	}
	f := fileFinding("not-configured", "%s has no line for the agent %s with domain %d", path, o.Prefix, o.Domain)
	return &f
}

func (c *Command) print(reports []*Report, status int) error {
	if c.json {
		enc := json.NewEncoder(c.env.Stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(struct {
			Status  int       `json:"status"`
			Reports []*Report `json:"reports"`
		}{status, append([]*Report{}, reports...)})
	}
	p := printer{w: c.env.Stdout, colour: c.env.Colour(), quiet: c.quiet}
	if p.colour {
		p.w = c.env.Out // Stdout shows escapes; text from files the printer makes visible itself
	}
	for i, r := range reports {
		if i > 0 {
			p.printf("\n")
		}
		p.report(r)
	}
	if p.err != nil {
		return fmt.Errorf("write: %w", p.err)
	}
	return nil
}
