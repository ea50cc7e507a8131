package pmda_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// logs is a slog.Handler that keeps what an agent logs.
type logs struct {
	slog.Handler
	mu      sync.Mutex
	records []slog.Record
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }

func (l *logs) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r.Clone())
	return nil
}

// all are the messages so far.
func (l *logs) all() []string { return l.having(func(slog.Record) bool { return true }) }

// with are those that contain a text.
func (l *logs) with(text string) []string {
	return l.having(func(r slog.Record) bool { return strings.Contains(r.Message, text) })
}

// at are those of one level.
func (l *logs) at(level slog.Level) []string {
	return l.having(func(r slog.Record) bool { return r.Level == level })
}

func (l *logs) having(ok func(slog.Record) bool) (messages []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if ok(r) {
			messages = append(messages, r.Level.String()+" "+r.Message)
		}
	}
	return messages
}
