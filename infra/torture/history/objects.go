package history

import (
	"crypto/md5" //nolint:gosec // S3's ETag
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/syncjobs"
)

// deleteAs deletes a file and returns the status. Where several delete a file of a
// versioned bucket at once, each may find a version to delete.
func (x *actor) deleteAs(by string, f fileAt) int {
	deleted := fileDeleted
	if x.Versioning != "" {
		deleted = filePerhapsDeleted
	}
	w, id := string(x.workspaces[f.workspace]), string(f.id)
	foreign := by == x.stranger || by == x.bound && f.workspace != 1
	call := x.now()
	a, certain := x.certain(call, by, x.client.Delete(id).In(w), filePerhapsDeleted(id))
	if !certain {
		return a.Status
	}
	switch {
	case a.Status == http.StatusOK && foreign:
		x.violation("a key of elsewhere deleted %s", id)
	case a.Status == http.StatusOK:
		x.shown(call, keyLetIn(by), workspaceLive(w), deleted(id))
		x.retried(call, filePerhapsDeleted(id))
	case a.Status != http.StatusNotFound:
		x.violation("a delete got %d", a.Status)
	case foreign || x.deleting[f.workspace].Load() && !x.rough:
		// The response shows nothing of the file.
		x.shown(call, keyLetIn(by))
	case x.deleting[f.workspace].Load():
		// Either the workspace was deleted before, or the file was, the response was
		// lost, and a retry found nothing: it may have taken effect.
		x.shown(call, keyLetIn(by))
		x.note(x.number, call, never, filePerhapsDeleted(id))
	case x.rough:
		x.shown(call, keyLetIn(by), filePerhapsDeleted(id))
	default:
		x.shown(call, keyLetIn(by), fileSeen(id, false))
	}
	return a.Status
}

// head reads whether a file exists.
func (x *actor) head(f fileAt) {
	call := x.now()
	got, err := x.stack.S3.HeadObject(x.ctx, &s3.HeadObjectInput{Bucket: &x.stack.Files, Key: aws.String(x.objectKey(f))})
	var missing *types.NotFound
	switch {
	case err == nil:
		x.shown(call, fileSeen(string(f.id), true))
		if aws.ToString(got.ETag) != fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum([]byte(f.content())))) { //nolint:gosec // S3's ETag
			x.violation("the content of %s is another", f.id)
		}
	case errors.As(err, &missing):
		x.shown(call, fileSeen(string(f.id), false))
	default:
		x.unsure(call)
	}
}

// read reads a job.
func (x *actor) read() {
	id, by := string(x.jobs[x.random.IntN(len(x.jobs))]), x.key()
	call := x.now()
	var body struct {
		Data struct{ Status string }
	}
	switch a, certain := x.certain(call, by, x.client.Get(id)); {
	case !certain:
	case a.Status == http.StatusOK && json.Unmarshal(a.Body, &body) == nil:
		x.shown(call, keyLetIn(by), jobSeen(id, body.Data.Status))
	default:
		x.violation("the read of a job got %d", a.Status)
	}
}

// list lists the credentials of a workspace.
func (x *actor) list(workspace int) {
	w := x.workspaces[workspace]
	call := x.now()
	all, err := byok.NewManager(x.stack.DynamoDB, x.stack.Credentials).List(x.ctx, w)
	if err != nil {
		x.unsure(call)
		return
	}
	found := make(map[string]string)
	for _, c := range all {
		if found[c.Name] != "" {
			x.violation("two credentials have the name %s", c.Name)
		}
		found[c.Name] = stored(string(c.ID), c.SortOrder)
	}
	l := listing{x.number, call, x.now(), string(w), found}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.listings = append(x.listings, l)
}

// setKey disables or enables an API key.
func (x *actor) setKey() {
	k, disable := x.key(), x.random.IntN(2) == 0
	registry := auth.NewRegistry(x.stack.DynamoDB, x.stack.Access)
	set := registry.EnableKey
	if disable {
		set = registry.DisableKey
	}
	call, shown := x.now(), keySet(k, disable)
	if err := set(x.ctx, x.account.ID, auth.HashKey(k)); err != nil {
		x.unsure(call, shown)
		return
	}
	x.shown(call, shown)
	x.retried(call, shown)
}

// deleteWorkspace deletes a workspace, perhaps again, and disables the keys that
// are bound to it.
func (x *actor) deleteWorkspace(workspace int) {
	w := string(x.workspaces[workspace])
	shown := []event{workspaceDeleted(w), defaultCleared(string(x.account.ID), w)}
	for _, provider := range providers {
		shown = append(shown, positionsClosed(w, provider))
	}
	if workspace == 1 {
		shown = append(shown, keySet(x.bound, true))
	}
	x.deleting[workspace].Store(true)
	call := x.now()
	if err := auth.NewRegistry(x.stack.DynamoDB, x.stack.Access).DeleteWorkspace(x.ctx, x.account.ID, x.workspaces[workspace]); err != nil {
		x.unsure(call, shown...)
		return
	}
	x.shown(call, shown...)
}

func (x *actor) setDefault(workspace int) {
	w := x.workspaces[workspace]
	call, set := x.now(), defaultSet(string(x.account.ID), string(w))
	err := auth.NewRegistry(x.stack.DynamoDB, x.stack.Access).SetDefaultWorkspace(x.ctx, x.account.ID, w)
	switch {
	case err == nil:
		x.shown(call, set, workspaceLive(string(w)))
		x.retried(call, set)
	case errors.Is(err, auth.ErrWorkspaceDeleted):
		x.shown(call, workspaceGone(string(w)))
	default:
		x.unsure(call, set)
	}
}

// upload stores a file under an id that may exist.
func (x *actor) upload(f fileAt) {
	call := x.now()
	err := files.NewManager(x.stack.S3, x.stack.Files).
		Upload(x.ctx, x.workspaces[f.workspace], f.id, strings.NewReader(f.content()), "text/plain")
	switch {
	case err == nil:
		x.shown(call, fileUploaded(string(f.id)))
		x.retried(call, filePerhapsUploaded(string(f.id)))
	case errors.Is(err, files.ErrExists) && x.rough:
		x.shown(call, filePerhapsUploaded(string(f.id)))
	case errors.Is(err, files.ErrExists):
		x.shown(call, fileSeen(string(f.id), true))
	default:
		x.unsure(call, filePerhapsUploaded(string(f.id)))
	}
}

// step moves a job to its next state.
func (x *actor) step() {
	id := x.jobs[x.random.IntN(len(x.jobs))]
	writer := syncjobs.NewWriter(x.stack.DynamoDB, x.stack.Jobs)
	from, to := "queued", "running"
	if x.random.IntN(2) == 0 {
		from, to = "running", "succeeded"
	}
	var err error
	call := x.now()
	if to == "running" {
		err = writer.Start(x.ctx, x.account.ID, id)
	} else {
		err = writer.Succeed(x.ctx, x.account.ID, id, 1, 2)
	}
	switch {
	case err == nil:
		x.shown(call, jobMoved(string(id), from, to))
	case errors.Is(err, syncjobs.ErrState) && !x.rough:
		x.shown(call, jobKept(string(id), from))
	case errors.Is(err, syncjobs.ErrState):
		x.shown(call, jobPerhapsMoved(string(id), from, to))
	default:
		x.unsure(call, jobPerhapsMoved(string(id), from, to))
	}
}
