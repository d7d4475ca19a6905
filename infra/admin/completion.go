package main

import (
	"context"
	"reflect"
	"time"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// patience bounds how long a completion may take.
const patience = 2 * time.Second

// values returns the stored values of a type, to complete the words of a command line with
// these flags. It returns none if the target does not answer: the shell shows no error.
func (a *app) values(ctx context.Context) func(reflect.Type, map[string]string) []string {
	return func(of reflect.Type, given map[string]string) []string {
		if of == reflect.TypeFor[arguments.Provider]() {
			return byok.Providers()
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		s, err := a.completing(ctx, given)
		if err != nil {
			return nil
		}
		account := s.target.Account(given["account"])
		switch of {
		case reflect.TypeFor[ids.Account]():
			found, _ := s.registry.ListAccounts(ctx)
			return each(found, func(v auth.Account) string { return string(v.ID) })
		case reflect.TypeFor[ids.Workspace]():
			found, _ := s.registry.ListWorkspaces(ctx, account)
			return each(found, func(v auth.Workspace) string { return string(v.ID) })
		case reflect.TypeFor[arguments.HashPrefix](), reflect.TypeFor[arguments.CallerHash]():
			found, _ := s.registry.ListKeys(ctx, account)
			return each(found, func(v auth.Key) string { return string(v.Hash) })
		case reflect.TypeFor[arguments.CredentialPrefix]():
			found, _ := search{Account: account}.look(ctx, s)
			return each(found.credentials, func(v byok.Credential) string { return string(v.ID) })
		case reflect.TypeFor[ids.Job]():
			found, _ := s.jobLister.List(ctx, account)
			return each(found, func(v syncjobs.Listed) string { return string(v.ID) })
		case reflect.TypeFor[ids.File]():
			if workspace, err := s.workspace(ctx, place{owner: owner{account}}); err == nil {
				found, _ := s.files.List(ctx, workspace.ID)
				return each(found, func(v files.File) string { return string(v.ID) })
			}
		}
		return nil
	}
}

// completing is a session on the target that the flags name.
func (a *app) completing(ctx context.Context, given map[string]string) (*session, error) {
	flag := func(name string) *string {
		if value, ok := given[name]; ok {
			return &value
		}
		return nil
	}
	t, err := target.Choose(flag("local"), flag("stack"), given["region"])
	if err == nil && t.IsLocal() {
		err = t.ConnectLocal()
	} else if err == nil {
		err = t.ConnectStack(ctx)
	}
	if err != nil {
		return nil, err
	}
	return a.session(t, commandLine{JSON: true}, nil), nil
}
