package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"pmdammv/cmd/pmdammv/internal/cli"
	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/reader"
)

// Command is "pmdammv dump".
type Command struct {
	*cli.Command
	env   *cli.Env
	json  bool
	limit int64
}

const about = `Print all that is in MMV files, as PCP's mmvdump of release 7 does. A name that
is no file is looked for in the directory of this host's agent.`

const notes = `The exit status is 0, or 1 when something in a file is wrong ('check' says what
that means), or 2 when one cannot be read or is not an MMV file.`

// NewCommand makes the command.
func NewCommand(e *cli.Env) *Command {
	c := &Command{Command: cli.NewCommand("dump", "file...", about), env: e}
	c.Notes, c.Short, c.Completes = notes, "print all that is in files", "files"
	c.Flags.BoolVar(&c.json, "json", false, "print one JSON document for each file (TOOLS.md describes it)")
	c.Flags.Int64Var(&c.limit, "max-file-size", image.MaxSize, "largest file, in `bytes`")
	return c
}

// Run is the command; it returns the exit status.
func (c *Command) Run(args []string) int {
	if status, ok := c.Parse(c.env, args); !ok {
		return status
	}
	if c.Flags.NArg() == 0 {
		return c.Misused(c.env, errors.New("which file?"))
	}
	status := cli.OK
	for i, path := range c.Flags.Args() {
		if i > 0 && !c.json {
			fmt.Fprintln(c.env.Stdout) //nolint:errcheck // what follows tells
		}
		bad, err := c.file(c.env.FindFile(path))
		switch {
		case err != nil:
			c.env.Complain(c.Name, err)
			status = cli.Usage
		case bad:
			status = max(status, cli.Failed)
		}
	}
	return status
}

func (c *Command) file(path string) (bad bool, err error) {
	data, err := image.Read(path, c.limit)
	if err != nil {
		return false, err
	}
	if err := whole(path, data); err != nil {
		return false, err
	}
	doc := Decode(path, data, time.Now())
	if c.json {
		return doc.bad(), encode(c.env.Stdout, doc)
	}
	return Text(c.env.Stdout, doc)
}

// whole tells whether there is a header. Nothing of a file that is no MMV file
// is shown.
func whole(path string, data []byte) error {
	n := min(len(data), len(reader.Tag))
	switch {
	case string(data[:n]) != reader.Tag[:n]:
		what := image.Guess(data)
		if what != "" {
			what = ": it looks like " + what
		}
		return fmt.Errorf("%s: %w%s", path, reader.ErrTag, what)
	case len(data) < reader.HeaderSize:
		return fmt.Errorf("%s: %w: %d bytes", path, reader.ErrTruncated, len(data))
	}
	return nil
}

func encode(w io.Writer, doc *Document) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(doc)
}

// bad tells whether anything in the file is wrong.
func (d *Document) bad() bool {
	bad, _ := Text(io.Discard, d)
	return bad
}
