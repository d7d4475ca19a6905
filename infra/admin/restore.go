package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

type restoreCommands struct {
	Check  restoreCheck  `cmd:"" reads:"" help:"Report inconsistencies in the access and credentials tables, and change nothing. The exit code is 1 if there are any."`
	Repair restoreRepair `cmd:"" help:"Repair the access table after a restore to an earlier moment. Repeat it if it was interrupted."`
}

type restoreCheck struct{}

type restoreRepair struct {
	Since      time.Time `required:"" placeholder:"TIME" help:"The moment that the access table was restored to, such as 2026-11-21T10:00:00Z."`
	Before     string    `placeholder:"OLD_TABLE" help:"A table with the contents of the access table just before the restore. Keys that are disabled or absent there are disabled. If omitted, only the faults that the restored tables themselves show are repaired."`
	Incomplete bool      `help:"Go on even if OLD_TABLE lacks accounts or workspaces. Keys that it lacks are disabled."`
	DryRun     bool      `help:"Only report the repairs."`
	confirmation
}

const (
	errInconsistent = exit.Findings("the tables are inconsistent")
	errNotRepaired  = exit.Findings("not everything could be repaired: repeat the command")
	errLeft         = exit.Findings("findings are left for you: they are listed")
)

const (
	errFuture    = exit.UsageError("--since lies in the future: give the moment that the table was restored to")
	errSameTable = exit.UsageError("--before names the access table itself: give a table with what the access table held before the restore")
	errUnrelated = exit.UsageError("no account is in both the access table and the table that --before names")
)

// Run reports inconsistencies.
func (c restoreCheck) Run(ctx context.Context, s *session) error {
	live, stored, err := s.survey(ctx)
	if err != nil {
		return err
	}
	found := inspect(live, stored, accessRestore{})
	if err := output.List(s.out, found); err != nil {
		return err
	}
	counts := countFindings(found, func(f finding) string { return f.By })
	s.note("%s, %s, %s, %s: %s for `admin restore repair`, %d for you, %d to know.",
		output.Count(len(live.Accounts), "account"), output.Count(len(live.Workspaces), "workspace"), output.Count(len(live.Keys), "key"),
		output.Count(len(stored.placements), "credential"), output.Count(counts[byRepair], "finding"), counts[byOperator], counts[byNone])
	if counts[byRepair]+counts[byOperator] > 0 {
		return errInconsistent
	}
	return nil
}

// Run repairs. Every repair is a conditional write and can be made again. If a run was
// interrupted or killed, the operator repeats it.
func (c restoreRepair) Run(ctx context.Context, s *session) error {
	if c.Since.After(s.now()) {
		return errFuture
	}
	if c.Before == s.target.Outputs.AccessTableName {
		return errSameTable
	}
	s.note("The access table %s, restored to %s; credentials in %s; before: %s.",
		s.target.Outputs.AccessTableName, output.When(c.Since), s.target.Outputs.CredentialsTableName, cmp.Or(c.Before, "not named"))
	restore, err := c.restore(ctx, s)
	if err != nil {
		return err
	}
	live, stored, err := s.survey(ctx)
	if err != nil {
		return err
	}
	found := inspect(live, stored, restore)
	switch {
	case restore.Old == nil:
		s.note("%s", withoutBefore(live, restore))
	case !related(live, restore.Old):
		return errUnrelated
	}
	if c.DryRun {
		return output.List(s.out, found)
	}
	if lacking := lacking(found); len(lacking) > 0 && !c.Incomplete {
		return exit.Refusal(fmt.Sprintf("%s is not the access table just before the restore: it lacks %s (%s %s among them), and no command removes an account or a workspace. "+
			"Name another table, or add --incomplete; --dry-run lists what would happen. Nothing was changed", c.Before, output.Count(len(lacking), "row"), lacking[0].Kind, lacking[0].ID))
	}
	counts := countFindings(found, func(f finding) string { return f.By })
	if counts[byRepair] > 0 {
		table := s.target.Outputs.AccessTableName
		kinds := countFindings(found, func(f finding) string { return f.Action })
		delete(kinds, "") // of findings that are not repaired
		if err := c.confirm(ctx, s, fmt.Sprintf("makes these changes, which --dry-run lists, in the table %s: %v", table, kinds), table); err != nil {
			return err
		}
		attrs := []any{"table", table, "since", output.When(c.Since), "before", c.Before}
		if err := s.begin(ctx, "restore.repair", attrs...); err != nil {
			return err
		}
		err = s.repair(ctx, found)
		s.audit(ctx, "restore.repair", err, attrs...)
	}
	if err == nil && counts[byOperator] > 0 {
		err = errLeft
	}
	return errors.Join(err, output.List(s.out, found))
}

// withoutBefore warns that some changes are unknown without the table before the
// restore.
func withoutBefore(live *auth.Survey, restore accessRestore) string {
	enabled := 0
	for _, key := range live.Keys {
		if key.Fault == nil && !key.Disabled && !restore.isNew(key.CreatedAt) {
			enabled++
		}
	}
	since := output.When(restore.Since)
	if enabled == 0 {
		return fmt.Sprintf("Without --before it is not known which workspaces were deleted after %s. All enabled keys are newer.", since)
	}
	return fmt.Sprintf(`Without --before it is not known what was revoked after %s.
%s may be older: each may have been disabled or deleted since, and workspaces deleted.
The audit lines of `+"`admin`"+` since then name them ("key.disable", "key.delete", "workspace.delete"): repeat those commands.`, since, output.Count(enabled, "enabled key"))
}

// stored are the credentials of the credentials table.
type stored struct {
	placements []byok.Placement
	tooMany    map[ids.Workspace]bool // a router refuses the workspace
}

// survey reads both tables, the credentials first. A counter moves before its credential is
// stored, so no credential is ahead of a counter that is read later.
func (s *session) survey(ctx context.Context) (*auth.Survey, stored, error) {
	placements, err := byok.Survey(ctx, s.db, s.target.Outputs.CredentialsTableName)
	if err != nil {
		return nil, stored{}, err
	}
	found := stored{placements, map[ids.Workspace]bool{}}
	for _, p := range placements {
		if _, checked := found.tooMany[p.Workspace]; checked {
			continue
		}
		err := s.credentials.CheckSize(ctx, p.Workspace)
		if err != nil && !errors.Is(err, byok.ErrTooMany) {
			return nil, stored{}, err
		}
		found.tooMany[p.Workspace] = err != nil
	}
	live, err := auth.ReadSurvey(ctx, s.db, s.target.Outputs.AccessTableName)
	return live, found, err
}

// restore describes the restore, and reads the old table if --before names one.
func (c restoreRepair) restore(ctx context.Context, s *session) (accessRestore, error) {
	none := accessRestore{}
	live, err := s.describe(ctx, s.target.Outputs.AccessTableName)
	if err != nil {
		return none, err
	}
	var old *auth.Survey
	if c.Before != "" {
		before, err := s.describe(ctx, c.Before)
		if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
			return none, exit.UsageError("there is no table " + c.Before)
		}
		if err != nil {
			return none, err
		}
		if r := before.RestoreSummary; r != nil && aws.ToTime(r.RestoreDateTime).Before(c.Since) {
			return none, exit.UsageError(fmt.Sprintf("%s holds the state of %s, which is before --since: give a table with the state just before the restore",
				c.Before, output.When(*r.RestoreDateTime)))
		}
		if old, err = auth.ReadSurvey(ctx, s.db, c.Before); err != nil {
			return none, err
		}
	}
	return newAccessRestore(c.Since, *live.CreationDateTime, s.now(), old), nil
}

func (s *session) describe(ctx context.Context, table string) (*types.TableDescription, error) {
	out, err := s.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return nil, fmt.Errorf("describing table %s: %w", table, err)
	}
	if out.Table == nil || out.Table.CreationDateTime == nil {
		return nil, fmt.Errorf("describing table %s: empty response", table)
	}
	return out.Table, nil
}

// related reports whether two tables have an account in common. With an unrelated table
// the repair would disable every key.
func related(live, old *auth.Survey) bool {
	for id := range live.Accounts {
		if _, both := old.Accounts[id]; both {
			return true
		}
	}
	return false
}

// repair makes the repairs one after the other, keys first. It goes on after a failed
// one, unless failuresInARow fail without a success in between.
func (s *session) repair(ctx context.Context, found []finding) error {
	inARow, failed := 0, 0
	for i := range found {
		f := &found[i]
		if f.By != byRepair {
			continue
		}
		err := f.Repair(ctx, s.registry)
		s.audit(ctx, f.Action, err, "account", f.Account, f.Kind, f.ID, "problem", f.Problem, "remedy", f.Remedy)
		switch f.Outcome = "repaired"; {
		case ctx.Err() != nil:
			f.Outcome = "interrupted"
			return ctx.Err()
		case errors.Is(err, auth.ErrNeedless):
			f.Outcome = "no longer needed"
		case err != nil:
			f.Outcome = output.Optional("failed: " + exit.Sentence(err, exit.Uncertain))
			failed++
			if inARow++; inARow >= failuresInARow {
				return errNotRepaired
			}
		default:
			inARow = 0
		}
	}
	if failed > 0 {
		return errNotRepaired
	}
	return nil
}
