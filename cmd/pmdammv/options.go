package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/reader"
)

// options are the command line.
type options struct {
	name          string // of the program, without leading path
	domain        uint32
	log           string
	user          string
	debug         string
	unix          string // path
	inet          string // port
	ipv6          string // port
	prefix        string
	identities    string
	fileMetrics   string
	sanitizeNames bool
	processCheck  string
	maxFiles      int
	maxFileSize   int64
}

const usage = `Usage: pmdammv [options]
       pmdammv check | dump | list | watch | completion ...

pmdammv is a PMDA: pmcd starts it, or is told where it listens, and asks it
for the metrics in the memory-mapped-value files in $PCP_TMP_DIR/mmv.
The second form is for people: pmdammv help says more.

Options:
`

// parseOptions reads the command line; after --help and --version, whose text
// goes to standard output, the error is pflag.ErrHelp.
func parseOptions(args []string) (*options, error) {
	o := &options{name: filepath.Base(args[0]), prefix: "mmv", domain: 70}
	if o.name == "pmdapmproxy" {
		o.prefix, o.domain = "pmproxy", 4
	}
	f := o.flags()
	help := f.BoolP("help", "?", false, "show this and exit")
	showVersion := f.BoolP("version", "V", false, "show the version and exit")
	if err := f.Parse(args[1:]); errors.Is(err, pflag.ErrHelp) { // -h, of which pflag knows
		*help = true
	} else if err != nil {
		return nil, err
	}
	switch {
	case *help:
		_, err := fmt.Fprint(os.Stdout, usage, f.FlagUsages()) //nolint:forbidigo // not an agent then
		return nil, cmp.Or(err, pflag.ErrHelp)
	case *showVersion:
		_, err := fmt.Fprintln(os.Stdout, "pmdammv version", version) //nolint:forbidigo // not an agent then
		return nil, cmp.Or(err, pflag.ErrHelp)
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, o.check()
}

// flags defines the options, with their present values as defaults.
func (o *options) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet(o.name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.SortFlags = false
	f.Uint32VarP(&o.domain, "domain", "d", o.domain, "domain number of all metrics, as in pmcd.conf")
	f.StringVarP(&o.log, "log", "l", "", "log `file`, - for standard error\n(default PREFIX.log, or the journal when systemd starts it)")
	f.StringVarP(&o.user, "username", "U", "", "`user` to run as, by name or number, when started as root (default $PCP_USER)")
	f.StringVarP(&o.debug, "debug", "D", "", "debug `options` in the manner of pmdbg(1); any has connections\nand malformed requests logged as well")
	f.StringVarP(&o.unix, "unix", "u", "", "listen on this unix socket, a `path`, instead of using the pipe from pmcd")
	f.StringVarP(&o.inet, "inet", "i", "", "listen on this `port` of 127.0.0.1, by number or name")
	f.StringVarP(&o.ipv6, "ipv6", "6", "", "listen on this `port` of ::1, by number or name")
	f.StringVar(&o.prefix, "prefix", o.prefix, "first component of all names, and the directory below $PCP_TMP_DIR")
	f.StringVar(&o.identities, "identities", "", "`file` that keeps the numbers given to files, or none\n(default $PCP_VAR_DIR/config/pmda/PREFIX.DOMAIN.identities)")
	f.StringVar(&o.fileMetrics, "file-metrics", "problems", "metrics about the files: off, problems or all")
	f.BoolVar(&o.sanitizeNames, "sanitize-names", false, "replace by _ what may not be in a metric's name, in the names of files")
	f.StringVar(&o.processCheck, "process-check", "host", "whether the writer runs: host, any (also in PID namespaces below),\nstrict (it must map the file) or off")
	f.IntVar(&o.maxFiles, "max-files", 10000, "most files to map")
	f.Int64Var(&o.maxFileSize, "max-file-size", 256<<20, "largest file to map, in `bytes`")
	return f
}

func (o *options) check() error {
	switch {
	case o.domain < 1 || o.domain > 510:
		return fmt.Errorf("domain %d is not in 1..510", o.domain)
	case o.prefix == "" || strings.Trim(o.prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "":
		return fmt.Errorf("prefix %q cannot be a name's component", o.prefix)
	case o.maxFiles < 1:
		return fmt.Errorf("--max-files=%d is less than 1", o.maxFiles)
	case o.maxFileSize < reader.HeaderSize:
		return fmt.Errorf("--max-file-size=%d is less than %d, which every file has", o.maxFileSize, reader.HeaderSize)
	case o.inet == "0" || o.ipv6 == "0":
		return errors.New("port 0 is any, and pmcd could not know which")
	}
	switch exporter.FileMetrics(o.fileMetrics) {
	case exporter.FileMetricsOff, exporter.FileMetricsProblems, exporter.FileMetricsAll:
	default:
		return fmt.Errorf("--file-metrics=%s is none of off, problems, all", o.fileMetrics)
	}
	switch reader.ProcessCheck(o.processCheck) {
	case reader.ProcessHost, reader.ProcessAny, reader.ProcessStrict, reader.ProcessOff:
	default:
		return fmt.Errorf("--process-check=%s is none of host, any, strict, off", o.processCheck)
	}
	return checkDebug(o.debug)
}

// checkDebug tells whether these may be debug options.
func checkDebug(s string) error {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-, ") != "" {
		return fmt.Errorf("bad debug options %q", s)
	}
	return nil
}
