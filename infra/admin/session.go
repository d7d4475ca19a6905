package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/syncjobs"
)

// session is what a command has to work with.
type session struct {
	db          *dynamodb.Client
	registry    *auth.Registry
	jobs        *syncjobs.Store
	jobWriter   *syncjobs.Writer
	jobLister   *syncjobs.Lister
	credentials *byok.Manager
	wrappings   *byok.Wrappings
	kms         *kms.Client
	outputs     target.Outputs
	files       *files.Manager
	fileStore   *files.Store

	out    output.Writer
	stdin  io.Reader
	stderr io.Writer
	audits *auditLog
	now    func() time.Time
	pause  func(context.Context, time.Duration) error
	// terminal and interactive are the app's.
	terminal, interactive bool
}

func (a *app) session(t *target.Target, asJSON bool, audits io.Writer) *session {
	if a.http != nil {
		t.Config.HTTPClient = a.http
	}
	repeated, retryer := new(atomic.Bool), t.Config.Retryer
	t.Config.Retryer = func() aws.Retryer {
		return calls.NoteRepeats(retryer(), func(err error) {
			// What a response refuses was not applied.
			if response, ok := errors.AsType[*awshttp.ResponseError](err); !ok || response.HTTPStatusCode()/100 != 4 {
				repeated.Store(true)
			}
		})
	}
	db, bucket := dynamodb.NewFromConfig(t.Config), s3.NewFromConfig(t.Config)
	s := &session{
		db:          db,
		registry:    auth.NewRegistry(db, t.Outputs.AccessTableName),
		jobs:        syncjobs.NewStore(db, t.Outputs.SyncJobsTableName),
		jobWriter:   syncjobs.NewWriter(db, t.Outputs.SyncJobsTableName),
		jobLister:   syncjobs.NewLister(db, t.Outputs.SyncJobsTableName),
		credentials: byok.NewManager(db, t.Outputs.CredentialsTableName),
		wrappings:   byok.NewWrappings(db, t.Outputs.CredentialsTableName),
		kms:         kms.NewFromConfig(t.Config),
		outputs:     t.Outputs,
		files:       files.NewManager(bucket, t.Outputs.FilesBucketName),
		fileStore:   files.NewStore(bucket, t.Outputs.FilesBucketName),

		out:      output.Writer{To: a.stdout, JSON: asJSON, Width: a.width},
		stdin:    a.stdin,
		stderr:   a.stderr,
		now:      a.now,
		pause:    a.pause,
		terminal: a.terminal, interactive: a.interactive,
	}
	s.audits = newAuditLog(s, t, audits)
	s.audits.repeated = repeated
	return s
}

// note writes a sentence to standard error, next to the results.
func (s *session) note(format string, args ...any) {
	if !s.out.JSON {
		_, _ = fmt.Fprintf(s.stderr, format+"\n", args...)
		return
	}
	var line struct {
		Note string `json:"note"`
	}
	line.Note = fmt.Sprintf(format, args...)
	_ = output.Writer{To: s.stderr}.Encode(line) // there is nowhere else to report it
}

// progress shows how far a long command is.
func (s *session) progress(total int) (step, end func()) {
	return output.Progress(s.stderr, s.terminal, s.now, total)
}

// workspace finds the workspace that a command means, deleted or not.
func (s *session) workspace(ctx context.Context, p place) (auth.Workspace, error) {
	return s.registry.FindWorkspace(ctx, p.Account, p.Workspace)
}

// auditLog records changes, a line each, on standard error and in a file.
type auditLog struct {
	words io.Writer    // lines for people on standard error; nil where it gets JSON
	lines slog.Handler // JSON on standard error
	file  slog.Handler // nil where there is no file
	who   []any
	now   func() time.Time
	// repeated is set once a call was sent again that may have been applied before.
	repeated *atomic.Bool
	// lost is the first failure to write a line to the file.
	lost error
}

func newAuditLog(s *session, t *target.Target, file io.Writer) *auditLog {
	log := &auditLog{now: s.now, who: []any{"user", "unknown", "target", t.Name}}
	if u, err := user.Current(); err == nil {
		log.who[1] = u.Username
	}
	if t.Identity != "" {
		log.who = append(log.who, "aws_identity", t.Identity)
	}
	if s.terminal && !s.out.JSON {
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
			parts = append(parts, strings.ReplaceAll(a.Key, "_", " ")+" "+output.Printable(value))
		}
		return true
	})
	return fmt.Sprintf("audit: %s %s: %s", action, outcome, strings.Join(parts, ", "))
}

// audit notes a change that was tried: action names it, err is what came of it,
// and attrs name what it was about, by ids and never by secrets.
func (s *session) audit(ctx context.Context, action string, err error, attrs ...any) {
	s.audits.record(ctx, action, s.audits.outcome(err), err, attrs)
}

// begin notes that a change of many things has begun: a process that is killed
// writes no other line.
func (s *session) begin(ctx context.Context, action string, attrs ...any) {
	s.audits.record(ctx, action, "begun", nil, attrs)
}

// outcome is uncertain too where what was refused may be what an earlier attempt did.
func (l *auditLog) outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case exit.Code(err) == exit.Uncertain || l.repeated.Load():
		return "uncertain"
	default:
		return "refused"
	}
}

// confirmation is what a command asks for that destroys something for good.
type confirmation struct {
	Yes bool `help:"Do not ask for a confirmation. Required without a terminal."`
}

// subject is what would be destroyed.
type subject struct {
	// effect completes "This …".
	effect string
	// names are what it can be confirmed by, its id among them.
	names []string
}

// confirm returns nil if the operator has typed a name of the subject or given
// --yes; it then asks nothing and find is not called. Nothing was done where it
// returns an error.
func (c confirmation) confirm(ctx context.Context, s *session, find func() (subject, error)) error {
	if c.Yes {
		return nil
	}
	if !s.interactive {
		return exit.UsageError("this cannot be undone, and there is no terminal for a confirmation: repeat it with --yes; nothing was changed")
	}
	what, err := find()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.stderr, "This %s.\nType its name or id to confirm: ", what.effect)
	typed, err := s.line(ctx)
	if err != nil || typed == "" || !slices.Contains(what.names, typed) {
		return exit.Refusal("not confirmed: nothing was changed")
	}
	return nil
}

// line reads a line of standard input, and waits no longer than the context
// lasts.
func (s *session) line(ctx context.Context) (string, error) {
	type read struct {
		text string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := bufio.NewReader(s.stdin).ReadString('\n')
		done <- read{strings.TrimSpace(text), err}
	}()
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(s.stderr) // the prompt's line has no end yet
		return "", ctx.Err()
	case r := <-done:
		if r.err != nil {
			_, _ = fmt.Fprintln(s.stderr)
		}
		return r.text, r.err
	}
}

// named is how a prompt names a thing that has a name and an id.
func named(kind, name, id string) string {
	return fmt.Sprintf("%s %q (%s)", kind, name, id)
}
