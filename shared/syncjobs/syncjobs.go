// Package syncjobs keeps the state of directory sync jobs. The sync worker, a
// service of its own, writes it through Writer; the API reads it through Store.
//
// A job goes queued → running → succeeded or failed, or queued → failed, and no
// other way. Each step is one conditional write, so that two workers cannot both
// take it. What a job says always agrees with its state, whatever the row holds.
package syncjobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// ErrNotFound says that there is no such job, or that it is another account's.
var ErrNotFound = errors.New("no such sync job")

// Job is a sync job. What its state does not carry is nil.
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

// item is a job as stored, under pk = job#<id>. Times are Unix seconds.
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

type itemGetter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Store reads jobs.
type Store struct {
	db    itemGetter
	table string
}

// NewStore reads jobs from the table of that name.
func NewStore(db itemGetter, table string) *Store { return &Store{db: db, table: table} }

// Found is a job that was looked up before it was known who asks. What it says
// can be learnt only by naming the account.
type Found struct {
	id   ids.Job
	item item
}

// Find looks a job up, strongly consistent. That it does not exist shows in For.
func (s *Store) Find(ctx context.Context, id ids.Job) (Found, error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.table,
		Key:            keyOf(id),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Found{}, fmt.Errorf("looking up the sync job: %w", err)
	}
	found := Found{id: id}
	if out.Item == nil {
		return found, nil
	}
	if err := attributevalue.UnmarshalMap(out.Item, &found.item); err != nil || found.item.check(id) != nil {
		return Found{}, fmt.Errorf("stored sync job %s is unreadable", id)
	}
	return found, nil
}

// For yields the job if it is the account's, else ErrNotFound.
func (f Found) For(account ids.Account) (Job, error) {
	if account == "" || f.item.Account != account {
		return Job{}, ErrNotFound
	}
	return f.item.job(f.id), nil
}

// check refuses a row that contradicts itself, or is another job's.
func (i item) check(id ids.Job) error {
	switch i.Status {
	case Queued, Running, Succeeded, Failed:
	default:
		return errors.New("unknown status")
	}
	if i.Version != itemVersion {
		return errors.New("unknown version")
	}
	if i.PK != jobPrefix+string(id) {
		return errors.New("another job")
	}
	return nil
}

// job reads the row as its state allows: a count left over in a failed job, say,
// is not told.
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
	t := time.Unix(*unix, 0).UTC()
	return &t
}

func keyOf(id ids.Job) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: jobPrefix + string(id)}}
}
