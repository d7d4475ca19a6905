package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/findings"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/rewrap"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

type restoreCommands struct {
	Check  restoreCheck  `cmd:"" reads:"" help:"Report what is inconsistent in the access and credentials tables, and change nothing. The exit code is 1 if anything is."`
	Repair restoreRepair `cmd:"" help:"Repair the access table after a restore to an earlier moment. Repeat it if it was interrupted."`
}

type restoreCheck struct{}

type restoreRepair struct {
	Since  time.Time `required:"" placeholder:"TIME" help:"The moment that the access table was restored to, such as 2026-11-21T10:00:00Z."`
	Before string    `placeholder:"OLD_TABLE" help:"A table with the contents of the access table just before the restore. Keys that are disabled or absent there are disabled. If omitted, only what the restored tables themselves show is repaired."`
	DryRun bool      `help:"Only report what would be repaired."`
	confirmation
}

var (
	errInconsistent = errors.New("the tables are inconsistent")
	errNotRepaired  = errors.New("not everything could be repaired: repeat the command")
)

const (
	errFuture    = exit.UsageError("--since lies in the future: give the moment that the table was restored to")
	errSameTable = exit.UsageError("--before names the access table itself: give a table with what the access table held before the restore")
	errUnrelated = exit.UsageError("no account is in both the access table and the table that --before names")
)

// Run reports what is inconsistent.
func (c restoreCheck) Run(ctx context.Context, s *session) error {
	live, placements, err := s.survey(ctx)
	if err != nil {
		return err
	}
	found := findings.Inspect(live, placements, nil, time.Time{})
	if err := findings.Show(s.out, found); err != nil {
		return err
	}
	counts := findings.Count(found)
	s.note("%d accounts, %d workspaces, %d keys, %d credentials: %d findings for `admin restore repair`, %d for you, %d that need nothing.",
		len(live.Accounts), len(live.Workspaces), len(live.Keys), len(placements), counts[findings.ByRepair], counts[findings.ByOperator], counts[findings.ByNone])
	if counts[findings.ByRepair]+counts[findings.ByOperator] > 0 {
		return errInconsistent
	}
	return nil
}

// Run repairs. Every repair is a conditional write of its own that may be made
// again, so that a run that was interrupted or killed is repeated.
func (c restoreRepair) Run(ctx context.Context, s *session) error {
	if c.Since.After(s.now()) {
		return errFuture
	}
	if c.Before == s.outputs.AccessTableName {
		return errSameTable
	}
	s.note("The access table %s, restored to %s; credentials in %s; before: %s.",
		s.outputs.AccessTableName, output.When(c.Since), s.outputs.CredentialsTableName, cmp.Or(c.Before, "not named"))
	live, placements, err := s.survey(ctx)
	if err != nil {
		return err
	}
	old, err := c.old(ctx, s, live)
	if err != nil {
		return err
	}
	found := findings.Inspect(live, placements, old, c.Since)
	if old == nil {
		s.note(unknownWithoutBefore, output.When(c.Since), enabledBefore(live, c.Since))
	}
	if !c.DryRun && findings.Count(found)[findings.ByRepair] > 0 {
		if err := c.confirm(ctx, s, func() (subject, error) { return c.subject(s, found), nil }); err != nil {
			return err
		}
		attrs := []any{"table", s.outputs.AccessTableName, "since", output.When(c.Since), "before", c.Before}
		s.begin(ctx, "restore.repair", attrs...)
		err = s.repair(ctx, found)
		s.audit(ctx, "restore.repair", err, attrs...)
	}
	return errors.Join(err, findings.Show(s.out, found))
}

const unknownWithoutBefore = `Without --before it is not known what was revoked after %s.
%d keys that were made before it are enabled: each may have been disabled or deleted since, and workspaces deleted.
The audit lines of ` + "`admin`" + ` since then name them ("key.disable", "key.delete", "workspace.delete"): repeat those commands.`

// enabledBefore counts the keys that were made before that moment and are enabled.
func enabledBefore(live *auth.Survey, since time.Time) (n int) {
	for _, key := range live.Keys {
		if key.Fault == nil && !key.Disabled && !key.CreatedAt.After(since.Add(findings.Margin)) {
			n++
		}
	}
	return n
}

// survey reads both tables. The credentials come first: the counter of each was
// moved before it was stored, so that none is ahead of a counter that is read later.
func (s *session) survey(ctx context.Context) (*auth.Survey, []byok.Placement, error) {
	placements, err := byok.Survey(ctx, s.db, s.outputs.CredentialsTableName)
	if err != nil {
		return nil, nil, err
	}
	live, err := auth.ReadSurvey(ctx, s.db, s.outputs.AccessTableName)
	return live, placements, err
}

// old reads the table before the restore, nil where none is named. One that has
// nothing in common with the live table would have every key disabled.
func (c restoreRepair) old(ctx context.Context, s *session, live *auth.Survey) (*auth.Survey, error) {
	if c.Before == "" {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	old, err := auth.ReadSurvey(ctx, s.db, c.Before)
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
		return nil, exit.UsageError("there is no table " + c.Before)
	}
	if err != nil {
		return nil, err
	}
	related := false
	for id, account := range live.Accounts {
		if _, both := old.Accounts[id]; both {
			related = true
			err = errors.Join(err, c.tooEarly("account "+string(id), account.CreatedAt))
		}
	}
	for hash, key := range live.Keys {
		if _, both := old.Keys[hash]; both {
			err = errors.Join(err, c.tooEarly("key "+string(hash), key.CreatedAt))
		}
	}
	if !related {
		return nil, errUnrelated
	}
	return old, err
}

// tooEarly refuses a moment before which something was made that the restore
// brought back: revoked keys would count as made after it.
func (c restoreRepair) tooEarly(what string, created time.Time) error {
	if !created.After(c.Since.Add(findings.Margin)) {
		return nil
	}
	return exit.UsageError(fmt.Sprintf("--since is too early: %s was made at %s and is in both tables", what, output.When(created)))
}

// subject is what the operator confirms.
func (c restoreRepair) subject(s *session, found []findings.Finding) subject {
	kinds := map[string]int{}
	for _, f := range found {
		if f.By == findings.ByRepair {
			kinds[f.Action]++
		}
	}
	return subject{
		effect: fmt.Sprintf("makes these changes, which --dry-run lists, in the table %s: %v", s.outputs.AccessTableName, kinds),
		names:  []string{s.outputs.AccessTableName},
	}
}

// repair makes the repairs one after the other, keys first. It goes on after one
// that fails, unless many in a row do.
func (s *session) repair(ctx context.Context, found []findings.Finding) error {
	inARow, failed := 0, 0
	for i := range found {
		f := &found[i]
		if f.By != findings.ByRepair {
			continue
		}
		err := f.Repair(ctx, s.registry)
		s.audit(ctx, f.Action, err, "account", f.Account, f.Kind, f.ID, "problem", f.Problem, "remedy", f.Remedy)
		switch f.Outcome = "repaired"; {
		case ctx.Err() != nil:
			f.Outcome = "interrupted"
			return ctx.Err()
		case err != nil:
			f.Outcome = output.Optional("failed: " + exit.Sentence(err))
			failed++
			if inARow++; inARow >= rewrap.Patience {
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
