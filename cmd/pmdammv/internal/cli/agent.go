package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/reader"
)

// Agent are the options that say which agent is meant.
type Agent struct {
	Dir           string
	prefix        string
	domain        uint32
	identities    string
	sanitizeNames bool
	processCheck  string
	maxFiles      int
	maxFileSize   int64

	command *Command
	env     *Env
}

// AgentOptions defines the options that say which agent is meant.
func (c *Command) AgentOptions(e *Env) *Agent {
	a := &Agent{command: c, env: e, prefix: "mmv", domain: 70}
	if e.Program == "pmdapmproxy" {
		a.prefix, a.domain = "pmproxy", 4
	}
	f := c.Flags
	c.Group("Options that must be as the agent's")
	f.StringVar(&a.prefix, "prefix", a.prefix, "first part of all names, and `name` of the directory below $PCP_TMP_DIR")
	f.Uint32Var(&a.domain, "domain", a.domain, "domain `number` of all metrics")
	f.StringVar(&a.identities, "identities", "", "`file` with the numbers that the agent has given to files, or none")
	f.BoolVar(&a.sanitizeNames, "sanitize-names", false, "replace by _ what may not be in a metric's name, in the names of files")
	f.StringVar(&a.processCheck, "process-check", string(reader.ProcessHost), "`how` to see whether a writer runs: host, any, strict or off")
	f.IntVar(&a.maxFiles, "max-files", 10000, "greatest `number` of files")
	f.Int64Var(&a.maxFileSize, "max-file-size", 256<<20, "largest file, in `bytes`")
	return a
}

// DirOption defines the option that names the directory.
func (a *Agent) DirOption() {
	a.command.Flags.StringVar(&a.Dir, "dir", "", "look at this `directory`, not at $PCP_TMP_DIR/"+a.prefix)
}

// HostDir is the directory of this host's agent.
func (a *Agent) HostDir() string { return filepath.Join(a.env.Conf("PCP_TMP_DIR"), a.prefix) }

// Options are those of the agent, for the directory asked for. Numbers are
// looked up where this host's agent keeps them.
func (a *Agent) Options() (exporter.Options, error) {
	dir := a.Dir
	if dir == "" {
		dir = a.HostDir()
	}
	if !a.command.Flags.Changed("domain") && a.prefix == "pmproxy" {
		a.domain = 4
	}
	identities := a.identities
	switch identities {
	case "none":
		identities = ""
	case "":
		identities = filepath.Join(a.env.Conf("PCP_VAR_DIR"), "config", "pmda", fmt.Sprintf("%s.%d.identities", a.prefix, a.domain))
	}
	if _, err := os.Stat(identities); errors.Is(err, fs.ErrNotExist) {
		identities = "" // no agent has kept any
	}
	o := exporter.Options{
		Dir: dir, Prefix: a.prefix, Domain: a.domain, PCPVersion: a.env.Conf("PCP_VERSION"),
		Identities: identities, ReadOnly: true, SanitizeNames: a.sanitizeNames,
		Reader: reader.Options{MaxFiles: a.maxFiles, MaxFileSize: a.maxFileSize, Process: reader.ProcessCheck(a.processCheck)},
	}
	return o, a.check()
}

func (a *Agent) check() error {
	const name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	switch reader.ProcessCheck(a.processCheck) {
	case reader.ProcessHost, reader.ProcessAny, reader.ProcessStrict, reader.ProcessOff:
	default:
		return fmt.Errorf("--process-check=%s is none of host, any, strict, off", a.processCheck)
	}
	switch {
	case a.domain < 1 || a.domain > 510:
		return fmt.Errorf("domain %d is not in 1..510", a.domain)
	case a.prefix == "" || strings.Trim(a.prefix, name) != "":
		return fmt.Errorf("prefix %q cannot be a name's component", a.prefix)
	case a.maxFiles < 1:
		return fmt.Errorf("--max-files=%d is less than 1", a.maxFiles)
	case a.maxFileSize < reader.HeaderSize:
		return fmt.Errorf("--max-file-size=%d is less than %d, which every file has", a.maxFileSize, reader.HeaderSize)
	}
	return nil
}
