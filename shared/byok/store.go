package byok

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

type itemWriter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Store creates credentials.
type Store struct {
	db          itemWriter
	credentials string
	control     string
	sealer      *seal.Sealer
	now         func() time.Time
}

// NewStore stores credentials in the table of that name, and the records of
// idempotent requests in the control table.
func NewStore(db itemWriter, credentials, control string, sealer *seal.Sealer) *Store {
	return &Store{db: db, credentials: credentials, control: control, sealer: sealer, now: time.Now}
}

// Draft is a credential that is sealed and not yet stored.
type Draft struct {
	Credential
	sealed seal.Sealed
}

// Seal gives a new credential its id, label and time, and seals its key for the
// workspace of the account. It stores nothing and may be repeated. The caller
// wipes the key.
func (s *Store) Seal(ctx context.Context, account ids.Account, workspace ids.Workspace, n New) (Draft, error) {
	c := Credential{
		Settings:  n.Settings,
		ID:        ids.New[ids.Credential](),
		Account:   account,
		Workspace: workspace,
		Label:     Label(n.Key.Reveal()),
		CreatedAt: s.now().UTC().Truncate(time.Second),
	}
	sealed, err := s.sealer.Seal(ctx, n.Key, c.binding())
	if err != nil {
		return Draft{}, err
	}
	return Draft{Credential: c, sealed: sealed}, nil
}

// binding is the place the key of the credential is sealed for.
func (c Credential) binding() seal.Binding {
	return seal.Binding{Account: c.Account, Workspace: c.Workspace, Credential: c.ID, Provider: c.Provider}
}

// Create stores the draft, all of it or nothing. After an error it may be stored:
// only a request with an idempotency key can be repeated without a second one.
func (s *Store) Create(ctx context.Context, d Draft) error {
	put := s.put(d)
	_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
	})
	// The id is fresh: if it is taken, an earlier attempt of the SDK's was applied
	// and its answer lost.
	if _, taken := calls.ConditionFailed(err); err != nil && !taken {
		return fmt.Errorf("storing the credential: %w", err)
	}
	return nil
}

// put is the conditional write of a draft.
func (s *Store) put(d Draft) *types.Put {
	return &types.Put{
		TableName: &s.credentials, Item: encode(newItem(d)),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}
}

// encode encodes a row of this package, a struct of strings, numbers, booleans, bytes
// and lists of strings: that cannot fail, and DynamoDB would refuse an empty row.
func encode(row any) map[string]types.AttributeValue {
	encoded, _ := attributevalue.MarshalMap(row)
	return encoded
}

// remembered is how long the response to an idempotent request is kept: longer
// than the 24 hours that infra/openapi.yaml promises.
const remembered = 25 * time.Hour

// ErrDifferentRequest means that the idempotency key was used for another request.
var ErrDifferentRequest = errors.New("the idempotency key was used for a different request")

// RequestID names one idempotent request: an idempotency key as one API key uses it.
type RequestID string

// NewRequestID returns the id of the request that the API key with this hash makes
// under an idempotency key. The idempotency key is stored only as a hash.
func NewRequestID(apiKeyHash, idempotencyKey string) RequestID {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return RequestID("idem#" + apiKeyHash + "#" + hex.EncodeToString(sum[:]))
}

// Fingerprint identifies a request without revealing its content: an HMAC-SHA256
// of what feed writes, under a key that can be derived only from the bearer token.
// A reader of the table cannot test guesses of provider keys against it.
func Fingerprint(derived []byte, feed func(hash io.Writer)) []byte {
	mac := hmac.New(sha256.New, derived)
	feed(mac)
	fingerprint := mac.Sum(nil)
	// The hash buffers its last incomplete block, which may contain part of the
	// provider key: a block of single bytes overwrites it.
	for range sha256.BlockSize {
		_, _ = mac.Write([]byte{0}) // a hash never fails
	}
	return fingerprint
}

// recordVersion is the version of the record's layout, what is fed into its
// fingerprint included.
const recordVersion = 2

// record is the record of a request, in the control table under its id. The
// response is the body of its 201, which contains no secret.
type record struct {
	PK          string         `dynamodbav:"pk"`
	Version     int            `dynamodbav:"v"`
	Fingerprint []byte         `dynamodbav:"fingerprint"`
	Workspace   ids.Workspace  `dynamodbav:"workspace"`
	Credential  ids.Credential `dynamodbav:"credential"`
	Response    string         `dynamodbav:"response"`
	Expires     int64          `dynamodbav:"exp"` // Unix seconds
}

// Remembered is the record of an earlier request under the same id, if any.
type Remembered struct {
	record *record
}

// Recall looks up an earlier request, strongly consistent.
func (s *Store) Recall(ctx context.Context, id RequestID) (Remembered, error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.control,
		Key:            map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: string(id)}},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Remembered{}, fmt.Errorf("recalling an idempotent request: %w", err)
	}
	return s.remembered(id, out.Item)
}

// remembered decodes the record of the request. DynamoDB may keep an expired one
// for days.
func (s *Store) remembered(id RequestID, item map[string]types.AttributeValue) (Remembered, error) {
	if item == nil {
		return Remembered{}, nil
	}
	var r record
	if err := attributevalue.UnmarshalMap(item, &r); err != nil || r.Version != recordVersion || r.PK != string(id) {
		return Remembered{}, errors.New("stored idempotency record is unreadable")
	}
	if r.Expires <= s.now().Unix() {
		return Remembered{}, nil
	}
	return Remembered{record: &r}, nil
}

// Replayed is an earlier response and the credential that it names.
type Replayed struct {
	Workspace  ids.Workspace
	Credential ids.Credential
	Response   []byte
}

// Replay returns the earlier response to the same request; ok is false where there
// is none. The error is ErrDifferentRequest where the request was another.
func (m Remembered) Replay(fingerprint []byte) (replayed Replayed, ok bool, err error) {
	if m.record == nil {
		return Replayed{}, false, nil
	}
	if !hmac.Equal(m.record.Fingerprint, fingerprint) {
		return Replayed{}, false, ErrDifferentRequest
	}
	return Replayed{Workspace: m.record.Workspace, Credential: m.record.Credential, Response: []byte(m.record.Response)}, true, nil
}

// CreateOnce stores the draft and the record of its request, both or neither.
// Where another request under the same id was faster, it stores nothing and
// returns that request's record. After an error the credential may be stored;
// the same request again finds it.
func (s *Store) CreateOnce(ctx context.Context, d Draft, id RequestID, fingerprint, response []byte) (Remembered, error) {
	put := s.put(d)
	for attempt := 1; ; attempt++ {
		_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: put}, {Put: s.remember(d, id, fingerprint, response)}},
		})
		if err == nil {
			return Remembered{}, nil
		}
		earlier, again, err := s.lost(ctx, id, err)
		if !again || err != nil {
			return earlier, wrapStoring(err)
		}
		if err := calls.Pause(ctx, attempt); err != nil {
			return Remembered{}, wrapStoring(err)
		}
	}
}

func wrapStoring(err error) error {
	if err != nil {
		return fmt.Errorf("storing the credential and its request: %w", err)
	}
	return nil
}

// remember is the conditional write of a record: there is none, or an expired one.
func (s *Store) remember(d Draft, id RequestID, fingerprint, response []byte) *types.Put {
	now := s.now()
	return &types.Put{
		TableName: &s.control, Item: encode(record{
			PK: string(id), Version: recordVersion, Fingerprint: fingerprint,
			Workspace: d.Workspace, Credential: d.ID, Response: string(response),
			Expires: now.Add(remembered).Unix(),
		}),
		ConditionExpression: aws.String("attribute_not_exists(pk) OR exp <= :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Unix(), 10)},
		},
		// Of two at once, the loser gets the winner's record with the cancellation.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// lost finds out why the transaction failed: it returns the record of a faster
// request, or that another attempt may succeed, or the error. Of several reasons
// the record's condition decides: it means that there is a response.
func (s *Store) lost(ctx context.Context, id RequestID, failed error) (earlier Remembered, again bool, err error) {
	if found, unmet := recordUnmet(failed); unmet {
		earlier, err = s.remembered(id, found)
		return earlier, earlier.record == nil, err
	}
	why := calls.WhyCancelled(failed)
	if why != calls.InConflict && why != calls.Throttled {
		return Remembered{}, false, failed
	}
	earlier, err = s.Recall(ctx, id)
	if err == nil && earlier.record == nil && why == calls.Throttled {
		err = failed
	}
	return earlier, earlier.record == nil, err
}

// recordUnmet reports whether the condition of the record, the transaction's
// second item, failed, and returns the stored record.
func recordUnmet(err error) (found map[string]types.AttributeValue, ok bool) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(cancelled.CancellationReasons) < 2 {
		return nil, false
	}
	reason := cancelled.CancellationReasons[1]
	return reason.Item, aws.ToString(reason.Code) == "ConditionalCheckFailed"
}
