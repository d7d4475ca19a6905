package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/reach"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// fileCount is how many files the workspace has at a start.
const fileCount = 25

type maker struct {
	s3         *s3.Client
	bucket     string
	registry   *auth.Registry
	jobsWriter *syncjobs.Writer
}

func newMaker(c aws.Config, outputs map[string]string) maker {
	db := reach.DynamoDB(c)
	return maker{
		s3: reach.S3(c), bucket: outputs["FilesBucketName"],
		registry: auth.NewRegistry(db, outputs["AccessTableName"]), jobsWriter: syncjobs.NewWriter(db, outputs["SyncJobsTableName"]),
	}
}

// account makes an account with a workspace, two keys, and a sync job in each state.
func (m maker) account(ctx context.Context) (f Facts, err error) {
	if f.AccountID, f.WorkspaceID, err = m.registry.CreateAccount(ctx, "Demo"); err != nil {
		return f, err
	}
	for token, k := range map[*string]auth.NewKey{
		&f.ManagementKey: {Account: f.AccountID, Kind: auth.Management, Name: "demo management key"},
		&f.APIKey:        {Account: f.AccountID, Workspace: f.WorkspaceID, Kind: auth.Standard, Name: "demo key"},
	} {
		made, _, err := m.registry.CreateKey(ctx, k)
		if err != nil {
			return f, err
		}
		*token = string(made.Reveal())
	}
	f.SyncJobs = make(map[syncjobs.Status]ids.Job)
	for _, status := range []syncjobs.Status{syncjobs.Queued, syncjobs.Running, syncjobs.Succeeded, syncjobs.Failed} {
		if f.SyncJobs[status], err = m.syncJob(ctx, f.AccountID, status); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (m maker) syncJob(ctx context.Context, account ids.Account, status syncjobs.Status) (ids.Job, error) {
	id, err := m.jobsWriter.Create(ctx, account)
	if err == nil && status != syncjobs.Queued {
		err = m.jobsWriter.Start(ctx, account, id)
	}
	if err == nil && status == syncjobs.Succeeded {
		err = m.jobsWriter.Succeed(ctx, account, id, 12, 1)
	}
	if err == nil && status == syncjobs.Failed {
		err = m.jobsWriter.Fail(ctx, account, id, "The identity provider did not answer")
	}
	return id, err
}

// files lists the workspace's files, after filling them up.
func (m maker) files(ctx context.Context, w ids.Workspace) ([]ids.File, error) {
	prefix := files.Key(w, "")
	listed, err := m.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &m.bucket, Prefix: &prefix})
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	var all []ids.File
	for _, object := range listed.Contents {
		all = append(all, ids.File(strings.TrimPrefix(*object.Key, prefix)))
	}
	uploads, ctx := errgroup.WithContext(ctx)
	for len(all) < fileCount {
		id := ids.NewFile()
		all = append(all, id)
		uploads.Go(func() error { return m.upload(ctx, w, id) })
	}
	return all, uploads.Wait()
}

func (m maker) upload(ctx context.Context, w ids.Workspace, id ids.File) error {
	key := files.Key(w, id)
	_, err := m.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &m.bucket, Key: &key, Body: strings.NewReader("A file of the demo account: " + string(id) + "\n"),
	})
	if err != nil {
		return fmt.Errorf("uploading a file: %w", err)
	}
	return nil
}
