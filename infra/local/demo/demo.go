// Package demo fills a fresh stack with an account to try the service on: its
// workspace, keys, sync jobs in every state, and files. The account is made
// once. Every start fills up its files and writes its facts to a file. It writes
// through the service's own packages.
package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/local/state"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// Facts are everything needed to try the service.
type Facts struct {
	BaseURL       string                       `json:"base_url"`
	ManagementKey string                       `json:"management_key"`
	APIKey        string                       `json:"api_key"`
	AccountID     ids.Account                  `json:"account_id"`
	WorkspaceID   ids.Workspace                `json:"workspace_id"`
	SyncJobs      map[syncjobs.Status]ids.Job  `json:"sync_jobs"`
	Files         map[ids.Workspace][]ids.File `json:"files"`
	// Parameters are values of components/parameters in openapi.yaml, by their names there.
	Parameters map[string]string `json:"parameters"`
}

// Account is the demo account of a stack.
type Account struct {
	mu sync.Mutex // guards the file and the files of the workspace

	file       string
	baseURL    string
	files      *files.Manager
	registry   *auth.Registry
	jobsWriter *syncjobs.Writer
}

// New returns the demo account of the stack with these outputs. Its facts are in the file.
func New(c aws.Config, outputs map[string]string, file string) *Account {
	db := awsclients.DynamoDB(c)
	return &Account{
		file: file, baseURL: outputs["ApiBaseUrl"], files: files.NewManager(awsclients.S3(c), outputs["FilesBucketName"]),
		registry: auth.NewRegistry(db, outputs["AccessTableName"]), jobsWriter: syncjobs.NewWriter(db, outputs["SyncJobsTableName"]),
	}
}

// Ensure returns the facts in the file, with the files that exist now. If there is no
// file, or the account's workspace is gone, it makes an account. A crash before the file is
// written leaves an account without a known key.
func (a *Account) Ensure(ctx context.Context) (Facts, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var facts Facts
	exists, err := state.Read(a.file, &facts, facts.check)
	if damaged, ok := errors.AsType[*state.Damage](err); ok {
		damaged.Renewable = true
	}
	if exists {
		var w auth.Workspace
		w, err = a.registry.FindWorkspace(ctx, facts.AccountID, facts.WorkspaceID)
		exists = err == nil && w.DeletedAt.IsZero()
	}
	if err == nil && !exists || errors.Is(err, auth.ErrNoWorkspace) || errors.Is(err, auth.ErrNoAccount) {
		facts, err = a.create(ctx)
	}
	if err != nil {
		return Facts{}, fmt.Errorf("demo account: %w", err)
	}
	facts.BaseURL = a.baseURL
	stored, err := a.fill(ctx, facts.WorkspaceID)
	if err != nil {
		return Facts{}, fmt.Errorf("demo files: %w", err)
	}
	facts.Files = map[ids.Workspace][]ids.File{facts.WorkspaceID: stored}
	values := facts.variables(0)
	facts.Parameters = map[string]string{"SyncJobId": values["JOB"], "FileId": values["FILE"], "WorkspaceId": values["WORKSPACE"]}
	return facts, write(a.file, facts)
}

func (f *Facts) check() error {
	if f.AccountID == "" {
		return errors.New("it names no account")
	}
	return nil
}

// write writes the facts, and beside them variables for a shell: demo.env. Other users of
// the machine cannot read the keys.
func write(file string, facts Facts) error {
	if err := state.Write(file, facts); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	values, text := facts.variables(0), ""
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text += "export " + name + "=" + values[name] + "\n"
	}
	if err := renameio.WriteFile(strings.TrimSuffix(file, "json")+"env", []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing variables for a shell: %w", err)
	}
	return nil
}

// variables are the variables of demo.env. Each of the workspace's files can be deleted; FILE
// is the one with this index.
func (f Facts) variables(file int) map[string]string {
	return map[string]string{
		"URL": f.BaseURL, "MANAGEMENT_KEY": f.ManagementKey, "API_KEY": f.APIKey, "WORKSPACE": string(f.WorkspaceID),
		"JOB": string(f.SyncJobs[syncjobs.Succeeded]), "FILE": string(f.Files[f.WorkspaceID][file]),
	}
}

// calls are one successful call of each operation, with the variables of demo.env.
var calls = []struct{ method, url, key, body string }{
	{http.MethodGet, "$URL/scim/sync-jobs/$JOB", "$MANAGEMENT_KEY", ""},
	{http.MethodPost, "$URL/byok", "$MANAGEMENT_KEY", `{"provider":"openai","key":"sk-demo-0123456789abcdef","name":"My first key"}`},
	{http.MethodDelete, "$URL/files/$FILE", "$API_KEY", ""},
}

// Curls are the calls as commands for a shell.
func Curls() []string {
	var all []string
	for _, c := range calls {
		command := "curl -i "
		if c.method == http.MethodDelete {
			command += "-X DELETE "
		}
		command += c.url + ` -H "Authorization: Bearer ` + c.key + `"`
		if c.body != "" {
			command += " -H 'Content-Type: application/json' -d '" + c.body + "'"
		}
		all = append(all, command)
	}
	return all
}

// Requests are the calls as a server gets them. They delete another file than Curls: both
// can be deleted.
func (f Facts) Requests() ([]*http.Request, error) {
	values := f.variables(1)
	value := func(name string) string { return values[name] }
	var all []*http.Request
	for _, c := range calls {
		r, err := http.NewRequest(c.method, os.Expand(c.url, value), strings.NewReader(c.body))
		if err != nil {
			return nil, err
		}
		r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
		r.Header.Set("Authorization", "Bearer "+os.Expand(c.key, value))
		if c.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		all = append(all, r)
	}
	return all, nil
}

// create makes an account with a workspace, two keys, and a sync job in each state.
func (a *Account) create(ctx context.Context) (f Facts, err error) {
	if f.AccountID, f.WorkspaceID, err = a.registry.CreateAccount(ctx, "Demo"); err != nil {
		return f, err
	}
	management, _, err := a.registry.CreateKey(ctx, auth.NewKey{Account: f.AccountID, Kind: auth.Management, Name: "demo management key"})
	if err != nil {
		return f, err
	}
	standard, _, err := a.registry.CreateKey(ctx, auth.NewKey{Account: f.AccountID, Workspace: f.WorkspaceID, Kind: auth.Standard, Name: "demo key"})
	if err != nil {
		return f, err
	}
	f.ManagementKey, f.APIKey = string(management.Reveal()), string(standard.Reveal())
	f.SyncJobs = make(map[syncjobs.Status]ids.Job)
	for _, status := range []syncjobs.Status{syncjobs.Queued, syncjobs.Running, syncjobs.Succeeded, syncjobs.Failed} {
		if f.SyncJobs[status], err = a.syncJob(ctx, f.AccountID, status); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (a *Account) syncJob(ctx context.Context, account ids.Account, status syncjobs.Status) (ids.Job, error) {
	id, err := a.jobsWriter.Create(ctx, account)
	if err == nil && status != syncjobs.Queued {
		err = a.jobsWriter.Start(ctx, account, id)
	}
	if err == nil && status == syncjobs.Succeeded {
		err = a.jobsWriter.Succeed(ctx, account, id, 12, 1)
	}
	if err == nil && status == syncjobs.Failed {
		err = a.jobsWriter.Fail(ctx, account, id, "The identity provider did not answer")
	}
	return id, err
}

// fill lists the workspace's files, after filling them up to 25.
func (a *Account) fill(ctx context.Context, w ids.Workspace) ([]ids.File, error) {
	listed, err := a.files.List(ctx, w)
	if err != nil {
		return nil, err
	}
	var all []ids.File
	for _, f := range listed {
		all = append(all, f.ID)
	}
	uploads, ctx := errgroup.WithContext(ctx)
	for len(all) < 25 {
		id := ids.NewFile()
		all = append(all, id)
		uploads.Go(func() error {
			return a.files.Upload(ctx, w, id, strings.NewReader("A file of the demo account: "+string(id)+"\n"), "text/plain")
		})
	}
	return all, uploads.Wait()
}
