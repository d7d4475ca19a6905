package demo

import (
	"context"
	"errors"
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

// How many files each workspace has at a start.
const (
	filesHere  = 25
	filesThere = 8
)

type maker struct {
	s3         *s3.Client
	bucket     string
	registry   *auth.Registry
	verifier   *auth.Verifier
	jobs       *syncjobs.Store
	jobsWriter *syncjobs.Writer
}

func newMaker(c aws.Config, s Stack) maker {
	db := reach.DynamoDB(c)
	return maker{
		s3: reach.S3(c), bucket: s.FilesBucket,
		registry: auth.NewRegistry(db, s.AccessTable), verifier: auth.NewVerifier(db, s.AccessTable),
		jobs: syncjobs.NewStore(db, s.SyncJobsTable), jobsWriter: syncjobs.NewWriter(db, s.SyncJobsTable),
	}
}

// repair makes what the facts lack, and what does not work as they have it: the
// account with its workspaces, keys and sync jobs.
func (m maker) repair(ctx context.Context, f *Facts) error {
	err := m.registry.CheckAccount(ctx, f.AccountID)
	if errors.Is(err, auth.ErrNoAccount) {
		*f = Facts{Renewed: []string{"account"}}
		f.AccountID, f.WorkspaceID, err = m.registry.CreateAccount(ctx, "Demo")
	}
	if err != nil {
		return err
	}
	if err := m.workspaces(ctx, f); err != nil {
		return err
	}
	if err := m.keys(ctx, f); err != nil {
		return err
	}
	return m.syncJobs(ctx, f)
}

func (m maker) workspaces(ctx context.Context, f *Facts) error {
	for _, w := range []struct {
		id   *ids.Workspace
		name string
	}{{&f.WorkspaceID, "default"}, {&f.OtherWorkspaceID, "other"}} {
		found, err := m.registry.FindWorkspace(ctx, f.AccountID, *w.id)
		if *w.id != "" && err == nil && found.DeletedAt.IsZero() {
			continue
		}
		if err != nil && !errors.Is(err, auth.ErrNoWorkspace) {
			return err
		}
		if *w.id, err = m.registry.CreateWorkspace(ctx, f.AccountID, w.name); err != nil {
			return err
		}
		f.Renewed = append(f.Renewed, w.name+" workspace")
		if w.id != &f.WorkspaceID {
			continue
		}
		if err := m.registry.SetDefaultWorkspace(ctx, f.AccountID, *w.id); err != nil {
			return err
		}
	}
	return nil
}

func (m maker) keys(ctx context.Context, f *Facts) error {
	for _, k := range []struct {
		token *string
		new   auth.NewKey
	}{
		{&f.ManagementKey, auth.NewKey{Account: f.AccountID, Kind: auth.Management, Name: "demo management key"}},
		{&f.APIKey, auth.NewKey{Account: f.AccountID, Workspace: f.WorkspaceID, Kind: auth.Standard, Name: "demo key"}},
	} {
		caller, err := m.verifier.Verify(ctx, auth.HashKey(*k.token))
		var rejected *auth.Rejection
		if err != nil && !errors.As(err, &rejected) {
			return err
		}
		if bound, _ := caller.Bound(); err == nil && caller.Account() == f.AccountID &&
			caller.MayManage() == (k.new.Kind == auth.Management) && bound == k.new.Workspace {
			continue
		}
		token, _, err := m.registry.CreateKey(ctx, k.new)
		if err != nil {
			return err
		}
		*k.token = string(token.Reveal())
		f.Renewed = append(f.Renewed, k.new.Name)
	}
	return nil
}

// syncJobs has one sync job in each state.
func (m maker) syncJobs(ctx context.Context, f *Facts) error {
	jobs := make(map[syncjobs.Status]ids.Job)
	for _, status := range []syncjobs.Status{syncjobs.Queued, syncjobs.Running, syncjobs.Succeeded, syncjobs.Failed} {
		found, err := m.jobs.Find(ctx, f.SyncJobs[status])
		if err != nil {
			return err
		}
		if job, err := found.For(f.AccountID); err == nil && job.Status == status {
			jobs[status] = f.SyncJobs[status]
			continue
		}
		if jobs[status], err = m.syncJob(ctx, f.AccountID, status); err != nil {
			return err
		}
		f.Renewed = append(f.Renewed, string(status)+" sync job")
	}
	f.SyncJobs = jobs
	return nil
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
	listed, err := m.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &m.bucket, Prefix: &prefix})
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
		Bucket: &m.bucket, Key: &key, Body: strings.NewReader("A file of the demo account: " + string(id) + "\n"),
	})
	if err != nil {
		return fmt.Errorf("uploading a file: %w", err)
	}
	return nil
}
