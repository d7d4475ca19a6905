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
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
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
	s3         *s3.Client
	bucket     string
	registry   *auth.Registry
	jobsWriter *syncjobs.Writer
}

// New returns the demo account of the stack with these outputs. Its facts are in the file.
func New(c aws.Config, outputs map[string]string, file string) *Account {
	db := awsclients.DynamoDB(c)
	return &Account{
		file: file, baseURL: outputs["ApiBaseUrl"], s3: awsclients.S3(c), bucket: outputs["FilesBucketName"],
		registry: auth.NewRegistry(db, outputs["AccessTableName"]), jobsWriter: syncjobs.NewWriter(db, outputs["SyncJobsTableName"]),
	}
}

// Renew removes the file if the demo's workspace is deleted, and then reports true: its key
// and files are of no use any more. Ensure makes another account, and the old one stays.
func (a *Account) Renew(ctx context.Context) (bool, error) {
	var facts Facts
	exists, err := state.Read(a.file, &facts, facts.check)
	if err != nil || !exists {
		return false, nil // Ensure reports the error
	}
	w, err := a.registry.FindWorkspace(ctx, facts.AccountID, facts.WorkspaceID)
	if errors.Is(err, auth.ErrNoWorkspace) || err == nil && !w.DeletedAt.IsZero() {
		return true, os.Remove(a.file)
	}
	return false, nil
}

// Ensure returns the facts in the file, with the files that exist now. If there is no
// file, or the account is gone, it makes an account. A crash before the file is written
// leaves an account without a known key.
func (a *Account) Ensure(ctx context.Context) (Facts, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var facts Facts
	exists, err := state.Read(a.file, &facts, facts.check)
	if damaged, ok := errors.AsType[*state.Damage](err); ok {
		damaged.Renewable = true
	}
	if exists {
		err = a.registry.CheckAccount(ctx, facts.AccountID)
	}
	if err == nil && !exists || errors.Is(err, auth.ErrNoAccount) {
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
	facts.Parameters = facts.parameters(0)
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
	variables := fmt.Sprintf("export URL=%s\nexport MANAGEMENT_KEY=%s\nexport API_KEY=%s\n", facts.BaseURL, facts.ManagementKey, facts.APIKey)
	for _, name := range slices.Sorted(maps.Keys(facts.Parameters)) {
		variables += "export " + variable(name) + "=" + facts.Parameters[name] + "\n"
	}
	if err := renameio.WriteFile(strings.TrimSuffix(file, "json")+"env", []byte(variables), 0o600); err != nil {
		return fmt.Errorf("writing variables for a shell: %w", err)
	}
	return nil
}

// variable is a parameter's name in a shell: SyncJobId is $JOB.
func variable(parameter string) string {
	return strings.ToUpper(lastWord.FindStringSubmatch(parameter)[1])
}

var lastWord = regexp.MustCompile(`([A-Z][a-z]+)Id$`)

// Curls are shell commands for the operations of the API, with the variables of demo.env.
func (f Facts) Curls() []string {
	values := []string{f.ManagementKey, "$MANAGEMENT_KEY", f.APIKey, "$API_KEY"}
	for name, value := range f.Parameters {
		values = append(values, value, "$"+variable(name))
	}
	var all []string
	for _, c := range f.calls(0) {
		command := "curl -i "
		if c.method == http.MethodDelete {
			command += "-X DELETE "
		}
		command += "$URL" + c.path + ` -H "Authorization: Bearer ` + c.key + `"`
		if c.body != "" {
			command += " -H 'Content-Type: application/json' -d '" + c.body + "'"
		}
		all = append(all, strings.NewReplacer(values...).Replace(command))
	}
	return all
}

// Requests are the same calls as a server gets them. They delete another file than Curls:
// both can be deleted.
func (f Facts) Requests() ([]*http.Request, error) {
	var all []*http.Request
	for _, c := range f.calls(1) {
		r, err := http.NewRequest(c.method, f.BaseURL+c.path, strings.NewReader(c.body)) //nolint:noctx // it is not sent
		if err != nil {
			return nil, err
		}
		r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
		r.Header.Set("Authorization", "Bearer "+c.key)
		if c.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		all = append(all, r)
	}
	return all, nil
}

type call struct{ method, path, key, body string }

// parameters are those of calls that succeed. The choice is one of several that can be
// deleted.
func (f Facts) parameters(choice int) map[string]string {
	return map[string]string{
		"SyncJobId":   string(f.SyncJobs[syncjobs.Succeeded]),
		"FileId":      string(f.Files[f.WorkspaceID][choice]),
		"WorkspaceId": string(f.WorkspaceID),
	}
}

// calls are one successful call of each operation.
func (f Facts) calls(choice int) []call {
	of := f.parameters(choice)
	return []call{
		{http.MethodGet, "/scim/sync-jobs/" + of["SyncJobId"], f.ManagementKey, ""},
		{http.MethodPost, "/byok", f.ManagementKey, `{"provider":"openai","key":"sk-demo-0123456789abcdef","name":"My first key"}`},
		{http.MethodDelete, "/files/" + of["FileId"], f.APIKey, ""},
	}
}

// fileCount is how many files the workspace has at a start.
const fileCount = 25

// create makes an account with a workspace, two keys, and a sync job in each state.
func (a *Account) create(ctx context.Context) (f Facts, err error) {
	if f.AccountID, f.WorkspaceID, err = a.registry.CreateAccount(ctx, "Demo"); err != nil {
		return f, err
	}
	for token, k := range map[*string]auth.NewKey{
		&f.ManagementKey: {Account: f.AccountID, Kind: auth.Management, Name: "demo management key"},
		&f.APIKey:        {Account: f.AccountID, Workspace: f.WorkspaceID, Kind: auth.Standard, Name: "demo key"},
	} {
		made, _, err := a.registry.CreateKey(ctx, k)
		if err != nil {
			return f, err
		}
		*token = string(made.Reveal())
	}
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

// fill lists the workspace's files, after filling them up.
func (a *Account) fill(ctx context.Context, w ids.Workspace) ([]ids.File, error) {
	prefix := files.Key(w, "")
	listed, err := a.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &a.bucket, Prefix: &prefix})
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
		uploads.Go(func() error { return a.upload(ctx, w, id) })
	}
	return all, uploads.Wait()
}

func (a *Account) upload(ctx context.Context, w ids.Workspace, id ids.File) error {
	key := files.Key(w, id)
	_, err := a.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &a.bucket, Key: &key, Body: strings.NewReader("A file of the demo account: " + string(id) + "\n"),
	})
	if err != nil {
		return fmt.Errorf("uploading a file: %w", err)
	}
	return nil
}
