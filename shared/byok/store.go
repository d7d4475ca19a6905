package byok

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
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
	dynamodb.QueryAPIClient
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

// NewStore stores credentials in the credentials table, and records of idempotent
// requests in the control table.
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
		Form:      FormOf(n.Key.Reveal()),
		CreatedAt: s.now().UTC().Truncate(time.Second),
	}
	sealed, err := s.sealer.Seal(ctx, n.Key, c.Binding())
	if err != nil {
		return Draft{}, err
	}
	return Draft{Credential: c, sealed: sealed}, nil
}

// Create stores the whole draft or nothing. After an error it may be stored:
// only a request with an idempotency key can be repeated without a second one.
func (s *Store) Create(ctx context.Context, d Draft) error {
	put := s.put(d)
	_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal, // the proof that it was written
	})
	// The id is fresh: if it is taken, an earlier attempt of the SDK was applied and its
	// response lost.
	if _, taken := calls.ConditionFailed(err); err != nil && !taken {
		return fmt.Errorf("storing the credential: %w", err)
	}
	return nil
}

func (s *Store) put(d Draft) *types.Put {
	return &types.Put{
		TableName: &s.credentials, Item: calls.Encode(newItem(d)),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}
}

// recordLife is how long the response to an idempotent request is kept: longer
// than the 24 hours that infra/openapi.yaml promises.
const recordLife = 25 * time.Hour

// RequestID names one idempotent request: an idempotency key as one API key uses it.
type RequestID string

// NewRequestID returns the id of the request that the API key with this hash makes
// under an idempotency key. The idempotency key is stored only as a hash.
func NewRequestID(apiKey ids.KeyHash, idempotencyKey string) RequestID {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return RequestID("idem#" + string(apiKey) + "#" + hex.EncodeToString(sum[:]))
}

// Fingerprint identifies a request without revealing its content: an HMAC-SHA256
// of the bytes that feed writes, under a key derived from the bearer token alone.
// A reader of the table cannot test guesses of provider keys against it.
func Fingerprint(derived []byte, feed func(hash io.Writer)) []byte {
	mac := hmac.New(sha256.New, derived)
	feed(mac)
	return mac.Sum(nil)
}

// recordVersion is the version of the record's layout and of its fingerprint's input.
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

// Remembered is the record of an earlier request under the same id, if there is one.
type Remembered struct{ record record }

// Exists reports whether there is such a record.
func (m Remembered) Exists() bool { return m.record.PK != "" }

// Recall looks up an earlier request, strongly consistent.
func (s *Store) Recall(ctx context.Context, id RequestID) (Remembered, error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.control,
		Key:            map[string]types.AttributeValue{"pk": calls.Text(string(id))},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Remembered{}, fmt.Errorf("recalling an idempotent request: %w", err)
	}
	return s.decodeRecord(id, out.Item)
}

// decodeRecord decodes the record of the request. DynamoDB may keep an expired one
// for days.
func (s *Store) decodeRecord(id RequestID, item map[string]types.AttributeValue) (Remembered, error) {
	if item == nil {
		return Remembered{}, nil
	}
	var r record
	if err := attributevalue.UnmarshalMap(item, &r); err != nil || r.Version != recordVersion || r.PK != string(id) {
		return Remembered{}, fmt.Errorf("%w idempotency record is unreadable", calls.ErrStored)
	}
	if r.Expires <= s.now().Unix() {
		return Remembered{}, nil
	}
	return Remembered{r}, nil
}

// Replayed is an earlier response and the credential that it names.
type Replayed struct {
	Workspace  ids.Workspace
	Credential ids.Credential
	Response   []byte
}

// Replay returns the earlier response. It returns none, and false, if the earlier request was
// different.
func (m Remembered) Replay(fingerprint []byte) (Replayed, bool) {
	if !hmac.Equal(m.record.Fingerprint, fingerprint) {
		return Replayed{}, false
	}
	return Replayed{Workspace: m.record.Workspace, Credential: m.record.Credential, Response: []byte(m.record.Response)}, true
}

// CreateOnce stores the draft and the record of its request, both or neither. If another
// request under the same id was stored first, it stores nothing and returns that
// request's record. After an error the credential may be stored; the same request again
// finds it.
func (s *Store) CreateOnce(ctx context.Context, d Draft, id RequestID, fingerprint, response []byte) (Remembered, error) {
	put := s.put(d)
	for attempt := 1; ; attempt++ {
		_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: put}, {Put: s.remember(record{
				PK: string(id), Fingerprint: fingerprint, Workspace: d.Workspace, Credential: d.ID, Response: string(response),
			})}},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err == nil {
			return Remembered{}, nil
		}
		switch found, err := s.afterFailure(ctx, id, err); {
		case err != nil:
			return Remembered{}, fmt.Errorf("storing the credential and its request: %w", err)
		case found.record.Credential == d.ID: // the response to an attempt of our own was lost
			return Remembered{}, nil
		case found.Exists(): // another copy of the request was stored first
			return found, nil
		}
		if err := calls.Pause(ctx, attempt); err != nil {
			return Remembered{}, fmt.Errorf("storing the credential and its request: %w", err)
		}
	}
}

// remember is the conditional write of a record. It may replace an expired one.
func (s *Store) remember(r record) *types.Put {
	now := s.now()
	r.Version, r.Expires = recordVersion, now.Add(recordLife).Unix()
	return &types.Put{
		TableName: &s.control, Item: calls.Encode(r),
		ConditionExpression: aws.String("attribute_not_exists(pk) OR exp <= :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": calls.Number(now.Unix()),
		},
		// If two requests write at once, the loser gets the winner's record with its
		// error.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// afterFailure finds out why the transaction failed. It returns the record that is stored
// under the id, or no record if another attempt may succeed, or the error. If DynamoDB
// names several reasons, the condition of the record, the second item, decides: it means
// that there is a response.
func (s *Store) afterFailure(ctx context.Context, id RequestID, failed error) (Remembered, error) {
	if found, unmet := calls.Unmet(failed, 1); unmet {
		return s.decodeRecord(id, found)
	}
	why := calls.WhyCancelled(failed)
	if why != calls.InConflict && why != calls.Throttled {
		return Remembered{}, failed
	}
	found, err := s.Recall(ctx, id)
	if err == nil && !found.Exists() && why == calls.Throttled {
		err = failed // the SDK has repeated it already
	}
	return found, err
}
