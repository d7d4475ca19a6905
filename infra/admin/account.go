package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"signalbox.dev/infra/admin/exit"
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
	ID ids.Account `arg:"" name:"account" help:"The account, or the first 8 characters of its id or more."`
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
	State     string          `json:"state" title:"state"` // active, suspended, partly suspended or broken
	Workspace output.Optional `json:"default_workspace_id" title:"default workspace" list:"default workspace,short"`
	CreatedAt output.Optional `json:"created_at" title:"created" list:"age,age"`
}

func (c accountCreate) Run(ctx context.Context, s *session) error {
	account, workspace, err := s.registry.CreateAccount(ctx, c.Name)
	s.audit(ctx, "account.create", err, "account", account, "workspace", workspace)
	if err != nil {
		return err
	}
	return output.One(s.out, accountView{account, c.Name, "active", output.Optional(workspace), output.When(s.now())})
}

const errUnmarked = exit.Findings("everything else is suspended. The keys that are named above have no mark, because their rows name no account: no request with them passes. `admin key delete` removes each")

type suspendedView struct {
	ID    ids.Account `json:"id"`
	State string      `json:"state"`
	Keys  int         `json:"keys"` // whose mark was changed
}

// Run suspends an account. Its row comes first: from then on no key is made.
func (c accountDisable) Run(ctx context.Context, s *session) error {
	survey, err := s.surveyOf(ctx, c.ID)
	if err != nil {
		return err
	}
	name, keys := survey.Accounts[c.ID].Name, output.Count(len(keysOf(survey, c.ID)), "key")
	effect := fmt.Sprintf("suspends %s: all requests with its %s are refused, until `admin account enable`", named("account", name, string(c.ID)), keys)
	if err := c.confirm(ctx, s, effect, name, string(c.ID), string(c.ID[:8])); err != nil {
		return err
	}
	if err := s.begin(ctx, "account.disable", "account", c.ID); err != nil {
		return err
	}
	err = c.suspendRow(ctx, s, true)
	changed, failed := s.suspendKeys(ctx, c.ID, true)
	return c.report(ctx, s, step{action: "account.disable", state: "suspended"}, changed, cmp.Or(err, failed), "")
}

// Run ends the suspension of an account. Its row comes last, so an interrupted command leaves
// it suspended.
func (c accountEnable) Run(ctx context.Context, s *session) error {
	survey, err := s.surveyOf(ctx, c.ID)
	if err != nil {
		return err
	}
	if err := s.begin(ctx, "account.enable", "account", c.ID); err != nil {
		return err
	}
	changed, err := s.suspendKeys(ctx, c.ID, false)
	if err == nil {
		err = c.suspendRow(ctx, s, false)
	}
	return c.report(ctx, s, step{action: "account.enable", state: "active"}, changed, err, c.stayDisabled(survey))
}

// suspendRow sets or removes the mark on the account's row. No key of an account without a row
// can be made.
func (c oneAccount) suspendRow(ctx context.Context, s *session, suspended bool) error {
	err := s.registry.SuspendAccount(ctx, c.ID, suspended)
	if errors.Is(err, auth.ErrNoAccount) {
		s.warn("the account has keys and no row")
		return nil
	}
	return err
}

// stayDisabled says how many keys of the account are disabled one by one, or returns "".
func (c oneAccount) stayDisabled(survey *auth.Survey) string {
	disabled, _ := split(keysOf(survey, c.ID), func(key auth.SurveyedKey) bool { return key.Disabled })
	if len(disabled) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s disabled: `admin key list --account %s --state disabled` shows them", output.Count(len(disabled), "key"), c.ID)
}

func (c oneAccount) report(ctx context.Context, s *session, to step, changed int, err error, rest string) error {
	keys := output.Count(changed, "key") + " changed"
	if err != nil && !exit.Is[exit.Findings](err) { // no repetition marks the keys that a finding names
		err = &exit.Partial{Err: err, Done: keys + ", others not: repeat the command"}
	}
	sentence := fmt.Sprintf("Account %s is %s: %s%s.", c.ID, to.state, keys, rest)
	return s.finish(ctx, to.action, err, result{suspendedView{c.ID, to.state, changed}, sentence}, "account", c.ID, "keys", changed)
}

// surveyOf reads the access table, which must have the account or keys of it. It needs no list
// and not the account's row: damage must not keep a key in use. It warns of a damaged row.
func (s *session) surveyOf(ctx context.Context, account ids.Account) (*auth.Survey, error) {
	survey, err := s.readAccess(ctx)
	if err != nil {
		return nil, err
	}
	row, exists := survey.Accounts[account]
	if !exists && len(keysOf(survey, account)) == 0 {
		return nil, auth.ErrNoAccount
	}
	if row.Damage != nil {
		s.warn("the account's row cannot be read: `admin restore check` says why. Put it right, then look at `admin account list`")
	}
	return survey, nil
}

// keysOf returns the keys of the account. Unreadable ones are among them: during a suspension
// somebody may put their rows right.
func keysOf(survey *auth.Survey, account ids.Account) (found []auth.SurveyedKey) {
	for _, key := range sorted(survey.Keys) {
		if key.Account == account {
			found = append(found, key)
		}
	}
	return found
}

// suspendKeys sets or removes the mark on keys of the account until a survey finds none that it
// could change, and returns how many it changed. It returns the first failure.
func (s *session) suspendKeys(ctx context.Context, account ids.Account, suspended bool) (changed int, failed error) {
	action := map[bool]string{true: "key.suspend", false: "key.resume"}[suspended]
	tried := map[ids.KeyHash]bool{} // without success
	for {
		survey, err := s.readAccess(ctx)
		if err != nil {
			return changed, cmp.Or(failed, err)
		}
		keys, _ := split(keysOf(survey, account), func(key auth.SurveyedKey) bool { return key.Suspended != suspended && !tried[key.Hash] })
		if len(keys) == 0 && suspended {
			return changed, cmp.Or(failed, s.nameUnmarked(survey, account))
		}
		if len(keys) == 0 {
			return changed, failed
		}
		for _, key := range keys {
			s.changes.action.reset()
			err := s.registry.SuspendKey(ctx, account, key.Hash, suspended)
			if errors.Is(err, auth.ErrNoKey) { // deleted in between
				continue
			}
			s.audit(ctx, action, err, "account", account, "key", key.Hash)
			if err == nil {
				changed++
				continue
			}
			tried[key.Hash], failed = true, cmp.Or(failed, err)
			if ctx.Err() != nil {
				return changed, failed
			}
		}
	}
}

// nameUnmarked names the keys in the account's list whose rows name no account.
func (s *session) nameUnmarked(survey *auth.Survey, account ids.Account) (left error) {
	for _, entry := range survey.Unsure {
		key, isKey := survey.Keys[ids.KeyHash(entry.ID())]
		if isKey && key.Account == "" && entry.PK == "account#"+string(account) {
			s.warn(fmt.Sprintf("key %s is not marked: %v", key.Hash, key.Damage))
			left = errUnmarked
		}
	}
	return left
}

// Run lists accounts, oldest first. One is partly suspended if its row and its keys do not
// agree: a command was interrupted.
func (accountList) Run(ctx context.Context, s *session) error {
	survey, err := s.readAccess(ctx)
	if err != nil {
		return err
	}
	return output.List(s.out, viewAccounts(survey.Accounts, maps.Values(survey.Keys)), "account", "name", "state", "age", "default workspace")
}

// viewAccounts goes through the keys once: there are tens of thousands.
func viewAccounts(accounts map[ids.Account]auth.Account, keys iter.Seq[auth.SurveyedKey]) (rows []accountView) {
	differ := map[ids.Account]bool{} // accounts with a key whose mark is another
	for key := range keys {
		if key.Suspended != accounts[key.Account].Suspended {
			differ[key.Account] = true
		}
	}
	for id, a := range sorted(accounts) {
		row := accountView{id, a.Name, "active", output.Optional(a.Default), output.When(a.CreatedAt)}
		switch {
		case a.Damage != nil:
			row = accountView{ID: id, State: "broken"}
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
