package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type workspaceCommands struct {
	Create  workspaceCreate  `cmd:"" help:"Create a workspace."`
	List    workspaceList    `cmd:"" reads:"" help:"List the account's workspaces, deleted ones included."`
	Show    workspaceShow    `cmd:"" reads:"" help:"Show a workspace with its whole id and its times."`
	Default workspaceDefault `cmd:"" help:"Make a workspace the account's default, which requests that name none use."`
	Delete  workspaceDelete  `cmd:"" help:"Delete a workspace and disable every key bound to it. Repeat it if it was interrupted."`
	Erase   workspaceErase   `cmd:"" help:"Delete a workspace with its credentials, its files and the API keys bound to it. This cannot be undone. Repeat it if it was interrupted."`
	Purge   workspacePurge   `cmd:"" help:"Delete the credentials and files of a deleted workspace. This cannot be undone."`
}

type workspaceCreate struct {
	owner
	Name string `arg:"" help:"The workspace's name."`
}

type workspaceList struct {
	owner
	State string `enum:"live,deleted," default:"" placeholder:"STATE" help:"List those that are live, or deleted."`
}

// oneWorkspace is the workspace of a command.
type oneWorkspace struct {
	owner
	ID ids.Workspace `arg:"" name:"workspace" help:"The workspace, or the first 8 characters of its id or more."`
}

type (
	workspaceDefault struct{ oneWorkspace }
	workspaceShow    struct{ oneWorkspace }
	workspaceDelete  struct {
		oneWorkspace
		confirmation
	}
)

type workspaceView struct {
	ID        ids.Workspace   `json:"id" title:"workspace" list:"workspace,short"`
	Name      string          `json:"name" title:"name" list:"name,16"`
	State     string          `json:"-" title:"state"` // live or deleted
	Default   bool            `json:"default" title:"default"`
	CreatedAt output.Optional `json:"created_at" title:"created" list:"age,age"`
	DeletedAt output.Optional `json:"deleted_at" title:"deleted" list:"deleted,age"`
}

func viewWorkspace(w auth.Workspace) workspaceView {
	view := workspaceView{
		ID: w.ID, Name: w.Name, State: "live", Default: w.Default,
		CreatedAt: output.When(w.CreatedAt), DeletedAt: output.When(w.DeletedAt),
	}
	if view.DeletedAt != "" {
		view.State = "deleted"
	}
	return view
}

// Run makes a workspace.
func (c workspaceCreate) Run(ctx context.Context, s *session) error {
	id, err := s.registry.CreateWorkspace(ctx, c.Account, c.Name)
	return s.finish(ctx, "workspace.create", err, changed{string(id), "live"}, string(id), "account", c.Account, "workspace", id)
}

// Run lists workspaces.
func (c workspaceList) Run(ctx context.Context, s *session) error {
	found, err := s.registry.ListWorkspaces(ctx, c.Account)
	if err != nil {
		return err
	}
	return output.List(s.out, only(each(found, viewWorkspace), c.State, func(v workspaceView) string { return v.State }), "workspace", "name", "state", "default", "age", "deleted")
}

// Run shows a workspace.
func (c workspaceShow) Run(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err != nil {
		return err
	}
	return output.One(s.out, viewWorkspace(found))
}

// Run changes the default workspace.
func (c workspaceDefault) Run(ctx context.Context, s *session) error {
	err := s.registry.SetDefaultWorkspace(ctx, c.Account, c.ID)
	return s.finish(ctx, "workspace.default", err, changed{string(c.ID), "default"}, string(c.ID)+" is the default workspace now.",
		"account", c.Account, "workspace", c.ID)
}

// Run deletes a workspace.
func (c workspaceDelete) Run(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil && found.Default {
		s.warn("it is the account's default workspace. Without a default, a request that names no workspace fails: a create with 400, a deletion of a file with 404. `admin workspace default` names another")
	}
	if err == nil {
		effect := "deletes " + named("workspace", found.Name, string(c.ID)) + " and disables every key bound to it"
		if err := c.confirm(ctx, s, effect, found.Name, string(c.ID)); err != nil {
			return err
		}
		if err := s.begin(ctx, "workspace.delete", "account", c.Account, "workspace", c.ID); err != nil {
			return err
		}
		err = s.registry.DeleteWorkspace(ctx, c.Account, c.ID)
	}
	return s.finish(ctx, "workspace.delete", err, changed{string(c.ID), "deleted"},
		string(c.ID)+" is deleted, and its keys are disabled. Its credentials and files stay until `workspace purge`.",
		"account", c.Account, "workspace", c.ID)
}

// settled is the time after a workspace's deletion during which a request may still store
// a credential in it. A request that was under way counts as before the deletion, and ends
// at the functions' timeout of 10 seconds. Five more seconds allow for clocks that differ,
// and for a deletion time in whole seconds.
const settled = auth.DeletionDelay + 10*time.Second + 5*time.Second

type workspacePurge struct {
	oneWorkspace
	confirmation
	DryRun bool `help:"Only list the credentials and files."`
}

type purgeView struct {
	ID          ids.Workspace `json:"id"`
	Credentials int           `json:"credentials_removed"`
	Versions    int           `json:"file_versions_removed"`
}

// purgeRow is a credential or a file that a purge would remove.
type purgeRow struct {
	Kind     string          `json:"kind" title:"kind"`
	ID       string          `json:"id" title:"id" list:"id,short"`
	Name     output.Optional `json:"name" title:"name" list:"name,16"`
	Versions *int64          `json:"versions" title:"versions"`
	Bytes    *int64          `json:"bytes" title:"bytes"`
}

// Run removes the credentials and files of a deleted workspace. If it was interrupted, it
// may be run again.
func (c workspacePurge) Run(ctx context.Context, s *session) error {
	if c.DryRun {
		return c.preview(ctx, s)
	}
	found, err := c.deleted(ctx, s)
	removed := purgeView{ID: c.ID}
	if err == nil {
		effect := "removes for good the credentials and files of " + named("workspace", found.Name, string(c.ID))
		if err := c.confirm(ctx, s, effect, found.Name, string(c.ID)); err != nil {
			return err
		}
		if err := s.begin(ctx, "workspace.purge", "account", c.Account, "workspace", c.ID); err != nil {
			return err
		}
		err = s.purge(ctx, c.Account, c.ID, found.DeletedAt.Add(settled), &removed)
	}
	err = removed.orRepeat(err, s.changes.command.tried())
	return s.finish(ctx, "workspace.purge", err, removed, fmt.Sprintf("%s is purged: %s removed.", c.ID, removed), "account", c.Account, "workspace", c.ID,
		"credentials_removed", removed.Credentials, "file_versions_removed", removed.Versions)
}

// String returns what was removed.
func (v purgeView) String() string {
	return fmt.Sprintf("%s and %s of files", output.Count(v.Credentials, "credential"), output.Count(v.Versions, "version"))
}

// orRepeat adds to an error what was removed before it, and what to do.
func (v purgeView) orRepeat(err error, tried bool) error {
	if err == nil || !tried {
		return err
	}
	return &exit.Partial{Err: err, Done: fmt.Sprintf("removed so far: %s. Repeat the command: it goes on", v)}
}

type workspaceErase struct {
	oneWorkspace
	confirmation
}

type eraseView struct {
	purgeView

	Keys int `json:"keys_removed"`
}

// Run does in one act what a deletion, a purge and deletions of keys do.
func (c workspaceErase) Run(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	removed := eraseView{purgeView: purgeView{ID: c.ID}}
	attrs := []any{"account", c.Account, "workspace", c.ID}
	if err == nil {
		effect := "removes for good " + named("workspace", found.Name, string(c.ID)) + ", its credentials, its files and every key bound to it"
		if err := c.confirm(ctx, s, effect, found.Name, string(c.ID)); err != nil {
			return err
		}
		if err := s.begin(ctx, "workspace.erase", attrs...); err != nil {
			return err
		}
		err = removed.orRepeat(s.erase(ctx, c.Account, c.ID, &removed), s.changes.command.tried())
	}
	return s.finish(ctx, "workspace.erase", err, removed, fmt.Sprintf("%s is erased: %s, and %s removed. "+
		"infra/operations/incidents.md says what remains, and until when.", c.ID, removed.purgeView, output.Count(removed.Keys, "key")),
		append(attrs, "credentials_removed", removed.Credentials, "file_versions_removed", removed.Versions, "keys_removed", removed.Keys)...)
}

func (s *session) erase(ctx context.Context, account ids.Account, id ids.Workspace, removed *eraseView) error {
	if err := s.registry.DeleteWorkspace(ctx, account, id); err != nil {
		return err
	}
	keys, err := s.registry.ListBoundKeys(ctx, id)
	if err != nil {
		return err
	}
	for _, key := range keys {
		err := s.registry.DeleteKey(ctx, account, key.Hash)
		if errors.Is(err, auth.ErrNoKey) { // deleted in between
			continue
		}
		s.audit(ctx, "key.delete", err, "account", account, "key", key.Hash)
		if err != nil {
			return err
		}
		removed.Keys++
	}
	found, err := s.registry.FindWorkspace(ctx, account, id)
	if err != nil {
		return err
	}
	return s.purge(ctx, account, id, found.DeletedAt.Add(settled), &removed.purgeView)
}

// deleted finds the workspace, or refuses a live one.
func (c workspacePurge) deleted(ctx context.Context, s *session) (auth.Workspace, error) {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil && found.DeletedAt.IsZero() {
		err = exit.Refusal("the workspace is live: delete it first")
	}
	return found, err
}

// preview lists the things that a purge would remove.
func (c workspacePurge) preview(ctx context.Context, s *session) error {
	if _, err := c.deleted(ctx, s); err != nil {
		return err
	}
	credentials, err := s.credentials.List(ctx, c.ID)
	if err != nil {
		return err
	}
	stored, err := s.files.Versions(ctx, c.ID)
	if err != nil {
		return err
	}
	var rows []purgeRow
	for _, v := range credentials {
		rows = append(rows, purgeRow{Kind: "credential", ID: string(v.ID), Name: output.Optional(v.Name)})
	}
	for _, v := range stored {
		versions := int64(v.Versions)
		rows = append(rows, purgeRow{Kind: "file", ID: string(v.ID), Versions: &versions, Bytes: &v.Bytes})
	}
	return output.List(s.out, rows, "kind", "id", "name", "versions", "bytes")
}

// purge sweeps at once. It sweeps again if requests from before the deletion may still
// have been under way.
func (s *session) purge(ctx context.Context, account ids.Account, id ids.Workspace, quiet time.Time, removed *purgeView) error {
	// An interrupted deletion may have left keys enabled: finish it first.
	if err := s.registry.DeleteWorkspace(ctx, account, id); err != nil {
		return err
	}
	for {
		began := s.now()
		if err := s.sweep(ctx, id, removed); err != nil {
			return err
		}
		wait := quiet.Sub(began)
		if wait <= 0 {
			return nil
		}
		s.note("Swept once; sweeping again in %s, when requests that were under way at the deletion have ended.", wait.Round(time.Second))
		if err := s.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// sweep removes everything and adds it to the count, even if it fails.
func (s *session) sweep(ctx context.Context, id ids.Workspace, removed *purgeView) error {
	credentials, err := s.credentials.Purge(ctx, id)
	removed.Credentials += credentials
	if err != nil {
		return err
	}
	versions, err := s.files.Purge(ctx, id)
	removed.Versions += versions
	return err
}
