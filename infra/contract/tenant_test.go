package contract_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// jobError is the error message of a failed job.
const jobError = "The directory refused the connection."

// tenant is an account. Each test makes its own: it starts with idle limiters and empty
// workspaces.
type tenant struct {
	server
	testkit.Tenant
	workspace, second    string // the default one and another
	management, standard string // API keys of the whole account
}

// newTenant makes an account at the suite's server.
func newTenant(t *testing.T) tenant {
	t.Helper()
	return the.tenant(t)
}

func (s server) tenant(t *testing.T) tenant {
	t.Helper()
	n := testkit.NewTenant(t, auth.NewRegistry(s.DynamoDB, s.Access))
	note(t, "account", string(n.ID))
	return tenant{s, n, string(n.Workspace), string(n.NewWorkspace(t)), n.Management, n.StandardKey(t, "")}
}

// If SIGNALBOX_MADE names a file, note appends a line to it for what was made:
// `make verify` removes it.
func note(t *testing.T, kind, id string) {
	t.Helper()
	path := os.Getenv("SIGNALBOX_MADE")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the caller's own path
	testkit.Must(t, err)
	_, err = fmt.Fprintln(file, kind, id)
	testkit.Must(t, errors.Join(err, file.Close()))
}

// hashOf returns the name of an API key in allowed_api_key_hashes.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// job makes a sync job in the state.
func (n tenant) job(t *testing.T, status syncjobs.Status) string {
	t.Helper()
	jobs := syncjobs.NewWriter(n.DynamoDB, n.Jobs)
	id, err := jobs.Create(t.Context(), n.ID)
	testkit.Must(t, err)
	note(t, "job", string(id))
	if status != syncjobs.Queued {
		testkit.Must(t, jobs.Start(t.Context(), n.ID, id))
	}
	switch status {
	case syncjobs.Succeeded:
		testkit.Must(t, jobs.Succeed(t.Context(), n.ID, id, 12, 0))
	case syncjobs.Failed:
		testkit.Must(t, jobs.Fail(t.Context(), n.ID, id, jobError))
	case syncjobs.Queued, syncjobs.Running:
	}
	return string(id)
}

// file uploads a file to the workspace.
func (n tenant) file(t *testing.T, workspace string) string {
	t.Helper()
	id := string(ids.NewFile())
	n.upload(t, workspace, id)
	return id
}

func objectKey(workspace, file string) string {
	return files.Key(ids.Workspace(workspace), ids.File(file))
}

func (n tenant) upload(t *testing.T, workspace, id string) {
	t.Helper()
	n.Bucket().Put(t, objectKey(workspace, id), "the file's content")
}

// exists reports whether the file has any version or delete marker.
func (n tenant) exists(t *testing.T, workspace, file string) bool {
	t.Helper()
	return n.Bucket().Look(t, objectKey(workspace, file)).Left > 0
}
