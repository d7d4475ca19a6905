// Package syncjobs keeps the state of directory sync jobs. The sync worker, another
// service, writes it through Writer. The API reads it through Store.
//
// A job goes queued → running → succeeded or failed, or queued → failed, and takes no
// other step. Each step is one conditional write: two workers cannot both take it. The
// fields of a job always agree with its state, even if the row does not.
package syncjobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Status is the state of a job.
type Status string

// The states of a job.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
)

// Finished reports whether the job will not change any more.
func (s Status) Finished() bool { return s == Succeeded || s == Failed }

// ErrNotFound means that there is no such job or that another account has it.
var ErrNotFound = errors.New("no such sync job")

// Job is a sync job. A field that its state does not have is nil.
type Job struct {
	ID            ids.Job
	Status        Status
	SyncedGroups  *int64
	DeletedGroups *int64
	ErrorMessage  *string
	CreatedAt     time.Time
	StartedAt     *time.Time
	FinishedAt    *time.Time
}

const (
	itemVersion = 1
	jobPrefix   = "job#"
)

// item is a job as stored, under pk = job#<id>. Times are Unix seconds. The row has one
// more attribute, step_token, which only Writer reads.
type item struct {
	PK            string      `dynamodbav:"pk"`
	Version       int         `dynamodbav:"v"`
	Account       ids.Account `dynamodbav:"account"`
	Status        Status      `dynamodbav:"status"`
	SyncedGroups  *int64      `dynamodbav:"synced_groups,omitempty"`
	DeletedGroups *int64      `dynamodbav:"deleted_groups,omitempty"`
	ErrorMessage  *string     `dynamodbav:"error_message,omitempty"`
	CreatedAt     int64       `dynamodbav:"created_at"`
	StartedAt     *int64      `dynamodbav:"started_at,omitempty"`
	FinishedAt    *int64      `dynamodbav:"finished_at,omitempty"`
}

// Store reads jobs.
type Store struct {
	db    calls.ItemGetter
	table string
}

// NewStore reads jobs from the table.
func NewStore(db calls.ItemGetter, table string) *Store { return &Store{db: db, table: table} }

// Found is a job that was looked up before its caller was verified. Only For reveals
// it.
type Found struct {
	id     ids.Job
	row    item
	damage error
}

// Find looks a job up, strongly consistent. It does not fail for a missing or
// damaged job; For does.
func (s *Store) Find(ctx context.Context, id ids.Job) (Found, error) {
	stored, err := calls.Get(ctx, s.db, s.table, primaryKey(id))
	if err != nil {
		return Found{}, fmt.Errorf("looking up the sync job: %w", err)
	}
	if stored == nil {
		return Found{id: id}, nil
	}
	row, damage := read(stored)
	if damage != nil {
		damage = &calls.Damage{Kind: "sync job", ID: string(id), Wrong: damage}
	}
	return Found{id, row, damage}, nil
}

// For returns the job if it is the account's, else ErrNotFound. If the job cannot be
// read, its own account gets another error.
func (f Found) For(account ids.Account) (Job, error) {
	if account == "" || f.row.Account != account {
		return Job{}, ErrNotFound
	}
	if f.damage != nil {
		return Job{}, f.damage
	}
	return f.row.job(f.id), nil
}

// Damage says what is wrong with a damaged row. It is for the log; a caller gets the
// error of For.
func (f Found) Damage() error { return f.damage }

// read decodes a row and checks it. The error names the attribute that is damaged, and contains
// no value.
func read(stored map[string]types.AttributeValue) (item, error) {
	var i item
	damage := calls.Decode(stored, &i, "account")
	return i, cmp.Or(damage, i.check())
}

// The times that a job can have, in Unix seconds: the years 2000 to 9999. A time in
// milliseconds is later.
const (
	earliest = 946684800
	latest   = 253402300799
)

func (i item) check() error {
	switch {
	case i.Version != itemVersion:
		return errors.New("unknown version")
	case i.Account == "":
		return errors.New("no account")
	}
	switch i.Status {
	case Queued, Running, Succeeded, Failed:
	default:
		return errors.New("unknown status")
	}
	for _, a := range []struct {
		name string
		unix *int64
	}{{"created_at", &i.CreatedAt}, {"started_at", i.StartedAt}, {"finished_at", i.FinishedAt}} {
		if a.unix != nil && (*a.unix < earliest || *a.unix > latest) {
			return fmt.Errorf("%s is not a time in seconds, from 2000 to 9999", a.name)
		}
	}
	for _, a := range []struct {
		name   string
		groups *int64
	}{{"synced_groups", i.SyncedGroups}, {"deleted_groups", i.DeletedGroups}} {
		if a.groups != nil && *a.groups < 0 {
			return fmt.Errorf("%s is negative", a.name)
		}
	}
	return nil
}

// job reads the fields that the row's state has. It leaves out a count in a failed job,
// for example.
func (i item) job(id ids.Job) Job {
	j := Job{ID: id, Status: i.Status, CreatedAt: time.Unix(i.CreatedAt, 0).UTC()}
	if i.Status != Queued {
		j.StartedAt = instant(i.StartedAt)
	}
	if i.Status.Finished() {
		j.FinishedAt = instant(i.FinishedAt)
	}
	switch i.Status {
	case Succeeded:
		j.SyncedGroups, j.DeletedGroups = i.SyncedGroups, i.DeletedGroups
	case Failed:
		j.ErrorMessage = i.ErrorMessage
	case Queued, Running:
	}
	return j
}

func instant(unix *int64) *time.Time {
	if unix == nil {
		return nil
	}
	return new(time.Unix(*unix, 0).UTC())
}

func primaryKey(id ids.Job) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": calls.Text(jobPrefix + string(id))}
}
