package history

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/syncjobs"
)

// delete deletes a file, sometimes with a key of another workspace only.
func (x *client) delete(ctx context.Context) {
	f, by := x.file(), x.key()
	bound := x.random.IntN(4) == 0
	if bound {
		by = x.bound
	}
	w, id := string(x.account.Workspaces[f.workspace]), string(f.id)
	call := x.now()
	a, err := x.client.Delete(ctx, by.Token, w, id)
	x.checkAnswer(a, err)
	switch {
	case a.Uncertain():
		x.unsure(call, filePerhapsDeleted(id))
	case a.Status == http.StatusUnauthorized:
		x.shown(call, keyRefused(string(by.Hash)))
	case a.Status == http.StatusOK && bound && f.workspace != 1:
		x.violation("a key of another workspace deleted %s", id)
	case a.Status == http.StatusOK:
		x.shown(call, keyLetIn(string(by.Hash)), workspaceLive(w), fileDeleted(id))
		x.retried(call, filePerhapsDeleted(id))
	case a.Status != http.StatusNotFound:
		x.violation("a delete got %d", a.Status)
	case bound && f.workspace != 1 || x.deleting[f.workspace].Load() && !x.stormy:
		// The response shows nothing of the file.
		x.shown(call, keyLetIn(string(by.Hash)))
	case x.deleting[f.workspace].Load():
		// Either the workspace was deleted before, or the file was, the response was
		// lost, and a retry found nothing: it may have taken effect.
		x.shown(call, keyLetIn(string(by.Hash)))
		x.note(x.number, call, never, filePerhapsDeleted(id))
	case x.stormy:
		x.shown(call, keyLetIn(string(by.Hash)), filePerhapsDeleted(id))
	default:
		x.shown(call, keyLetIn(string(by.Hash)), fileSeen(id, false))
	}
}

// head reads whether a file exists.
func (x *client) head(ctx context.Context, f fileAt) {
	stack, key := x.service.Stack(), files.Key(x.account.Workspaces[f.workspace], f.id)
	call := x.now()
	_, err := stack.S3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &stack.Files, Key: &key})
	var missing *types.NotFound
	switch {
	case err == nil:
		x.shown(call, fileSeen(string(f.id), true))
	case errors.As(err, &missing):
		x.shown(call, fileSeen(string(f.id), false))
	default:
		x.unsure(call)
	}
}

// read reads a job.
func (x *client) read(ctx context.Context) {
	id, by := string(x.jobs[x.random.IntN(len(x.jobs))]), x.key()
	call := x.now()
	a, err := x.client.Job(ctx, by.Token, id)
	x.checkAnswer(a, err)
	var body struct {
		Data struct{ Status string }
	}
	switch {
	case a.Uncertain():
		x.unsure(call)
	case a.Status == http.StatusUnauthorized:
		x.shown(call, keyRefused(string(by.Hash)))
	case a.Status == http.StatusOK && json.Unmarshal(a.Body, &body) == nil:
		x.shown(call, keyLetIn(string(by.Hash)), jobSeen(id, body.Data.Status))
	default:
		x.violation("the read of a job got %d", a.Status)
	}
}

// list lists the credentials of a workspace.
func (x *client) list(ctx context.Context, workspace int) {
	stack, w := x.service.Stack(), x.account.Workspaces[workspace]
	call := x.now()
	all, err := byok.NewManager(stack.DynamoDB, stack.Credentials).List(ctx, w)
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
	x.listed(listing{x.number, call, x.now(), string(w), found})
}

// setKey disables or enables an API key.
func (x *client) setKey(ctx context.Context) {
	stack, k, disable := x.service.Stack(), x.key(), x.random.IntN(2) == 0
	registry := auth.NewRegistry(stack.DynamoDB, stack.Access)
	set := registry.EnableKey
	if disable {
		set = registry.DisableKey
	}
	call, shown := x.now(), keySet(string(k.Hash), disable)
	if err := set(ctx, x.account.ID, k.Hash); err != nil {
		x.unsure(call, shown)
		return
	}
	x.shown(call, shown)
	x.retried(call, shown)
}

// deleteWorkspace deletes a workspace, perhaps again, and disables the keys that
// are bound to it.
func (x *client) deleteWorkspace(ctx context.Context, workspace int) {
	stack, w := x.service.Stack(), string(x.account.Workspaces[workspace])
	shown := []event{workspaceDeleted(w), defaultCleared(string(x.account.ID), w)}
	for _, provider := range providers {
		shown = append(shown, positionsClosed(w, provider))
	}
	if workspace == 1 {
		shown = append(shown, keySet(string(x.bound.Hash), true))
	}
	x.deleting[workspace].Store(true)
	call := x.now()
	if err := auth.NewRegistry(stack.DynamoDB, stack.Access).DeleteWorkspace(ctx, x.account.ID, x.account.Workspaces[workspace]); err != nil {
		x.unsure(call, shown...)
		return
	}
	x.shown(call, shown...)
}

func (x *client) setDefault(ctx context.Context, workspace int) {
	stack, w := x.service.Stack(), x.account.Workspaces[workspace]
	call, set := x.now(), defaultSet(string(x.account.ID), string(w))
	err := auth.NewRegistry(stack.DynamoDB, stack.Access).SetDefaultWorkspace(ctx, x.account.ID, w)
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
func (x *client) upload(ctx context.Context, f fileAt) {
	stack := x.service.Stack()
	call := x.now()
	err := files.NewManager(stack.S3, stack.Files).
		Upload(ctx, x.account.Workspaces[f.workspace], f.id, strings.NewReader("content"), "text/plain")
	switch {
	case err == nil:
		x.shown(call, fileUploaded(string(f.id)))
		x.retried(call, filePerhapsUploaded(string(f.id)))
	case errors.Is(err, files.ErrExists) && x.stormy:
		x.shown(call, filePerhapsUploaded(string(f.id)))
	case errors.Is(err, files.ErrExists):
		x.shown(call, fileSeen(string(f.id), true))
	default:
		x.unsure(call, filePerhapsUploaded(string(f.id)))
	}
}

// step moves a job to its next state.
func (x *client) step(ctx context.Context) {
	stack, id := x.service.Stack(), x.jobs[x.random.IntN(len(x.jobs))]
	writer := syncjobs.NewWriter(stack.DynamoDB, stack.Jobs)
	from, to := "queued", "running"
	if x.random.IntN(2) == 0 {
		from, to = "running", "succeeded"
	}
	var err error
	call := x.now()
	if to == "running" {
		err = writer.Start(ctx, x.account.ID, id)
	} else {
		err = writer.Succeed(ctx, x.account.ID, id, 1, 2)
	}
	switch {
	case err == nil:
		x.shown(call, jobMoved(string(id), from, to))
	case errors.Is(err, syncjobs.ErrState) && !x.stormy:
		x.shown(call, jobKept(string(id), from))
	case errors.Is(err, syncjobs.ErrState):
		x.shown(call, jobPerhapsMoved(string(id), from, to))
	default:
		x.unsure(call, jobPerhapsMoved(string(id), from, to))
	}
}
