package syncjobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

var (
	// ErrState means that this step is not allowed in the job's state, or that the
	// account has no such job.
	ErrState = errors.New("the sync job is not in a state that allows this")
	// ErrInvalid is wrapped by errors that describe an invalid value.
	ErrInvalid = errors.New("invalid")
)

// maxMessage bounds an error message, in code points.
const maxMessage = 1000

type itemWriter interface {
	calls.ItemPutter
	calls.ItemUpdater
}

// Writer moves jobs on. Every step is one conditional write: it names the account,
// checks the old state, and sets every field of the new state.
//
// The row keeps a random token of its last step, because the response to a step may be
// lost: the SDK's repeat then finds the token, and the step succeeds. After any error but
// ErrState and ErrInvalid the step may have been taken. If it was, the same step returns
// ErrState; the job's state shows it.
type Writer struct {
	db    itemWriter
	table string
	now   func() time.Time
}

// NewWriter writes jobs to the table.
func NewWriter(db itemWriter, table string) *Writer {
	return &Writer{db: db, table: table, now: time.Now}
}

// Create queues a new job of the account. After an error that comes with an id it may
// be stored.
func (w *Writer) Create(ctx context.Context, account ids.Account) (ids.Job, error) {
	if account == "" {
		return "", errors.New("a sync job needs an account")
	}
	id := ids.New[ids.Job]()
	_, err := w.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &w.table,
		Item: calls.Encode(item{
			PK: jobPrefix + string(id), Version: itemVersion,
			Account: account, Status: Queued, CreatedAt: w.now().Unix(),
		}),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	})
	// The id is fresh: if it is taken, our own first attempt was applied and its
	// response lost.
	if _, taken := calls.ConditionFailed(err); err != nil && !taken {
		return id, fmt.Errorf("creating a sync job: %w", err)
	}
	return id, nil
}

// Start records that a queued job runs.
func (w *Writer) Start(ctx context.Context, account ids.Account, id ids.Job) error {
	return w.take(ctx, account, id, step{to: Running, from: []Status{Queued}, set: "started_at = :now"})
}

// Succeed records that a running job succeeded, with these numbers of groups.
func (w *Writer) Succeed(ctx context.Context, account ids.Account, id ids.Job, synced, deleted int64) error {
	if synced < 0 || deleted < 0 {
		return fmt.Errorf("%w: a number of groups cannot be negative", ErrInvalid)
	}
	return w.take(ctx, account, id, step{
		to: Succeeded, from: []Status{Running},
		set:    "finished_at = :now, synced_groups = :synced, deleted_groups = :deleted",
		values: map[string]types.AttributeValue{":synced": calls.Number(synced), ":deleted": calls.Number(deleted)},
	})
}

// Fail records that a job failed, running or not yet started. The message is shown
// to customers and compared by their programs: a fixed text for each kind of
// failure, without ids, addresses or secrets.
func (w *Writer) Fail(ctx context.Context, account ids.Account, id ids.Job, message string) error {
	if message == "" || !utf8.ValidString(message) || utf8.RuneCountInString(message) > maxMessage {
		return fmt.Errorf("%w: an error message has 1 to %d characters of UTF-8", ErrInvalid, maxMessage)
	}
	return w.take(ctx, account, id, step{
		to: Failed, from: []Status{Running, Queued},
		set:    "finished_at = :now, error_message = :message",
		values: map[string]types.AttributeValue{":message": calls.Text(message)},
	})
}

// step is a change of a job's state, and the attributes that it sets.
type step struct {
	to     Status
	from   []Status
	set    string
	values map[string]types.AttributeValue
}

// take takes the step of a job of the account.
func (w *Writer) take(ctx context.Context, account ids.Account, id ids.Job, s step) error {
	token := rand.Text()
	values := map[string]types.AttributeValue{
		":account": calls.Text(string(account)), ":to": calls.Text(string(s.to)), ":now": calls.Number(w.now().Unix()), ":token": calls.Text(token),
	}
	maps.Copy(values, s.values)
	names := make([]string, len(s.from))
	for i, status := range s.from {
		names[i] = ":from" + strconv.Itoa(i)
		values[names[i]] = calls.Text(string(status))
	}
	_, err := w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: primaryKey(id),
		UpdateExpression:                    aws.String("SET #status = :to, step_token = :token, " + s.set),
		ConditionExpression:                 aws.String("account = :account AND #status IN (" + strings.Join(names, ", ") + ")"),
		ExpressionAttributeNames:            map[string]string{"#status": "status"},
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if stored, failed := calls.ConditionFailed(err); failed {
		if calls.TextOf(stored, "step_token") == token {
			return nil
		}
		return ErrState
	}
	if err != nil {
		return fmt.Errorf("moving sync job %s to %s: %w", id, s.to, err)
	}
	return nil
}
