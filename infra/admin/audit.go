package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"strings"
	"time"

	"signalbox.dev/shared/calls"
)

// auditLog records changes, a line each, on standard error and in a file.
type auditLog struct {
	words io.Writer    // lines for people on standard error; nil where it gets JSON
	lines slog.Handler // JSON on standard error
	file  slog.Handler // nil where there is no file
	who   []any
	now   func() time.Time
	// lost is the first failure to write a line to the file.
	lost error
}

func newAuditLog(s *session, t *target, file io.Writer) *auditLog {
	log := &auditLog{now: s.now, who: []any{"user", "unknown", "target", t.name}}
	if u, err := user.Current(); err == nil {
		log.who[1] = u.Username
	}
	if t.identity != "" {
		log.who = append(log.who, "aws_identity", t.identity)
	}
	if s.terminal && !s.out.json {
		log.words = s.stderr
	}
	log.lines = slog.NewJSONHandler(s.stderr, nil)
	if file != nil {
		log.file = slog.NewJSONHandler(file, nil)
	}
	return log
}

// record writes a line; of what came of it only JSON has the error, which
// people read in the command's last line.
func (l *auditLog) record(ctx context.Context, action, outcome string, err error, attrs []any) {
	record := slog.NewRecord(l.now(), slog.LevelInfo, "audit", 0)
	record.Add(l.who...)
	record.Add("action", action, "outcome", outcome)
	record.Add(attrs...)
	if l.words != nil {
		_, _ = fmt.Fprintln(l.words, inWords(action, outcome, record))
	}
	if err != nil {
		record.Add(slog.Any("error", calls.Describe(err)))
	}
	if l.words == nil {
		_ = l.lines.Handle(ctx, record) // there is nowhere else to report it
	}
	if l.file == nil {
		return
	}
	if fault := l.file.Handle(ctx, record); fault != nil && l.lost == nil {
		l.lost = fmt.Errorf("the audit line of %s (%s) could not be written: %w", action, outcome, fault)
	}
}

// inWords is a record as people read it: audit: key.delete done: user root, …
func inWords(action, outcome string, record slog.Record) string {
	var parts []string
	record.Attrs(func(a slog.Attr) bool {
		if value := a.Value.String(); value != "" && a.Key != "action" && a.Key != "outcome" {
			parts = append(parts, strings.ReplaceAll(a.Key, "_", " ")+" "+printable(value))
		}
		return true
	})
	return fmt.Sprintf("audit: %s %s: %s", action, outcome, strings.Join(parts, ", "))
}

// audit notes a change that was tried: action names it, err is what came of it,
// and attrs name what it was about, by ids and never by secrets.
func (s *session) audit(ctx context.Context, action string, err error, attrs ...any) {
	s.audits.record(ctx, action, outcome(err), err, attrs)
}

// begin notes that a change of many things has begun: a process that is killed
// writes no other line.
func (s *session) begin(ctx context.Context, action string, attrs ...any) {
	s.audits.record(ctx, action, "begun", nil, attrs)
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case exitCode(err) == exitOther:
		return "uncertain"
	default:
		return "refused"
	}
}
