package history

import (
	"context"
	"errors"
	"strings"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/syncjobs"
)

// list looks at the credentials of a workspace.
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
			x.violation("two credentials are called %s", c.Name)
		}
		found[c.Name] = stored(string(c.ID), c.SortOrder)
	}
	x.looked(listing{x.number, call, x.now(), string(w), found})
}

// setKey disables an API key, or lets it in again.
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

// deleteWorkspace deletes a workspace, again perhaps, and with it the keys that
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

// upload stores a file of an id that may be taken.
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

// step moves a job on, if it is where it can be moved from.
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
