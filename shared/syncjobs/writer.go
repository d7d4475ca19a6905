package syncjobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

var (
	// ErrState means that the job is not in a state from which this step may be
	// taken, or that the account has no such job.
	ErrState = errors.New("the sync job is not in a state that allows this")
	// ErrInvalid is wrapped by errors that describe what a step cannot record.
	ErrInvalid = errors.New("invalid")
)

// maxMessage bounds an error message, in code points.
const maxMessage = 1000

type itemWriter interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Writer moves jobs on. Every step names the account, checks the state the job
// comes from, and sets all that the new state carries, in one conditional write.
// A step whose response was lost may have been taken: taking it again then returns
// ErrState, and the job shows which step was taken.
type Writer struct {
	db    itemWriter
	table string
	now   func() time.Time
}

// NewWriter writes jobs to the table of that name.
func NewWriter(db itemWriter, table string) *Writer {
	return &Writer{db: db, table: table, now: time.Now}
}

// Create queues a new job of the account.
func (w *Writer) Create(ctx context.Context, account ids.Account) (ids.Job, error) {
	if account == "" {
		return "", errors.New("a sync job needs an account")
	}
	id := ids.New[ids.Job]()
	stored, err := attributevalue.MarshalMap(item{
		PK: jobPrefix + string(id), Version: itemVersion,
		Account: account, Status: Queued, CreatedAt: w.now().Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("encoding a sync job: %w", err)
	}
	_, err = w.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &w.table, Item: stored,
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	})
	// The id is fresh: if it is taken, an attempt of ours was applied and its
	// response lost.
	if _, taken := calls.ConditionFailed(err); err != nil && !taken {
		return "", fmt.Errorf("creating a sync job: %w", err)
	}
	return id, nil
}

// Start records that a queued job runs.
func (w *Writer) Start(ctx context.Context, account ids.Account, id ids.Job) error {
	return w.step(ctx, account, id, Running, "SET #status = :to, started_at = :now", nil, Queued)
}

// Succeed records that a running job succeeded, with these numbers of groups.
func (w *Writer) Succeed(ctx context.Context, account ids.Account, id ids.Job, synced, deleted int64) error {
	if synced < 0 || deleted < 0 {
		return fmt.Errorf("%w: a number of groups cannot be negative", ErrInvalid)
	}
	return w.step(ctx, account, id, Succeeded,
		"SET #status = :to, finished_at = :now, synced_groups = :synced, deleted_groups = :deleted",
		map[string]types.AttributeValue{":synced": number(synced), ":deleted": number(deleted)},
		Running)
}

// Fail records that a job failed, running or not yet started. The message is shown
// to customers and compared by their programs: a fixed text for each kind of
// failure, without ids, addresses or secrets.
func (w *Writer) Fail(ctx context.Context, account ids.Account, id ids.Job, message string) error {
	if message == "" || !utf8.ValidString(message) || utf8.RuneCountInString(message) > maxMessage {
		return fmt.Errorf("%w: an error message has 1 to %d characters of UTF-8", ErrInvalid, maxMessage)
	}
	return w.step(ctx, account, id, Failed,
		"SET #status = :to, finished_at = :now, error_message = :message",
		map[string]types.AttributeValue{":message": &types.AttributeValueMemberS{Value: message}},
		Running, Queued)
}

// step takes a job of the account from one of the states to another.
func (w *Writer) step(ctx context.Context, account ids.Account, id ids.Job, to Status, update string, values map[string]types.AttributeValue, from ...Status) error {
	condition := "account = :account AND #status IN ("
	all := map[string]types.AttributeValue{
		":account": &types.AttributeValueMemberS{Value: string(account)},
		":to":      &types.AttributeValueMemberS{Value: string(to)},
		":now":     number(w.now().Unix()),
	}
	for i, status := range from {
		name := ":from" + strconv.Itoa(i)
		all[name] = &types.AttributeValueMemberS{Value: string(status)}
		if i > 0 {
			condition += ", "
		}
		condition += name
	}
	for name, value := range values {
		all[name] = value
	}
	_, err := w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: keyOf(id),
		UpdateExpression:          &update,
		ConditionExpression:       aws.String(condition + ")"),
		ExpressionAttributeNames:  map[string]string{"#status": "status"},
		ExpressionAttributeValues: all,
	})
	if _, failed := calls.ConditionFailed(err); failed {
		return ErrState
	}
	if err != nil {
		return fmt.Errorf("moving sync job %s to %s: %w", id, to, err)
	}
	return nil
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
