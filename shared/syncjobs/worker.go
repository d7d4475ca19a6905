package syncjobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
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
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Writer moves jobs on. Every step is one conditional write: it names the account,
// checks the old state, and sets every field of the new state.
//
// The row keeps a random token of its last step, because the response to a step may be
// lost. The SDK's repeat then finds the token, and the step succeeds. If a step ends
// with another error than ErrState and ErrInvalid, it may have been taken. The same step
// by the same Writer then has the same token: it succeeds once, whether or not the first
// was taken. Any other repeat, and every other Writer, gets ErrState.
type Writer struct {
	db    itemWriter
	table string
	now   func() time.Time

	mu     sync.Mutex
	unsure map[step]string // the tokens of steps that may have been taken
}

// maxUnsure bounds the tokens in memory: the token of a step that is not repeated stays.
const maxUnsure = 1000

// step is one step of a job, with the values that it records.
type step struct {
	account  ids.Account
	job      ids.Job
	to       Status
	recorded string
}

// NewWriter writes jobs to the table.
func NewWriter(db itemWriter, table string) *Writer {
	return &Writer{db: db, table: table, now: time.Now, unsure: map[step]string{}}
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
	return w.take(ctx, step{account, id, Running, ""}, "started_at = :now", nil, Queued)
}

// Succeed records that a running job succeeded, with these numbers of groups.
func (w *Writer) Succeed(ctx context.Context, account ids.Account, id ids.Job, synced, deleted int64) error {
	if synced < 0 || deleted < 0 {
		return fmt.Errorf("%w: a number of groups cannot be negative", ErrInvalid)
	}
	return w.take(ctx, step{account, id, Succeeded, fmt.Sprint(synced, deleted)},
		"finished_at = :now, synced_groups = :synced, deleted_groups = :deleted",
		map[string]types.AttributeValue{":synced": calls.Number(synced), ":deleted": calls.Number(deleted)},
		Running)
}

// Fail records that a job failed, running or not yet started. The message is shown
// to customers and compared by their programs: a fixed text for each kind of
// failure, without ids, addresses or secrets.
func (w *Writer) Fail(ctx context.Context, account ids.Account, id ids.Job, message string) error {
	if message == "" || !utf8.ValidString(message) || utf8.RuneCountInString(message) > maxMessage {
		return fmt.Errorf("%w: an error message has 1 to %d characters of UTF-8", ErrInvalid, maxMessage)
	}
	return w.take(ctx, step{account, id, Failed, message},
		"finished_at = :now, error_message = :message",
		map[string]types.AttributeValue{":message": calls.Text(message)},
		Running, Queued)
}

// take takes the step of a job of its account from one of the states.
func (w *Writer) take(ctx context.Context, s step, update string, values map[string]types.AttributeValue, from ...Status) error {
	token := w.token(s)
	all := map[string]types.AttributeValue{
		":account": calls.Text(string(s.account)), ":to": calls.Text(string(s.to)), ":now": calls.Number(w.now().Unix()), ":token": calls.Text(token),
	}
	names := make([]string, len(from))
	for i, status := range from {
		names[i] = ":from" + strconv.Itoa(i)
		all[names[i]] = calls.Text(string(status))
	}
	maps.Copy(all, values)
	_, err := w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: primaryKey(s.job),
		UpdateExpression:                    aws.String("SET #status = :to, step_token = :token, " + update),
		ConditionExpression:                 aws.String("account = :account AND #status IN (" + strings.Join(names, ", ") + ")"),
		ExpressionAttributeNames:            map[string]string{"#status": "status"},
		ExpressionAttributeValues:           all,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if stored, failed := calls.ConditionFailed(err); failed {
		if last, ok := stored["step_token"].(*types.AttributeValueMemberS); ok && last.Value == token {
			return nil
		}
		return ErrState
	}
	if err != nil {
		w.keep(s, token)
		return fmt.Errorf("moving sync job %s to %s: %w", s.job, s.to, err)
	}
	return nil
}

// token returns the one under which the step may have been taken, or else a new one. It
// gives an old one out once, because only one of two callers may succeed.
func (w *Writer) token(s step) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := cmp.Or(w.unsure[s], rand.Text())
	delete(w.unsure, s)
	return token
}

// keep remembers the token of a step that may have been taken.
func (w *Writer) keep(s step, token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.unsure) >= maxUnsure {
		clear(w.unsure) // a repeat of one of these gets ErrState
	}
	w.unsure[s] = token
}
