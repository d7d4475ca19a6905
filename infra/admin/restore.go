package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

type restoreCommands struct {
	Check  restoreCheck  `cmd:"" reads:"" help:"Report inconsistencies in the access and credentials tables, and change nothing. The exit code is 1 if there are any."`
	Repair restoreRepair `cmd:"" help:"Repair the access table after a restore to an earlier moment: whatever was revoked stays revoked. Repeat it if it was interrupted."`
}

type restoreCheck struct{}

type restoreRepair struct {
	Before         string `xor:"before" placeholder:"OLD_TABLE" help:"A table with the contents of the access table just before the restore. Required without --disable-all-keys. A key stays enabled only if both tables show it enabled and unchanged."`
	DisableAllKeys bool   `xor:"before" help:"There is no such table: disable every key."`
	Incomplete     bool   `help:"Go on even if OLD_TABLE lacks accounts or workspaces. Their keys are disabled."`
	DryRun         bool   `help:"Only report the repairs."`
	confirmation
}

// Validate implements a hook of kong's. The usage of two required flags would ask for both.
func (c restoreRepair) Validate() error {
	if c.Before == "" && !c.DisableAllKeys {
		return acts.UsageError("give --before=OLD_TABLE or --disable-all-keys")
	}
	return nil
}

func (c restoreCheck) Run(ctx context.Context, s *session) error {
	live, err := s.Survey(ctx)
	if err != nil {
		return err
	}
	stored := each(live.Placements, func(p byok.Surveyed) byok.Credential { return p.Credential })
	found := acts.Inspect(live, s.now(), s.RefusedByRouters(ctx, stored))
	if err := output.List(s.out, each(found, viewFinding), "kind", "id", "problem", "by", "remedy", "account"); err != nil {
		return err
	}
	counts := acts.CountBy(found)
	s.Note("%s, %s, %s, %s: %s that `admin restore repair` mends after a restore, %d for you, %d to know.",
		acts.Count(len(live.Access.Accounts), "account"), acts.Count(len(live.Access.Workspaces), "workspace"), acts.Count(len(live.Access.Keys), "key"),
		acts.Count(len(live.Placements), "credential"), acts.Count(counts[acts.ByRepair], "finding"), counts[acts.ByOperator], counts[acts.ByNone])
	if counts[acts.ByRepair]+counts[acts.ByOperator] > 0 {
		return acts.ErrInconsistent
	}
	return nil
}

func (c restoreRepair) Run(ctx context.Context, s *session) error {
	table := s.target.Outputs.AccessTableName
	s.Note("The access table %s; credentials in %s; before: %s.", table, s.target.Outputs.CredentialsTableName, cmp.Or(c.Before, "no table, so every key is disabled"))
	var before *auth.Survey // without one every key is disabled
	if !c.DisableAllKeys {
		var err error
		if before, err = s.ReadBefore(ctx, c.Before); err != nil {
			return err
		}
	}
	live, err := s.Survey(ctx)
	if err != nil {
		return err
	}
	found := acts.InspectRestored(live, before, s.now())
	if c.DryRun {
		return output.List(s.out, each(found, viewFinding), "kind", "id", "problem", "by", "remedy", "account")
	}
	// No command removes an account or a workspace. A table that lacks one is not from the moment
	// just before the restore, or is damaged.
	lacking, _ := acts.Split(found, func(f acts.Finding) bool { return f.Problem == acts.NotBefore })
	if len(lacking) > 0 && !c.Incomplete {
		return acts.Refusal(fmt.Sprintf("%s is not the access table just before the restore: it lacks %s (%s %s among them), and no command removes an account or a workspace. "+
			"Name another table, or add --incomplete; --dry-run lists what would happen. Nothing was changed", c.Before, acts.Count(len(lacking), "row"), lacking[0].Kind, lacking[0].ID))
	}
	counts := acts.CountBy(found)
	if counts[acts.ByRepair] > 0 {
		number := map[string]int{}
		for _, f := range found {
			if f.By == acts.ByRepair {
				number[f.Remedy]++
			}
		}
		var actions []string
		for remedy, n := range acts.Sorted(number) {
			actions = append(actions, fmt.Sprintf("%d %s", n, remedy))
		}
		if err := c.confirm(ctx, s, fmt.Sprintf("makes these changes, which --dry-run lists, in the table %s: %s", table, strings.Join(actions, ", ")), table, ""); err != nil {
			return err
		}
		if err = s.Repair(ctx, found, c.Before); acts.Is[acts.Refusal](err) {
			return err // nothing was begun
		}
	}
	if err == nil && counts[acts.ByOperator] > 0 {
		err = acts.ErrLeft
	}
	return errors.Join(err, output.List(s.out, each(found, viewFinding), "kind", "id", "outcome", "problem", "by", "remedy", "account"))
}

type findingView struct {
	Kind    string          `json:"kind" list:"kind"`
	ID      string          `json:"id" list:"id,short"`
	Account output.Optional `json:"account_id" list:"account,short"`
	Problem string          `json:"problem" list:"problem,short,46"`
	By      string          `json:"by" list:"by"`
	Remedy  output.Optional `json:"remedy" list:"remedy"`
	Outcome output.Optional `json:"outcome" list:"outcome,30"`
}

func viewFinding(f acts.Finding) findingView {
	return findingView{f.Kind, f.ID, output.Optional(f.Account), f.Problem, f.By, output.Optional(f.Remedy), output.Optional(f.Outcome)}
}
