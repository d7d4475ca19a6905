package main

import (
	"context"
	"reflect"
	"slices"
	"time"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// patience bounds how long a completion may take.
const patience = 2 * time.Second

// values returns the stored values of a type, to complete the words. It returns none if
// the target does not answer: the shell shows no error.
func (a *app) values(ctx context.Context, words []string) func(reflect.Type) []string {
	return func(of reflect.Type) (found []string) {
		if of == reflect.TypeFor[arguments.Provider]() {
			return byok.Providers()
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		s, account, err := a.completing(ctx, words)
		if err != nil {
			return nil
		}
		each := func(value string) { found = append(found, value) }
		switch of {
		case reflect.TypeFor[ids.Account]():
			all, _ := s.registry.ListAccounts(ctx)
			for _, v := range all {
				each(string(v.ID))
			}
		case reflect.TypeFor[ids.Workspace]():
			all, _ := s.registry.ListWorkspaces(ctx, account)
			for _, v := range all {
				each(string(v.ID))
			}
		case reflect.TypeFor[arguments.HashPrefix](), reflect.TypeFor[arguments.CallerHash]():
			all, _ := s.registry.ListKeys(ctx, account)
			for _, v := range all {
				each(string(v.Hash))
			}
		case reflect.TypeFor[arguments.CredentialPrefix]():
			all, _ := search{Account: account}.look(ctx, s)
			for _, v := range all.credentials {
				each(string(v.ID))
			}
		case reflect.TypeFor[ids.Job]():
			all, _ := s.jobLister.List(ctx, account)
			for _, v := range all {
				each(string(v.ID))
			}
		case reflect.TypeFor[ids.File]():
			workspace, err := s.workspace(ctx, place{owner: owner{account}})
			all, _ := s.files.List(ctx, workspace.ID)
			for _, v := range all {
				if err == nil {
					each(string(v.ID))
				}
			}
		}
		return found
	}
}

// completing is a session on the target and the account that the words name.
func (a *app) completing(ctx context.Context, words []string) (*session, ids.Account, error) {
	flag := func(name string) *string {
		if i := slices.Index(words, "--"+name); i >= 0 && i+1 < len(words) {
			return &words[i+1]
		}
		return nil
	}
	text := func(v *string) string {
		if v == nil {
			return ""
		}
		return *v
	}
	t, err := target.Choose(flag("local"), flag("stack"), text(flag("region")))
	if err == nil && t.IsLocal() {
		err = t.ConnectLocal()
	} else if err == nil {
		err = t.ConnectStack(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	return a.session(t, commandLine{JSON: true}, nil), t.Account(text(flag("account"))), nil
}
