package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pmda"
	"pmdammv/pkg/reader"
)

// run is the agent: it serves pmcd on standard input and output until that
// closes them or a signal comes.
func run(o *options) error {
	signal.Ignore(unix.SIGPIPE)
	cfg := readConfig()
	path := o.log
	if path == "" {
		path = o.prefix + ".log"
	}
	log, err := openLog(o.name, path, o.debug != "")
	if err != nil {
		return err
	}
	defer log.close()
	if err := serve(o, cfg, log); err != nil {
		log.Error(err.Error())
		return err
	}
	return nil
}

func serve(o *options, cfg config, log *logFile) error {
	if err := confine(o.user, cfg.get("PCP_USER")); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	exp, err := newExporter(o, cfg, log)
	if err != nil {
		return err
	}
	defer exp.Close()
	exp.Start()
	go reloadOnHangup(ctx, exp)
	agent := pmda.New(pmda.Config{Name: o.prefix, Domain: o.domain}, exp, log.Logger)
	return agent.Serve(ctx, pmda.NewPipe(0, 1).Conn())
}

func reloadOnHangup(ctx context.Context, exp *exporter.Exporter) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, unix.SIGHUP)
	for {
		select {
		case <-hup:
			exp.Rescan()
		case <-ctx.Done():
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
		Event: func(ev exporter.Event) { logEvent(log, &limit, ev) },
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
	var fields []zap.Field
	if ev.File != "" {
		fields = append(fields, zap.String("file", ev.File))
	}
	switch ev.Level {
	case exporter.Info:
		log.Info(ev.Text, fields...)
	case exporter.Warning:
		log.Warn(ev.Text, fields...)
	case exporter.Error:
		log.Error(ev.Text, fields...)
	}
}
