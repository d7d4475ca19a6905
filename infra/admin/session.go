package main

import (
	"context"
	"io"
	"log/slog"
	"os/user"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

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
	credentials *byok.Manager
	wrappings   *byok.Wrappings
	kms         *kms.Client
	outputs     outputs
	files       *files.Manager
	fileStore   *files.Store

	out    output
	stdin  io.Reader
	stderr io.Writer
	log    *slog.Logger
	now    func() time.Time
	pause  func(context.Context, time.Duration) error
	// terminal says that somebody watches stderr.
	terminal bool
}

func (a *app) session(t target, asJSON bool) *session {
	db, bucket := dynamodb.NewFromConfig(t.config), s3.NewFromConfig(t.config)
	return &session{
		db:          db,
		registry:    auth.NewRegistry(db, t.outputs.AccessTableName),
		jobs:        syncjobs.NewStore(db, t.outputs.SyncJobsTableName),
		jobWriter:   syncjobs.NewWriter(db, t.outputs.SyncJobsTableName),
		credentials: byok.NewManager(db, t.outputs.CredentialsTableName),
		wrappings:   byok.NewWrappings(db, t.outputs.CredentialsTableName),
		kms:         kms.NewFromConfig(t.config),
		outputs:     t.outputs,
		files:       files.NewManager(bucket, t.outputs.FilesBucketName),
		fileStore:   files.NewStore(bucket, t.outputs.FilesBucketName),

		out:      output{to: a.stdout, json: asJSON},
		stdin:    a.stdin,
		stderr:   a.stderr,
		log:      auditLog(a.stderr, t.identity),
		now:      a.now,
		pause:    a.pause,
		terminal: a.terminal,
	}
}

// auditLog writes JSON lines that all say who is at work.
func auditLog(to io.Writer, identity string) *slog.Logger {
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	log := slog.New(slog.NewJSONHandler(to, nil)).With("user", who)
	if identity != "" {
		log = log.With("aws_identity", identity)
	}
	return log
}

// audit notes a change that was tried: action names it, err is what came of it,
// and attrs say what it was about, by ids and never by secrets.
func (s *session) audit(ctx context.Context, action string, err error, attrs ...any) {
	attrs = append([]any{"action", action, "outcome", outcome(err)}, attrs...)
	if err != nil {
		attrs = append(attrs, slog.Any("error", calls.Describe(err)))
	}
	s.log.InfoContext(ctx, "audit", attrs...)
}

// begin notes that a change of many things has begun: a process that is killed
// writes no other line.
func (s *session) begin(ctx context.Context, action string, attrs ...any) {
	s.log.InfoContext(ctx, "audit", append([]any{"action", action, "outcome", "begun"}, attrs...)...)
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

// workspace finds the workspace that a command means, deleted or not.
func (s *session) workspace(ctx context.Context, p place) (auth.Workspace, error) {
	return s.registry.FindWorkspace(ctx, p.Account, p.Workspace)
}
