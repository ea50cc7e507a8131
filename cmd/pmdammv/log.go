package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"
)

// logFile is the agent's log in the form of PCP's logs.
type logFile struct {
	*slog.Logger
	level  *slog.LevelVar
	own    bool // a file of its own, with first and last line
	oldest int  // the log that path.prev was, open
}

// openLog opens the log: path, or standard error for "-" (in the journal's form
// if it goes there). A log that is there is kept as path.prev. Standard error
// goes to the log as well, so that whatever the runtime may say is in it.
func openLog(name, path string, debug bool) (l *logFile, err error) {
	l = &logFile{level: &slog.LevelVar{}, own: path != "-"}
	l.setDebug(debug)
	if l.own {
		l.oldest = keep(path)
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0o644)
		if err != nil {
			return nil, &os.PathError{Op: "open log", Path: path, Err: err}
		}
		if err := unix.Dup3(fd, 2, 0); err != nil {
			return nil, fmt.Errorf("log to standard error: %w", err)
		}
		_ = unix.Close(fd)
		host, _ := os.Hostname()
		fmt.Fprintf(os.Stderr, "Log for %s on %s started %s\n\n", name, host, time.Now().Format(time.ANSIC))
	}
	core := zapcore.NewCore(&encoder{name: name, pid: os.Getpid(), journal: !l.own && stderrIsJournal(), MapObjectEncoder: zapcore.NewMapObjectEncoder()}, zapcore.Lock(os.Stderr), zapcore.DebugLevel)
	l.Logger = slog.New(&handler{core, l.level})
	return l, nil
}

// keep keeps a log that is there as path.prev, and returns the one that path.prev
// was, open, or -1. A device, a FIFO or a directory is not a log, and stays
// where it is, as does all of /dev. (A link is renamed, not followed: who may
// make one beside the log must not choose which file root empties.)
func keep(path string) int {
	st, err := os.Lstat(path) //nolint:gosec // the file that was asked for
	if err != nil || !st.Mode().IsRegular() && st.Mode().Type() != os.ModeSymlink || filepath.Dir(path) == "/dev" {
		return -1
	}
	oldest, err := unix.Open(path+".prev", unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		oldest = -1
	}
	_ = os.Rename(path, path+".prev") //nolint:gosec // the file that was asked for
	return oldest
}

// letOldestGo ends the log for which there is no name any more. To delete a file
// takes the kernel 0.3 ms, so nothing waits for it.
func (l *logFile) letOldestGo() {
	if l.own && l.oldest >= 0 {
		_ = unix.Close(l.oldest)
	}
}

func (l *logFile) setDebug(on bool) {
	if on {
		l.level.Set(slog.LevelDebug)
	} else {
		l.level.Set(slog.LevelInfo)
	}
}

func (l *logFile) close() {
	if l.own {
		fmt.Fprintf(os.Stderr, "\nLog finished %s\n", time.Now().Format(time.ANSIC))
	}
}

// handler hands records to zap's core. (Its Logger would bring net/http along,
// which takes 0.8 ms to start and 1.4 MB.)
type handler struct {
	core  zapcore.Core
	level *slog.LevelVar
}

// Enabled is for slog.
func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle is for slog.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	fields := make([]zapcore.Field, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		fields = append(fields, field(a))
		return true
	})
	if err := h.core.Write(zapcore.Entry{Level: zapLevel(r.Level), Time: r.Time, Message: r.Message}, fields); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// WithAttrs is for slog.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := make([]zapcore.Field, len(attrs))
	for i, a := range attrs {
		fields[i] = field(a)
	}
	return &handler{h.core.With(fields), h.level}
}

// WithGroup is for slog. There are no groups in PCP's logs.
func (h *handler) WithGroup(string) slog.Handler { return h }

func field(a slog.Attr) zapcore.Field {
	switch v := a.Value.Resolve().Any().(type) {
	case error:
		return zapcore.Field{Key: a.Key, Type: zapcore.StringType, String: v.Error()}
	case fmt.Stringer:
		return zapcore.Field{Key: a.Key, Type: zapcore.StringType, String: v.String()}
	case string:
		return zapcore.Field{Key: a.Key, Type: zapcore.StringType, String: v}
	default:
		return zapcore.Field{Key: a.Key, Type: zapcore.ReflectType, Interface: v}
	}
}

func zapLevel(l slog.Level) zapcore.Level {
	switch {
	case l < slog.LevelInfo:
		return zapcore.DebugLevel
	case l < slog.LevelWarn:
		return zapcore.InfoLevel
	case l < slog.LevelError:
		return zapcore.WarnLevel
	default:
		return zapcore.ErrorLevel
	}
}

// encoder writes lines as pmNotifyErr(3) does, or for the journal, which adds
// time, name and pid itself and takes the level from the line's start.
type encoder struct {
	*zapcore.MapObjectEncoder
	name    string
	pid     int
	journal bool
}

var buffers = buffer.NewPool()

// Clone is for zap.
func (e *encoder) Clone() zapcore.Encoder {
	c := &encoder{zapcore.NewMapObjectEncoder(), e.name, e.pid, e.journal}
	maps.Copy(c.Fields, e.Fields)
	return c
}

// EncodeEntry is for zap.
func (e *encoder) EncodeEntry(ent zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	all := e.Clone().(*encoder)
	for _, f := range fields {
		f.AddTo(all)
	}
	var line []byte
	level, priority := levelName(ent.Level)
	if e.journal {
		line = fmt.Appendf(line, "<%d>%s", priority, ent.Message)
	} else {
		line = fmt.Appendf(line, "[%s] %s(%d) %s: %s", ent.Time.Format("Mon Jan _2 15:04:05"), e.name, e.pid, level, ent.Message)
	}
	keys := make([]string, 0, len(all.Fields))
	for k := range all.Fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if s, ok := all.Fields[k].(string); ok {
			line = fmt.Appendf(line, " %s=%q", k, s)
		} else {
			line = fmt.Appendf(line, " %s=%v", k, all.Fields[k])
		}
	}
	b := buffers.Get()
	_, err := b.Write(append(line, '\n'))
	return b, err
}

// levelName gives a level's name in PCP's logs, and syslog's number for it.
func levelName(l zapcore.Level) (string, int) {
	switch l {
	case zapcore.DebugLevel:
		return "Debug", 7
	case zapcore.InfoLevel:
		return "Info", 6
	case zapcore.WarnLevel:
		return "Warning", 4
	default:
		return "Error", 3
	}
}
