package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// completeIDs completes the ids of the account, the workspace and the job, if the command line has
// only their beginnings. A whole id costs no call.
func (s *session) completeIDs(ctx context.Context, command *kong.Context) error {
	account, err := completeID(command, auth.ErrNoAccount, func() ([]ids.Account, error) {
		survey, err := s.ReadAccess(ctx)
		if err != nil {
			return nil, err
		}
		return slices.Collect(maps.Keys(survey.Accounts)), nil
	})
	if err != nil {
		return err
	}
	_, err = completeID(command, auth.ErrNoWorkspace, func() ([]ids.Workspace, error) {
		if account != "" {
			return s.Registry.ListWorkspaceIDs(ctx, account)
		}
		survey, err := s.ReadAccess(ctx)
		if err != nil {
			return nil, err
		}
		return slices.Collect(maps.Keys(survey.Workspaces)), nil
	})
	if err != nil {
		return err
	}
	_, err = completeID(command, syncjobs.ErrNotFound, func() ([]ids.Job, error) {
		found, err := s.jobLister.List(ctx, account)
		return each(found, func(job syncjobs.Listed) ids.Job { return job.ID }), err
	})
	return err
}

// completeID completes the id of this kind in the command line, and returns it. If the command
// line has none, it returns "".
func completeID[ID ~string](command *kong.Context, absent error, known func() ([]ID, error)) (ID, error) {
	values := slices.Clone(command.Selected().Positional)
	for _, flag := range command.Flags() {
		values = append(values, flag.Value)
	}
	i := slices.IndexFunc(values, func(v *kong.Value) bool { return v.Target.Type() == reflect.TypeFor[ID]() && v.Target.String() != "" })
	if i < 0 {
		return "", nil
	}
	start := values[i].Target.String()
	if arguments.IsWhole(start) {
		return ID(start), nil
	}
	all, err := known()
	if err != nil {
		return "", err
	}
	matching, _ := acts.Split(all, func(id ID) bool { return strings.HasPrefix(string(id), start) })
	switch len(matching) {
	case 0:
		return "", absent
	case 1:
		values[i].Target.SetString(string(matching[0]))
		return matching[0], nil
	}
	return "", acts.UsageError(fmt.Sprintf("several ids begin with %s: give more characters", start))
}
