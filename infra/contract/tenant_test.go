package contract_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// jobError is what the suite's failed jobs say.
const jobError = "The directory refused the connection."

// tenant is an account with one of everything that tests tell apart.
type tenant struct {
	place
	account                    ids.Account
	workspace, second, deleted string // the default one, another, a former one
	management, standard       string // API keys
	bound, boundSecond         string // standard keys, each bound to a workspace
	disabled, expired          string // management keys
}

// newTenant makes an account where the suite's requests go.
func newTenant(t *testing.T) tenant {
	t.Helper()
	return the.tenant(t)
}

// tenant makes an account in the place. Tests share none, so that each starts
// with idle limiters and empty workspaces.
func (p place) tenant(t *testing.T) tenant {
	t.Helper()
	n := tenant{place: p}
	n.account, n.workspace = n.createAccount(t)
	n.second, n.deleted = n.createWorkspace(t), n.createWorkspace(t)
	n.deleteWorkspace(t, n.deleted)
	n.management, n.standard = n.key(t, managementKey()), n.key(t, standardKey())
	n.bound, n.boundSecond = n.key(t, standardKey().boundTo(n.workspace)), n.key(t, standardKey().boundTo(n.second))
	n.disabled, n.expired = n.key(t, managementKey()), n.key(t, managementKey().expired())
	n.disable(t, n.disabled)
	return n
}

// hashOf names an API key as the contract does.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// job makes a sync job that is in the state.
func (n tenant) job(t *testing.T, status syncjobs.Status) string {
	t.Helper()
	jobs := syncjobs.NewWriter(n.db, n.names.Jobs)
	id, err := jobs.Create(t.Context(), n.account)
	if err == nil && status != syncjobs.Queued {
		err = jobs.Start(t.Context(), n.account, id)
	}
	switch {
	case err != nil:
	case status == syncjobs.Succeeded:
		err = jobs.Succeed(t.Context(), n.account, id, 12, 0)
	case status == syncjobs.Failed:
		err = jobs.Fail(t.Context(), n.account, id, jobError)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(id)
}

// startJob moves a queued job on.
func (n tenant) startJob(t *testing.T, id string) {
	t.Helper()
	if err := syncjobs.NewWriter(n.db, n.names.Jobs).Start(t.Context(), n.account, ids.Job(id)); err != nil {
		t.Fatal(err)
	}
}

// file uploads a file to the workspace.
func (n tenant) file(t *testing.T, workspace string) string {
	t.Helper()
	id := string(ids.NewFile())
	n.upload(t, workspace, id)
	return id
}

// upload puts a file of that id into the workspace.
func (n tenant) upload(t *testing.T, workspace, id string) {
	t.Helper()
	_, err := n.s3.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &n.names.Files, Key: aws.String(files.Key(ids.Workspace(workspace), ids.File(id))),
		Body: strings.NewReader("the file's content"),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// exists reports whether any version or trace of the file is left.
func (n tenant) exists(t *testing.T, workspace, file string) bool {
	t.Helper()
	key := files.Key(ids.Workspace(workspace), ids.File(file))
	out, err := n.s3.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &n.names.Files, Prefix: &key})
	if err != nil {
		t.Fatal(err)
	}
	// The prefix is that of longer ids too.
	return slices.ContainsFunc(out.Versions, func(v types.ObjectVersion) bool { return aws.ToString(v.Key) == key }) ||
		slices.ContainsFunc(out.DeleteMarkers, func(m types.DeleteMarkerEntry) bool { return aws.ToString(m.Key) == key })
}
