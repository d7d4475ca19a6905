package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type accountCommands struct {
	Create  accountCreate  `cmd:"" help:"Create an account with a default workspace."`
	Disable accountDisable `cmd:"" help:"Suspend an account: its API keys are refused, and none can be made. Repeat it if it was interrupted."`
	Enable  accountEnable  `cmd:"" help:"End the suspension of an account. Keys that were disabled stay so. Repeat it if it was interrupted."`
	List    accountList    `cmd:"" reads:"" help:"List all accounts. Reads the whole access table: on AWS that costs one read unit for each 4 KB of it."`
}

type accountList struct{}

type accountCreate struct {
	Name string `arg:"" help:"The account's name."`
}

type oneAccount struct {
	ID ids.Account `arg:"" name:"account" help:"The account. The first 8 characters of its id or more do too, but cost a read of the whole access table."`
}

type (
	accountEnable  struct{ oneAccount }
	accountDisable struct {
		oneAccount
		confirmation
	}
)

type accountView struct {
	ID        ids.Account     `json:"id" title:"account" list:"account,short"`
	Name      string          `json:"name" title:"name" list:"name,16"`
	State     string          `json:"state" title:"state"` // active, suspended, partly suspended or damaged
	Workspace output.Optional `json:"default_workspace_id" title:"default workspace" list:"default workspace,short"`
	CreatedAt output.Optional `json:"created_at" title:"created" list:"age,age"`
}

func (c accountCreate) Run(ctx context.Context, s *session) error {
	account, workspace, err := s.Registry.CreateAccount(ctx, c.Name)
	s.Audit(ctx, "account.create", err, []any{"account", account, "workspace", workspace})
	if err != nil {
		return err
	}
	return output.One(s.out, accountView{account, c.Name, "active", output.Optional(workspace), output.When(s.now())})
}

type suspendedView struct {
	ID    ids.Account `json:"id"`
	State string      `json:"state"`
	Keys  int         `json:"keys"` // whose mark was changed
}

func (c accountDisable) Run(ctx context.Context, s *session) error {
	keys, err := s.Registry.CountKeys(ctx, c.ID)
	if err != nil {
		return err
	}
	account, err := s.FindAccount(ctx, c.ID, keys > 0)
	if err != nil {
		return err
	}
	effect := fmt.Sprintf("suspends %s: all requests with its %s are refused, until `admin account enable`", named("account", account.Name, string(c.ID)), acts.Count(keys, "key"))
	if err := c.confirm(ctx, s, effect, account.Name, string(c.ID)); err != nil {
		return err
	}
	changed, err := s.Suspend(ctx, c.ID)
	return c.show(s, "suspended", changed, err, "")
}

func (c accountEnable) Run(ctx context.Context, s *session) error {
	keys, err := s.Registry.ListKeys(ctx, c.ID)
	if err != nil {
		return err
	}
	if _, err := s.FindAccount(ctx, c.ID, len(keys) > 0); err != nil {
		return err
	}
	changed, err := s.Resume(ctx, c.ID)
	return c.show(s, "active", changed, err, c.stayDisabled(keys))
}

// stayDisabled says how many of the account's keys are disabled one by one, or returns "".
func (c oneAccount) stayDisabled(keys []auth.Key) string {
	disabled, _ := acts.Split(keys, func(key auth.Key) bool { return key.Disabled })
	if len(disabled) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s disabled: `admin key list --account %s --state disabled` shows them", acts.Count(len(disabled), "key"), c.ID)
}

func (c oneAccount) show(s *session, state string, changed int, err error, rest string) error {
	return s.say(err, suspendedView{c.ID, state, changed}, "Account %s is %s: %s changed%s.", c.ID, state, acts.Count(changed, "key"), rest)
}

// Run lists accounts, oldest first. One is partly suspended if its row and its keys do not
// agree: a command was interrupted.
func (accountList) Run(ctx context.Context, s *session) error {
	survey, err := s.ReadAccess(ctx)
	if err != nil {
		return err
	}
	return output.List(s.out, viewAccounts(survey), "account", "name", "state", "age", "default workspace")
}

// viewAccounts goes through the keys once: there are tens of thousands.
func viewAccounts(survey *auth.Survey) (rows []accountView) {
	differ := map[ids.Account]bool{} // accounts with a key whose mark is another
	for _, key := range survey.Keys {
		unlisted := key.Disabled && survey.HalfDeleted(key.Hash) // no command marks it
		if key.Suspended != survey.Accounts[key.Account].Suspended && !unlisted {
			differ[key.Account] = true
		}
	}
	for id, a := range acts.Sorted(survey.Accounts) {
		row := accountView{id, a.Name, "active", output.Optional(a.Default), output.When(a.CreatedAt)}
		switch {
		case a.Damage != nil:
			row = accountView{ID: id, State: "damaged"}
		case differ[id]:
			row.State = "partly suspended"
		case a.Suspended:
			row.State = "suspended"
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b accountView) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return rows
}
