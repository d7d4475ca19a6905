package acts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

const (
	ErrInconsistent = Findings("the tables are inconsistent")
	errNotRepaired  = Findings("some repairs failed: the list has the reasons. Repeat the command once they are gone")
	ErrLeft         = Findings("everything else is repaired; findings are left for you: they are listed")
)

// Survey reads both tables, the credentials first. A counter moves before its credential is
// stored, so no credential is ahead of a counter that is read later.
func (s *Stack) Survey(ctx context.Context) (Tables, error) {
	placements, err := byok.Survey(ctx, s.DB, s.CredentialsTable)
	if err != nil {
		return Tables{}, err
	}
	newer, _ := Split(placements, func(p byok.Surveyed) bool { return p.Newer })
	if err := refuseNewer(s.CredentialsTable, len(newer)); err != nil {
		return Tables{}, err
	}
	access, err := s.readSurvey(ctx, s.AccessTable)
	return Tables{access, placements}, err
}

// readSurvey reads an access table to compare it. Rows of a newer version would look damaged, and
// a repair would disable their keys.
func (s *Stack) readSurvey(ctx context.Context, table string) (*auth.Survey, error) {
	survey, err := auth.ReadSurvey(ctx, s.DB, table)
	if err == nil {
		err = refuseNewer(table, survey.Newer)
	}
	return survey, err
}

func refuseNewer(table string, rows int) error {
	if rows == 0 {
		return nil
	}
	return Refusal(fmt.Sprintf("table %s has %s written by a newer version of this command: use that version. Nothing was changed", table, Count(rows, "row")))
}

// ReadBefore reads the table before the restore; without one it is empty. It refuses the
// access table itself, and a table that was restored to the same moment or an earlier one: it
// would show revoked keys enabled.
func (s *Stack) ReadBefore(ctx context.Context, table string) (*auth.Survey, error) {
	live, err := s.describe(ctx, s.AccessTable)
	if err != nil {
		return nil, err
	}
	before, err := s.describe(ctx, table)
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
		return nil, UsageError("there is no table " + table)
	}
	if err != nil {
		return nil, err
	}
	if aws.ToString(before.TableName) == aws.ToString(live.TableName) {
		return nil, UsageError("--before names the access table itself: give a table with what the access table held before the restore")
	}
	if was, is := before.RestoreSummary, live.RestoreSummary; was != nil && (is == nil || !aws.ToTime(was.RestoreDateTime).After(aws.ToTime(is.RestoreDateTime))) {
		return nil, UsageError(fmt.Sprintf("%s was restored to the state of %s, and the access table to no earlier one: give a table with the state just before the restore",
			table, aws.ToTime(was.RestoreDateTime).UTC().Format(time.RFC3339)))
	}
	return s.readSurvey(ctx, table)
}

func (s *Stack) describe(ctx context.Context, table string) (*types.TableDescription, error) {
	out, err := s.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return nil, fmt.Errorf("describing table %s: %w", table, err)
	}
	if out.Table == nil || out.Table.TableName == nil {
		return nil, fmt.Errorf("describing table %s: empty response", table)
	}
	return out.Table, nil
}

// Repair makes the repairs that the findings plan, and notes the outcomes in them. It goes on
// after a failed one.
//
// Keys come first: of all that a restore has brought back, a revoked key does the most harm until
// it is repaired. Each repair is a conditional write that checks its cause again, so an interrupted
// act is repeated from a new survey.
func (s *Stack) Repair(ctx context.Context, found []Finding, before string) error {
	return s.DoAll(ctx, "restore.repair", []any{"table", s.AccessTable, "before", before}, func(ctx context.Context) (failed error) {
		for i := range found {
			f := &found[i]
			if f.By != ByRepair {
				continue
			}
			attrs := []any{"account", f.Account, f.Kind, f.ID, "problem", f.Problem}
			err := s.Do(ctx, f.Remedy, attrs, func(ctx context.Context) error { return f.repair(ctx, s.Registry) })
			switch {
			case ctx.Err() != nil:
				f.Outcome = "interrupted"
				return ctx.Err()
			case errors.Is(err, auth.ErrNeedless), errors.Is(err, auth.ErrNoKey):
				f.Outcome = "no longer needed"
			case err != nil:
				f.Outcome = "failed: " + ErrorText(err, false)
				failed = errNotRepaired
			default:
				f.Outcome = "repaired"
			}
		}
		return failed
	})
}
