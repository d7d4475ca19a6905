package byok

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

type itemWriter interface {
	dynamodb.QueryAPIClient
	calls.ItemGetter
	calls.ItemPutter
	calls.Transactor
}

// Store creates credentials.
type Store struct {
	db          itemWriter
	credentials string
	control     string
	sealer      *seal.Sealer
	now         func() time.Time
}

// NewStore stores credentials in the credentials table, and the answers to
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
func (s *Store) Create(ctx context.Context, draft Draft) error {
	put := s.put(draft)
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

func (s *Store) put(draft Draft) *types.Put {
	return &types.Put{
		TableName: &s.credentials, Item: calls.Encode(newItem(draft)),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}
}

// answerLife is how long the answer to an idempotent request is kept: longer than the 24
// hours that infra/openapi.yaml promises.
const answerLife = 25 * time.Hour

// RequestID names one idempotent request: an idempotency key as one API key uses it.
type RequestID string

// NewRequestID returns the id of the request that the API key with this hash makes
// under an idempotency key. The idempotency key is stored only as a hash.
func NewRequestID(key ids.KeyHash, idempotencyKey string) RequestID {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return RequestID("idem#" + string(key) + "#" + hex.EncodeToString(sum[:]))
}

// Fingerprint identifies a request without revealing its content: an HMAC-SHA256
// of the bytes that feed writes, under a key derived from the bearer token alone.
// A reader of the table cannot test guesses of provider keys against it.
func Fingerprint(derived []byte, feed func(hash io.Writer)) []byte {
	mac := hmac.New(sha256.New, derived)
	feed(mac)
	return mac.Sum(nil)
}

// answerVersion is the version of the stored answer's layout and of its fingerprint's input.
const answerVersion = 2

// answerItem is an answer as stored, in the control table under the id of its request.
type answerItem struct {
	PK      string `dynamodbav:"pk"`
	Version int    `dynamodbav:"v"`
	Answer
	Expires int64 `dynamodbav:"exp"` // Unix seconds
}

// Answer is the stored 201 of an idempotent request, and the credential that it names. It holds
// no secret.
type Answer struct {
	Fingerprint []byte         `dynamodbav:"fingerprint"`
	Workspace   ids.Workspace  `dynamodbav:"workspace"`
	Credential  ids.Credential `dynamodbav:"credential"`
	Response    string         `dynamodbav:"response"`
}

// Exists reports whether there is such an answer.
func (a Answer) Exists() bool { return a.Credential != "" }

// IsFor reports whether it answers the request with this fingerprint.
func (a Answer) IsFor(fingerprint []byte) bool { return hmac.Equal(a.Fingerprint, fingerprint) }

// FindAnswer looks up the answer to the request, strongly consistent.
func (s *Store) FindAnswer(ctx context.Context, id RequestID) (Answer, error) {
	item, err := calls.Get(ctx, s.db, s.control, map[string]types.AttributeValue{"pk": calls.Text(string(id))})
	if err != nil {
		return Answer{}, fmt.Errorf("looking up the answer to an idempotent request: %w", err)
	}
	return s.decodeAnswer(item)
}

// decodeAnswer decodes the answer, if there is an item. DynamoDB may keep an expired one for
// days.
func (s *Store) decodeAnswer(item map[string]types.AttributeValue) (Answer, error) {
	if item == nil {
		return Answer{}, nil
	}
	var stored answerItem
	if calls.Decode(item, &stored) != nil || stored.Version != answerVersion || !stored.Exists() {
		return Answer{}, &calls.Damage{Kind: "answer", ID: "to an idempotent request", Wrong: errors.New("unknown layout")}
	}
	if stored.Expires <= s.now().Unix() {
		return Answer{}, nil
	}
	return stored.Answer, nil
}

// CreateOnce stores the draft and the answer to its request, both or neither. If another
// request under the same id was stored first, it stores nothing and returns that request's
// answer. After an error the credential may be stored; the same request again finds it.
func (s *Store) CreateOnce(ctx context.Context, draft Draft, id RequestID, fingerprint, response []byte) (Answer, error) {
	put := s.put(draft)
	own := Answer{Fingerprint: fingerprint, Workspace: draft.Workspace, Credential: draft.ID, Response: string(response)}
	for attempt := 1; ; attempt++ {
		_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems:          []types.TransactWriteItem{{Put: put}, {Put: s.putAnswer(id, own)}},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err == nil {
			return Answer{}, nil
		}
		found, err := s.afterFailure(ctx, id, err)
		if err == nil && !found.Exists() {
			err = calls.Pause(ctx, attempt)
		}
		switch {
		case err != nil:
			return Answer{}, fmt.Errorf("storing the credential and its answer: %w", err)
		case found.Credential == draft.ID: // the response to an attempt of our own was lost
			return Answer{}, nil
		case found.Exists(): // another copy of the request was stored first
			return found, nil
		}
	}
}

// putAnswer is the conditional write of an answer. It may replace an expired one.
func (s *Store) putAnswer(id RequestID, a Answer) *types.Put {
	now := s.now()
	return &types.Put{
		TableName: &s.control, Item: calls.Encode(answerItem{PK: string(id), Version: answerVersion, Answer: a, Expires: now.Add(answerLife).Unix()}),
		ConditionExpression: aws.String("attribute_not_exists(pk) OR exp <= :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": calls.Number(now.Unix()),
		},
		// If two requests write at once, the loser gets the winner's answer with its error.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// afterFailure finds out why the transaction failed. It returns the answer that is stored
// under the id, or none if another attempt may succeed, or the error. If DynamoDB names several
// reasons, the condition of the answer, the second item, decides: it means that there is one.
func (s *Store) afterFailure(ctx context.Context, id RequestID, failed error) (Answer, error) {
	if found, unmet := calls.Unmet(failed, 1); unmet {
		return s.decodeAnswer(found)
	}
	why := calls.WhyCancelled(failed)
	if why != calls.InConflict && why != calls.Throttled {
		return Answer{}, failed
	}
	found, err := s.FindAnswer(ctx, id)
	if err == nil && !found.Exists() && why == calls.Throttled {
		err = failed // the SDK has repeated it already
	}
	return found, err
}
