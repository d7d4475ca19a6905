package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
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
	outputs     outputs
	files       *files.Manager
	fileStore   *files.Store

	out    output
	stdin  io.Reader
	stderr io.Writer
	audits *auditLog
	now    func() time.Time
	pause  func(context.Context, time.Duration) error
	// terminal and interactive are the app's.
	terminal, interactive bool
}

func (a *app) session(t *target, asJSON bool, audits io.Writer) *session {
	db, bucket := dynamodb.NewFromConfig(t.config), s3.NewFromConfig(t.config)
	s := &session{
		db:          db,
		registry:    auth.NewRegistry(db, t.outputs.AccessTableName),
		jobs:        syncjobs.NewStore(db, t.outputs.SyncJobsTableName),
		jobWriter:   syncjobs.NewWriter(db, t.outputs.SyncJobsTableName),
		jobLister:   syncjobs.NewLister(db, t.outputs.SyncJobsTableName),
		credentials: byok.NewManager(db, t.outputs.CredentialsTableName),
		wrappings:   byok.NewWrappings(db, t.outputs.CredentialsTableName),
		kms:         kms.NewFromConfig(t.config),
		outputs:     t.outputs,
		files:       files.NewManager(bucket, t.outputs.FilesBucketName),
		fileStore:   files.NewStore(bucket, t.outputs.FilesBucketName),

		out:      output{to: a.stdout, json: asJSON, width: a.width},
		stdin:    a.stdin,
		stderr:   a.stderr,
		now:      a.now,
		pause:    a.pause,
		terminal: a.terminal, interactive: a.interactive,
	}
	s.audits = newAuditLog(s, t, audits)
	return s
}

// note writes a sentence to standard error, next to the results.
func (s *session) note(format string, args ...any) {
	if !s.out.json {
		_, _ = fmt.Fprintf(s.stderr, format+"\n", args...)
		return
	}
	var line struct {
		Note string `json:"note"`
	}
	line.Note = fmt.Sprintf(format, args...)
	_ = output{to: s.stderr}.encode(line) // there is nowhere else to report it
}

// workspace finds the workspace that a command means, deleted or not.
func (s *session) workspace(ctx context.Context, p place) (auth.Workspace, error) {
	return s.registry.FindWorkspace(ctx, p.Account, p.Workspace)
}
