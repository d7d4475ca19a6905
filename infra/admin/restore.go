package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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

const (
	errInconsistent = exit.Findings("the tables are inconsistent")
	errNotRepaired  = exit.Findings("some repairs failed: the list has the reasons. Repeat the command once they are gone")
	errLeft         = exit.Findings("everything else is repaired; findings are left for you: they are listed")
)

// Validate implements a hook of kong's. The usage of two required flags would ask for both.
func (c restoreRepair) Validate() error {
	if c.Before == "" && !c.DisableAllKeys {
		return exit.UsageError("give --before=OLD_TABLE or --disable-all-keys")
	}
	return nil
}

type tables struct {
	access     *auth.Survey
	placements []byok.Surveyed
}

// survey reads both tables, the credentials first. A counter moves before its credential is
// stored, so no credential is ahead of a counter that is read later.
func (s *session) survey(ctx context.Context) (tables, error) {
	placements, err := byok.Survey(ctx, s.db, s.target.Outputs.CredentialsTableName)
	if err != nil {
		return tables{}, err
	}
	newer, _ := split(placements, func(p byok.Surveyed) bool { return p.Newer })
	if err := refuseNewer(s.target.Outputs.CredentialsTableName, len(newer)); err != nil {
		return tables{}, err
	}
	access, err := s.readSurvey(ctx, s.target.Outputs.AccessTableName)
	return tables{access, placements}, err
}

// readSurvey reads an access table to compare it. Rows of a newer version would look damaged, and
// a repair would disable their keys.
func (s *session) readSurvey(ctx context.Context, table string) (*auth.Survey, error) {
	survey, err := auth.ReadSurvey(ctx, s.db, table)
	if err == nil {
		err = refuseNewer(table, survey.Newer)
	}
	return survey, err
}

func refuseNewer(table string, rows int) error {
	if rows == 0 {
		return nil
	}
	return exit.Refusal(fmt.Sprintf("table %s has %s written by a newer version of this command: use that version. Nothing was changed", table, output.Count(rows, "row")))
}

func (c restoreCheck) Run(ctx context.Context, s *session) error {
	live, err := s.survey(ctx)
	if err != nil {
		return err
	}
	holding := map[ids.Workspace]int{}
	for _, p := range live.placements {
		holding[p.Workspace]++
	}
	found := (&inspection{tables: live, before: &auth.Survey{}, now: s.now(), refused: s.refusedByRouters(ctx, holding)}).inspect()
	if err := output.List(s.out, found, "kind", "id", "problem", "by", "remedy", "account"); err != nil {
		return err
	}
	counts := countBy(found)
	s.note("%s, %s, %s, %s: %s that `admin restore repair` mends after a restore, %d for you, %d to know.",
		output.Count(len(live.access.Accounts), "account"), output.Count(len(live.access.Workspaces), "workspace"), output.Count(len(live.access.Keys), "key"),
		output.Count(len(live.placements), "credential"), output.Count(counts[byRepair], "finding"), counts[byOperator], counts[byNone])
	if counts[byRepair]+counts[byOperator] > 0 {
		return errInconsistent
	}
	return nil
}

// Run repairs. Every repair is a conditional write and can be made again. If a run was
// interrupted or killed, the operator repeats it.
func (c restoreRepair) Run(ctx context.Context, s *session) error {
	table := s.target.Outputs.AccessTableName
	s.note("The access table %s; credentials in %s; before: %s.", table, s.target.Outputs.CredentialsTableName, cmp.Or(c.Before, "no table, so every key is disabled"))
	before, err := c.readBefore(ctx, s)
	if err != nil {
		return err
	}
	live, err := s.survey(ctx)
	if err != nil {
		return err
	}
	found := (&inspection{tables: live, before: before, hasBefore: !c.DisableAllKeys, restoring: true, now: s.now()}).inspect()
	if c.DryRun {
		return output.List(s.out, found, "kind", "id", "problem", "by", "remedy", "account")
	}
	// No command removes an account or a workspace. A table that lacks one is not from the moment
	// just before the restore, or is damaged.
	lacking, _ := split(found, func(f finding) bool { return f.Problem == notBefore })
	if len(lacking) > 0 && !c.Incomplete {
		return exit.Refusal(fmt.Sprintf("%s is not the access table just before the restore: it lacks %s (%s %s among them), and no command removes an account or a workspace. "+
			"Name another table, or add --incomplete; --dry-run lists what would happen. Nothing was changed", c.Before, output.Count(len(lacking), "row"), lacking[0].Kind, lacking[0].ID))
	}
	counts := countBy(found)
	if counts[byRepair] > 0 {
		actions := map[output.Optional]int{}
		for _, f := range found {
			if f.By == byRepair {
				actions[f.Remedy]++
			}
		}
		if err := c.confirm(ctx, s, fmt.Sprintf("makes these changes, which --dry-run lists, in the table %s: %v", table, actions), table); err != nil {
			return err
		}
		attrs := []any{"table", table, "before", c.Before}
		if err := s.begin(ctx, "restore.repair", attrs...); err != nil {
			return err
		}
		err = s.repair(ctx, found)
		s.audit(ctx, "restore.repair", err, attrs...)
	}
	if err == nil && counts[byOperator] > 0 {
		err = errLeft
	}
	return errors.Join(err, output.List(s.out, found, "kind", "id", "outcome", "problem", "by", "remedy", "account"))
}

// readBefore reads the table before the restore; without one it is empty. It refuses the
// access table itself, and a table that was restored to the same moment or an earlier one: it
// would show revoked keys enabled.
func (c restoreRepair) readBefore(ctx context.Context, s *session) (*auth.Survey, error) {
	if c.DisableAllKeys {
		return &auth.Survey{}, nil
	}
	live, err := s.describe(ctx, s.target.Outputs.AccessTableName)
	if err != nil {
		return nil, err
	}
	before, err := s.describe(ctx, c.Before)
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
		return nil, exit.UsageError("there is no table " + c.Before)
	}
	if err != nil {
		return nil, err
	}
	if aws.ToString(before.TableName) == aws.ToString(live.TableName) {
		return nil, exit.UsageError("--before names the access table itself: give a table with what the access table held before the restore")
	}
	if was, is := before.RestoreSummary, live.RestoreSummary; was != nil && (is == nil || !aws.ToTime(was.RestoreDateTime).After(aws.ToTime(is.RestoreDateTime))) {
		return nil, exit.UsageError(fmt.Sprintf("%s was restored to the state of %s, and the access table to no earlier one: give a table with the state just before the restore",
			c.Before, output.When(aws.ToTime(was.RestoreDateTime))))
	}
	return s.readSurvey(ctx, c.Before)
}

func (s *session) describe(ctx context.Context, table string) (*types.TableDescription, error) {
	out, err := s.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return nil, fmt.Errorf("describing table %s: %w", table, err)
	}
	if out.Table == nil || out.Table.TableName == nil {
		return nil, fmt.Errorf("describing table %s: empty response", table)
	}
	return out.Table, nil
}

// repair makes the repairs one after the other, keys first. It goes on after a failed one.
func (s *session) repair(ctx context.Context, found []finding) error {
	var failed error
	for i := range found {
		f := &found[i]
		if f.By != byRepair {
			continue
		}
		err := f.repair(ctx, s.registry)
		s.audit(ctx, string(f.Remedy), err, "account", f.Account, f.Kind, f.ID, "problem", f.Problem)
		switch {
		case ctx.Err() != nil:
			f.Outcome = "interrupted"
			return ctx.Err()
		case errors.Is(err, auth.ErrNeedless), errors.Is(err, auth.ErrNoKey):
			f.Outcome = "no longer needed"
		case err != nil:
			f.Outcome = output.Optional("failed: " + exit.Sentence(err, exit.Uncertain))
			failed = errNotRepaired
		default:
			f.Outcome = "repaired"
		}
	}
	return failed
}
