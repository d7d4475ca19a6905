package main

import (
	"context"

	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type accountCommands struct {
	Create accountCreate `cmd:"" help:"Create an account with a default workspace."`
	List   accountList   `cmd:"" reads:"" help:"List all accounts. Reads the whole access table: on AWS that costs one read unit for each 4 KB of it."`
}

type accountList struct{}

type accountCreate struct {
	Name string `arg:"" help:"The account's name."`
}

type accountView struct {
	ID        ids.Account   `json:"id" title:"account"`
	Name      string        `json:"name" title:"name"`
	Workspace ids.Workspace `json:"default_workspace_id" title:"default workspace"`
}

// Run makes an account.
func (c accountCreate) Run(ctx context.Context, s *session) error {
	account, workspace, err := s.registry.CreateAccount(ctx, c.Name)
	s.audit(ctx, "account.create", err, "account", account, "workspace", workspace)
	if err != nil {
		return err
	}
	return output.One(s.out, accountView{ID: account, Name: c.Name, Workspace: workspace})
}

type accountRow struct {
	ID        ids.Account     `json:"id" list:"account,short"`
	Name      string          `json:"name" list:"name,16"`
	State     string          `json:"state" list:"state"` // active or broken
	Workspace output.Optional `json:"default_workspace_id" list:"default workspace,short"`
	CreatedAt output.Optional `json:"created_at" list:"age,age"`
}

// Run lists accounts.
func (accountList) Run(ctx context.Context, s *session) error {
	found, err := s.registry.ListAccounts(ctx)
	if err != nil {
		return err
	}
	return output.List(s.out, each(found, func(a auth.Account) accountRow {
		row := accountRow{ID: a.ID, Name: a.Name, Workspace: output.Optional(a.DefaultWorkspace), State: "active", CreatedAt: output.When(a.CreatedAt)}
		if a.Fault != nil {
			row.State = "broken"
		}
		return row
	}), "account", "name", "state", "age", "default workspace")
}
