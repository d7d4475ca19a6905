package main

import (
	"context"
	"errors"
	"fmt"

	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type accountCommands struct {
	Create  accountCreate  `cmd:"" help:"Create an account with a default workspace."`
	Disable accountDisable `cmd:"" help:"Disable every API key of an account. Repeat it if it was interrupted; keys are enabled again one by one."`
	List    accountList    `cmd:"" reads:"" help:"List all accounts. Reads the whole access table: on AWS that costs one read unit for each 4 KB of it."`
}

type accountList struct{}

type accountCreate struct {
	Name string `arg:"" help:"The account's name."`
}

type accountDisable struct {
	ID ids.Account `arg:"" name:"account" help:"The account, or the first 8 characters of its id or more."`
	confirmation
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

type disabledView struct {
	ID       ids.Account `json:"id"`
	State    string      `json:"state"`
	Disabled int         `json:"keys_disabled"`
}

// Run disables keys. It reads the keys' own rows, because a damaged account or list must not
// keep a key enabled.
func (c accountDisable) Run(ctx context.Context, s *session) error {
	keys, err := s.keysOf(ctx, c.ID)
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, s, fmt.Sprintf("disables %s of account %s: all its requests are refused", output.Count(len(keys), "key"), c.ID), string(c.ID), string(c.ID[:8])); err != nil {
		return err
	}
	if err := s.begin(ctx, "account.disable", "account", c.ID); err != nil {
		return err
	}
	disabled := 0
	for len(keys) > 0 && err == nil { // until no key was made or enabled in between
		for _, key := range keys {
			err = s.registry.DisableKey(ctx, c.ID, key.Hash)
			if errors.Is(err, auth.ErrNoKey) { // deleted in between
				err = nil
				continue
			}
			s.audit(ctx, "key.disable", err, "account", c.ID, "key", key.Hash)
			if err != nil {
				break
			}
			disabled++
		}
		if err == nil {
			keys, err = s.keysOf(ctx, c.ID)
		}
	}
	return s.finish(ctx, "account.disable", err, disabledView{c.ID, "disabled", disabled},
		fmt.Sprintf("Account %s: %s disabled. New keys can be made; credentials and files stay.", c.ID, output.Count(disabled, "key")), "account", c.ID, "keys_disabled", disabled)
}

// keysOf returns the enabled keys of the account. It leaves out keys that cannot be read: no
// request with one passes.
func (s *session) keysOf(ctx context.Context, account ids.Account) (enabled []auth.SurveyedKey, err error) {
	survey, err := auth.ReadSurvey(ctx, s.db, s.target.Outputs.AccessTableName)
	if err != nil {
		return nil, err
	}
	_, exists := survey.Accounts[account]
	for _, key := range survey.Keys {
		exists = exists || key.Account == account
		if key.Account == account && !key.Disabled && key.Fault == nil {
			enabled = append(enabled, key)
		}
	}
	if !exists {
		return nil, auth.ErrNoAccount
	}
	return enabled, nil
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
