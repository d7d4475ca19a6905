package main

import (
	"context"

	"signalbox.dev/shared/ids"
)

type accountCommands struct {
	Create accountCreate `cmd:"" help:"Make an account with a default workspace."`
}

type accountCreate struct {
	Name string `arg:"" help:"What people call the account."`
}

type accountView struct {
	ID        ids.Account   `json:"id"`
	Name      string        `json:"name"`
	Workspace ids.Workspace `json:"default_workspace_id"`
}

// Run makes an account.
func (c accountCreate) Run(ctx context.Context, s *session) error {
	account, workspace, err := s.registry.CreateAccount(ctx, c.Name)
	s.audit(ctx, "account.create", err, "account", account, "workspace", workspace)
	if err != nil {
		return err
	}
	return one(s.out, accountView{ID: account, Name: c.Name, Workspace: workspace},
		column[accountView]{"account", func(v accountView) string { return string(v.ID) }},
		column[accountView]{"name", func(v accountView) string { return v.Name }},
		column[accountView]{"default workspace", func(v accountView) string { return string(v.Workspace) }},
	)
}
