package main

import (
	"context"
	"fmt"

	"signalbox.dev/infra/admin/acts"
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

type workspaceList struct{ owner }

type oneWorkspace struct {
	owner
	ID ids.Workspace `arg:"" name:"workspace" help:"The workspace, or the first 8 characters of its id or more."`
}

type confirmedWorkspace struct {
	oneWorkspace
	confirmation
}

type (
	workspaceDefault struct{ oneWorkspace }
	workspaceShow    struct{ oneWorkspace }
	workspaceDelete  struct{ confirmedWorkspace }
	workspaceErase   struct{ confirmedWorkspace }
	workspacePurge   struct{ confirmedWorkspace }
)

type workspaceView struct {
	ID        ids.Workspace   `json:"id" title:"workspace" list:"workspace,short"`
	Name      string          `json:"name" title:"name" list:"name,16"`
	State     string          `json:"state" title:"state"` // live, deleted or damaged
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
	if w.Damage != nil {
		view.State = "damaged"
	}
	return view
}

func (c workspaceCreate) Run(ctx context.Context, s *session) error {
	id, err := s.Registry.CreateWorkspace(ctx, c.Account, c.Name)
	s.Audit(ctx, "workspace.create", err, []any{"account", c.Account, "workspace", id})
	return s.say(err, changed{string(id), "live"}, "%s", id)
}

func (c workspaceList) Run(ctx context.Context, s *session) error {
	found, err := s.Registry.ListWorkspaces(ctx, c.Account)
	if err != nil {
		return err
	}
	return output.List(s.out, each(found, viewWorkspace), "workspace", "name", "state", "default", "age", "deleted")
}

func (c workspaceShow) Run(ctx context.Context, s *session) error {
	found, err := s.Registry.FindWorkspace(ctx, c.Account, c.ID)
	if err != nil {
		return err
	}
	return output.One(s.out, viewWorkspace(found))
}

func (c workspaceDefault) Run(ctx context.Context, s *session) error {
	_, err := s.Registry.FindWorkspace(ctx, c.Account, c.ID) // the write does not see every damage
	if err == nil {
		err = s.Registry.SetDefaultWorkspace(ctx, c.Account, c.ID)
	}
	s.Audit(ctx, "workspace.default", err, []any{"account", c.Account, "workspace", c.ID})
	return s.say(err, changed{string(c.ID), "default"}, "%s is the default workspace now.", c.ID)
}

func (c workspaceDelete) Run(ctx context.Context, s *session) error {
	if _, err := c.ask(ctx, s, "workspace.delete", "deletes %s and disables every key bound to it", s.Registry.FindWorkspace); err != nil {
		return err
	}
	return s.say(s.DeleteWorkspace(ctx, c.Account, c.ID), changed{string(c.ID), "deleted"}, "%s is deleted, and its keys are disabled. Its credentials and files stay until `admin workspace purge`.", c.ID)
}

type findWorkspace func(context.Context, ids.Account, ids.Workspace) (auth.Workspace, error)

// ask finds the workspace and asks for a confirmation. In the effect, %s stands for the workspace.
func (c confirmedWorkspace) ask(ctx context.Context, s *session, action, effect string, find findWorkspace) (auth.Workspace, error) {
	w, err := find(ctx, c.Account, c.ID)
	if err != nil {
		s.Audit(ctx, action, err, []any{"account", c.Account, "workspace", c.ID})
		return w, err
	}
	if w.Default {
		s.Warn("it is the account's default workspace. Without a default, a request that names no workspace fails: a create with 400, a deletion of a file with 404. `admin workspace default` names another")
	}
	return w, c.confirm(ctx, s, fmt.Sprintf(effect, named("workspace", w.Name, string(c.ID))), w.Name, string(c.ID))
}

type removalView struct {
	ID ids.Workspace `json:"id"`
	acts.Removed
}

func (c oneWorkspace) show(s *session, removed acts.Removed, err error, sentence string) error {
	return s.say(err, removalView{c.ID, removed}, sentence, c.ID, removed)
}

func (c workspacePurge) Run(ctx context.Context, s *session) error {
	found, err := c.ask(ctx, s, "workspace.purge", "removes for good the credentials and files of %s", s.FindDeleted)
	if err != nil {
		return err
	}
	removed, err := s.PurgeWorkspace(ctx, c.Account, found)
	return c.show(s, removed, err, "%s is purged: %s removed.")
}

func (c workspaceErase) Run(ctx context.Context, s *session) error {
	if _, err := c.ask(ctx, s, "workspace.erase", "removes for good %s, its credentials, its files and every key bound to it", s.Registry.FindWorkspace); err != nil {
		return err
	}
	removed, err := s.EraseWorkspace(ctx, c.Account, c.ID)
	return c.show(s, removed, err, "%s is erased: %s removed. infra/operations/incidents.md says what remains, and until when.")
}
