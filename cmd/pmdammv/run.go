package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

// run is the agent: it serves pmcd on standard input and output until that
// closes them, or on sockets, until a signal comes.
func run(o *options) error {
	signal.Ignore(unix.SIGPIPE)
	unix.Umask(unix.Umask(0o022) | 0o022)
	cfg := readConfig()
	path := o.log
	if path == "" && stderrIsJournal() {
		path = "-"
	} else if path == "" {
		path = o.prefix + ".log"
	}
	log, err := openLog(o.name, path, o.debug != "")
	if err != nil {
		return err
	}
	err = serve(o, cfg, log)
	if err != nil {
		log.Error(err.Error())
	}
	log.close()
	if err != nil {
		os.Exit(1) // what there is to say is in the log
	}
	return nil
}

func serve(o *options, cfg config, log *logFile) error {
	m := findManager()
	sockets, err := o.listeners(cfg)
	if err != nil {
		return err
	}
	defer closeAll(sockets)
	if err := confine(o.user, cfg.get("PCP_USER")); err != nil {
		return err
	}
	time.AfterFunc(20*time.Millisecond, func() { settleIn(log) })
	exp, err := newExporter(o, cfg, log)
	if err != nil {
		return err
	}
	defer exp.Close()
	exp.Start()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	caught, served := make(chan struct{}), make(chan struct{})
	defer close(served)
	go handleSignals(stop, caught, served, exp, m) // the runtime takes a thread and 0.25 ms for that: the first answer does not wait
	agent := pmda.New(pmda.Config{Name: o.prefix, Domain: o.domain}, exp, log.Logger)
	if len(sockets) > 0 {
		<-caught
		return serveSockets(ctx, agent, exp, m, pmcdUsers(cfg.get("PCP_USER")), sockets)
	}
	return agent.Serve(ctx, pmda.NewPipe(0, 1).Conn())
}

// settleIn does what a first answer does not wait for.
func settleIn(log *logFile) {
	log.letOldestGo()
	if os.Geteuid() == 0 { // all others have done it before they looked at a file
		if err := noNewPrivileges(); err != nil {
			log.Warn(err.Error())
		}
	}
	useOneProcessor()
}

// useOneProcessor has the runtime run one goroutine at a time, unless GOMAXPROCS
// says how many. pmcd asks one thing at a time. While there is a processor to
// spare, the runtime leaves the one that waits for the next request where it is,
// and looks after it 50 times: more than the request takes.
func useOneProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

// stopTime is how long pmcd may take to read a reply when the agent is to end.
// pmda waits two seconds for the peers of sockets.
const stopTime = 3 * time.Second

// handleSignals calls stop at SIGTERM and SIGINT, and has all files looked at at
// SIGHUP, until served is closed. It closes caught when no signal can be lost any more.
func handleSignals(stop func(), caught chan<- struct{}, served <-chan struct{}, exp *exporter.Exporter, m manager) {
	end, hup := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM, unix.SIGINT)
	signal.Notify(hup, unix.SIGHUP)
	close(caught)
	for {
		select {
		case <-end:
			stop()
			select {
			case <-served:
			case <-time.After(stopTime): // nothing wakes a write to a pipe that nobody reads
				os.Exit(0)
			}
		case <-hup:
			m.reloading()
			exp.Rescan()
			m.tell("READY=1")
		case <-served:
			return
		}
	}
}

func newExporter(o *options, cfg config, log *logFile) (*exporter.Exporter, error) {
	identities := o.identities
	switch identities {
	case "none":
		identities = ""
	case "":
		identities = filepath.Join(cfg.get("PCP_VAR_DIR"), "config", "pmda", fmt.Sprintf("%s.%d.identities", o.prefix, o.domain))
	}
	var limit limiter
	return exporter.New(exporter.Options{
		Dir:           filepath.Join(cfg.get("PCP_TMP_DIR"), o.prefix),
		Prefix:        o.prefix,
		Domain:        o.domain,
		PCPVersion:    cfg.get("PCP_VERSION"),
		Identities:    identities,
		FileMetrics:   exporter.FileMetrics(o.fileMetrics),
		SanitizeNames: o.sanitizeNames,
		Reader: reader.Options{
			MaxFiles: o.maxFiles, MaxFileSize: o.maxFileSize, Process: reader.ProcessCheck(o.processCheck),
		},
		Event:     func(ev exporter.Event) { logEvent(log, &limit, ev) },
		Published: newCollector().changed,
		Debug: func(options string) error {
			if err := checkDebug(options); err != nil {
				return err
			}
			log.setDebug(options != "")
			return nil
		},
	})
}

func logEvent(log *logFile, limit *limiter, ev exporter.Event) {
	ok, note := limit.take(ev.File, time.Now())
	if note != "" {
		log.Warn(note)
	}
	if !ok {
		return
	}
	var attrs []slog.Attr
	if ev.File != "" {
		attrs = append(attrs, slog.String("file", ev.File))
	}
	level := map[exporter.Level]slog.Level{exporter.Info: slog.LevelInfo, exporter.Warning: slog.LevelWarn, exporter.Error: slog.LevelError}[ev.Level]
	log.LogAttrs(context.Background(), level, ev.Text, attrs...)
}
