package main

import (
	"context"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type workspaceCommands struct {
	Create  workspaceCreate  `cmd:"" help:"Make a workspace."`
	List    workspaceList    `cmd:"" reads:"" help:"List the account's workspaces, deleted ones included."`
	Default workspaceDefault `cmd:"" help:"Make a workspace the one meant where a request names none."`
	Delete  workspaceDelete  `cmd:"" help:"Delete a workspace and disable every key bound to it. Repeat it if it was interrupted."`
	Purge   workspacePurge   `cmd:"" help:"Remove the credentials and files of a deleted workspace for good."`
}

type workspaceCreate struct {
	owner
	Name string `arg:"" help:"What people call the workspace."`
}

type workspaceList struct {
	owner
}

// oneWorkspace is the workspace a command is about, always named in full.
type oneWorkspace struct {
	owner
	ID ids.Workspace `arg:"" name:"workspace" help:"The workspace."`
}

type (
	workspaceDefault struct{ oneWorkspace }
	workspaceDelete  struct {
		oneWorkspace
		confirmation
	}
)

type workspaceView struct {
	ID        ids.Workspace `json:"id"`
	Name      string        `json:"name"`
	Default   bool          `json:"default"`
	CreatedAt optional      `json:"created_at"`
	DeletedAt optional      `json:"deleted_at"`
}

func viewWorkspace(w auth.Workspace) workspaceView {
	return workspaceView{
		ID: w.ID, Name: w.Name, Default: w.Default,
		CreatedAt: when(w.CreatedAt), DeletedAt: when(w.DeletedAt),
	}
}

func (v workspaceView) state() string {
	switch {
	case v.DeletedAt != "":
		return "deleted " + string(v.DeletedAt)
	case v.Default:
		return "default"
	default:
		return "live"
	}
}

// changed is the JSON of a change that yields nothing else.
type changed struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// Run makes a workspace.
func (c workspaceCreate) Run(ctx context.Context, s *session) error {
	id, err := s.registry.CreateWorkspace(ctx, c.Account, c.Name)
	s.audit(ctx, "workspace.create", err, "account", c.Account, "workspace", id)
	if err != nil {
		return err
	}
	return s.out.say(changed{string(id), "live"}, "%s", id)
}

// Run lists workspaces.
func (c workspaceList) Run(ctx context.Context, s *session) error {
	found, err := s.registry.ListWorkspaces(ctx, c.Account)
	if err != nil {
		return err
	}
	views := make([]workspaceView, len(found))
	for i, w := range found {
		views[i] = viewWorkspace(w)
	}
	return list(s.out, views,
		column[workspaceView]{"WORKSPACE", func(v workspaceView) string { return string(v.ID) }},
		column[workspaceView]{"NAME", func(v workspaceView) string { return v.Name }},
		column[workspaceView]{"STATE", workspaceView.state},
		column[workspaceView]{"CREATED", func(v workspaceView) string { return string(v.CreatedAt) }},
	)
}

// Run changes the default workspace.
func (c workspaceDefault) Run(ctx context.Context, s *session) error {
	err := s.registry.SetDefaultWorkspace(ctx, c.Account, c.ID)
	s.audit(ctx, "workspace.default", err, "account", c.Account, "workspace", c.ID)
	if err != nil {
		return err
	}
	return s.out.say(changed{string(c.ID), "default"}, "%s is the default workspace now.", c.ID)
}

// Run deletes a workspace.
func (c workspaceDelete) Run(ctx context.Context, s *session) error {
	err := c.confirm(ctx, s, func() (subject, error) {
		found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
		return subject{"deletes " + named("workspace", found.Name, string(c.ID)) + " and disables every key bound to it",
			[]string{found.Name, string(c.ID)}}, err
	})
	if err != nil {
		return err
	}
	err = s.registry.DeleteWorkspace(ctx, c.Account, c.ID)
	s.audit(ctx, "workspace.delete", err, "account", c.Account, "workspace", c.ID)
	if err != nil {
		return err
	}
	return s.out.say(changed{string(c.ID), "deleted"},
		"%s is deleted, and its keys are disabled. Its credentials and files stay until `workspace purge`.", c.ID)
}
