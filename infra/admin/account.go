package main

import (
	"context"

	"signalbox.dev/shared/ids"
)

type accountCommands struct {
	Create accountCreate `cmd:"" help:"Make an account with a default workspace."`
	List   accountList   `cmd:"" reads:"" help:"List all accounts. Reads the whole access table: on AWS that costs one read unit for each 4 KB of it."`
}

type accountList struct{}

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

type accountRow struct {
	ID        ids.Account `json:"id"`
	Name      string      `json:"name"`
	Workspace optional    `json:"default_workspace_id"`
	State     string      `json:"state"` // active or broken
	CreatedAt optional    `json:"created_at"`
}

// Run lists accounts.
func (accountList) Run(ctx context.Context, s *session) error {
	found, err := s.registry.ListAccounts(ctx)
	if err != nil {
		return err
	}
	rows := make([]accountRow, len(found))
	for i, a := range found {
		rows[i] = accountRow{ID: a.ID, Name: a.Name, Workspace: optional(a.DefaultWorkspace), State: "active", CreatedAt: when(a.CreatedAt)}
		if a.Fault != nil {
			rows[i].State = "broken"
		}
	}
	return list(s.out, rows,
		column[accountRow]{"ACCOUNT", func(r accountRow) string { return string(r.ID) }},
		column[accountRow]{"NAME", func(r accountRow) string { return r.Name }},
		column[accountRow]{"DEFAULT WORKSPACE", func(r accountRow) string { return string(r.Workspace) }},
		column[accountRow]{"STATE", func(r accountRow) string { return r.State }},
		column[accountRow]{"CREATED", func(r accountRow) string { return string(r.CreatedAt) }},
	)
}
