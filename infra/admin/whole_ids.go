package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// completeIDs completes the ids of accounts, workspaces and jobs of which the command line
// has only the beginning. A whole id costs no call.
func (s *session) completeIDs(ctx context.Context, command *kong.Context) error {
	values := slices.Clone(command.Selected().Positional)
	for _, flag := range command.Flags() {
		values = append(values, flag.Value)
	}
	var account ids.Account
	for _, kind := range []reflect.Type{reflect.TypeFor[ids.Account](), reflect.TypeFor[ids.Workspace](), reflect.TypeFor[ids.Job]()} {
		for _, value := range values {
			if value.Target.Type() != kind {
				continue
			}
			start := value.Target.String()
			if start != "" && !arguments.IsWhole(start) {
				known, absent, err := s.known(ctx, kind, account)
				if err != nil {
					return err
				}
				whole, err := complete(start, known, absent)
				if err != nil {
					return err
				}
				value.Target.SetString(whole)
			}
			if kind == reflect.TypeFor[ids.Account]() {
				account = ids.Account(value.Target.String())
			}
		}
	}
	return nil
}

// known returns all ids of a kind, in the account if one is named, and the error if none
// matches.
func (s *session) known(ctx context.Context, kind reflect.Type, account ids.Account) (known []string, absent, err error) {
	text := func(id ids.Workspace) string { return string(id) }
	switch {
	case kind == reflect.TypeFor[ids.Job]():
		found, err := s.jobLister.List(ctx, account)
		return each(found, func(job syncjobs.Listed) string { return string(job.ID) }), syncjobs.ErrNotFound, err
	case kind == reflect.TypeFor[ids.Workspace]() && account != "":
		found, err := s.registry.ListWorkspaceIDs(ctx, account)
		return each(found, text), auth.ErrNoWorkspace, err
	default:
		survey, err := s.readAccess(ctx)
		if err != nil {
			return nil, nil, err
		}
		if kind == reflect.TypeFor[ids.Account]() {
			return each(slices.Collect(maps.Keys(survey.Accounts)), func(id ids.Account) string { return string(id) }), auth.ErrNoAccount, nil
		}
		return each(slices.Collect(maps.Keys(survey.Workspaces)), text), auth.ErrNoWorkspace, nil
	}
}

// complete returns the one id that begins so.
func complete(start string, known []string, absent error) (string, error) {
	matching := slices.DeleteFunc(known, func(id string) bool { return !strings.HasPrefix(id, start) })
	switch len(matching) {
	case 0:
		return "", absent
	case 1:
		return matching[0], nil
	default:
		return "", exit.UsageError(fmt.Sprintf("several ids begin with %s: give more characters", start))
	}
}
