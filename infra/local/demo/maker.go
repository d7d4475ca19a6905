package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// How many files each workspace has at a start.
const (
	filesHere  = 25
	filesThere = 8
)

type maker struct {
	db    *dynamodb.Client
	s3    *s3.Client
	stack Stack
}

// account makes the account with its workspaces, keys and sync jobs.
func (m maker) account(ctx context.Context) (Facts, error) {
	registry := auth.NewRegistry(m.db, m.stack.AccessTable)
	account, workspace, err := registry.CreateAccount(ctx, "Demo")
	if err != nil {
		return Facts{}, err
	}
	other, err := registry.CreateWorkspace(ctx, account, "other")
	if err != nil {
		return Facts{}, err
	}
	management, _, err := registry.CreateKey(ctx, auth.NewKey{Account: account, Kind: auth.Management, Name: "demo management key"})
	if err != nil {
		return Facts{}, err
	}
	standard, _, err := registry.CreateKey(ctx, auth.NewKey{Account: account, Workspace: workspace, Kind: auth.Standard, Name: "demo key"})
	if err != nil {
		return Facts{}, err
	}
	jobs, err := m.jobs(ctx, account)
	return Facts{
		ManagementKey: string(management.Reveal()), APIKey: string(standard.Reveal()),
		AccountID: account, WorkspaceID: workspace, OtherWorkspaceID: other, SyncJobs: jobs,
	}, err
}

// jobs makes one sync job in each state.
func (m maker) jobs(ctx context.Context, account ids.Account) (map[syncjobs.Status]ids.Job, error) {
	writer := syncjobs.NewWriter(m.db, m.stack.SyncJobsTable)
	jobs := make(map[syncjobs.Status]ids.Job)
	for _, status := range []syncjobs.Status{syncjobs.Queued, syncjobs.Running, syncjobs.Succeeded, syncjobs.Failed} {
		id, err := writer.Create(ctx, account)
		if err == nil && status != syncjobs.Queued {
			err = writer.Start(ctx, account, id)
		}
		if err == nil && status == syncjobs.Succeeded {
			err = writer.Succeed(ctx, account, id, 12, 1)
		}
		if err == nil && status == syncjobs.Failed {
			err = writer.Fail(ctx, account, id, "The identity provider did not answer")
		}
		if err != nil {
			return nil, err
		}
		jobs[status] = id
	}
	return jobs, nil
}

// files lists both workspaces' files, after filling them up.
func (m maker) files(ctx context.Context, f Facts) (map[ids.Workspace][]ids.File, error) {
	here, err := m.filled(ctx, f.WorkspaceID, filesHere)
	if err != nil {
		return nil, err
	}
	there, err := m.filled(ctx, f.OtherWorkspaceID, filesThere)
	if err != nil {
		return nil, err
	}
	return map[ids.Workspace][]ids.File{f.WorkspaceID: here, f.OtherWorkspaceID: there}, nil
}

func (m maker) filled(ctx context.Context, w ids.Workspace, want int) ([]ids.File, error) {
	prefix := files.Key(w, "")
	listed, err := m.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &m.stack.FilesBucket, Prefix: &prefix})
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	var all []ids.File
	for _, object := range listed.Contents {
		all = append(all, ids.File(strings.TrimPrefix(*object.Key, prefix)))
	}
	uploads, ctx := errgroup.WithContext(ctx)
	for len(all) < want {
		id := ids.NewFile()
		all = append(all, id)
		uploads.Go(func() error { return m.upload(ctx, w, id) })
	}
	return all, uploads.Wait()
}

func (m maker) upload(ctx context.Context, w ids.Workspace, id ids.File) error {
	key := files.Key(w, id)
	_, err := m.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &m.stack.FilesBucket, Key: &key, Body: strings.NewReader("A file of the demo account: " + string(id) + "\n"),
	})
	if err != nil {
		return fmt.Errorf("uploading a file: %w", err)
	}
	return nil
}
