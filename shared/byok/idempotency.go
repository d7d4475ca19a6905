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
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

// remembered is how long the answer to an idempotent request is kept: a little
// over the 24 hours that are promised.
const remembered = 25 * time.Hour

// ErrDifferentRequest says that the idempotency key was used for another request.
var ErrDifferentRequest = errors.New("the idempotency key was used for a different request")

// RequestID names one idempotent request: an idempotency key as one API key uses it.
type RequestID string

// NewRequestID names the request that the API key of that hash makes under an
// idempotency key. The idempotency key is stored only as a hash.
func NewRequestID(apiKeyHash, idempotencyKey string) RequestID {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return RequestID("idem#" + apiKeyHash + "#" + hex.EncodeToString(sum[:]))
}

// Fingerprint identifies a request without revealing what is in it: an
// HMAC-SHA256 of what feed writes, under a key that only the holder of the
// bearer token can make. Whoever reads the table cannot try out provider keys
// against it.
func Fingerprint(derived []byte, feed func(hash io.Writer)) []byte {
	mac := hmac.New(sha256.New, derived)
	feed(mac)
	fingerprint := mac.Sum(nil)
	// The hash keeps what did not fill its last block, which may be of the provider
	// key: a block of single bytes overwrites all of it.
	for range sha256.BlockSize {
		_, _ = mac.Write([]byte{0}) // a hash never fails
	}
	return fingerprint
}

// recordVersion is the version of the record's layout, what is fed into its
// fingerprint included.
const recordVersion = 2

// record is what is remembered of a request, in the control table under its id.
// The response is the body of its 201; it holds no secret.
type record struct {
	PK          string         `dynamodbav:"pk"`
	Version     int            `dynamodbav:"v"`
	Fingerprint []byte         `dynamodbav:"fingerprint"`
	Workspace   ids.Workspace  `dynamodbav:"workspace"`
	Credential  ids.Credential `dynamodbav:"credential"`
	Response    string         `dynamodbav:"response"`
	Expires     int64          `dynamodbav:"exp"` // Unix seconds
}

// Remembered is what was found of an earlier request under the same id.
type Remembered struct {
	record *record
}

// Recall looks for an earlier request, strongly consistent.
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

// remembered reads the record of the request. DynamoDB may keep an expired one
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

// Replayed is an earlier answer and the credential that it names.
type Replayed struct {
	Workspace  ids.Workspace
	Credential ids.Credential
	Response   []byte
}

// Replay is the earlier answer to the same request; ok is false where there is
// none, and the error ErrDifferentRequest where the request was another.
func (m Remembered) Replay(fingerprint []byte) (replayed Replayed, ok bool, err error) {
	if m.record == nil {
		return Replayed{}, false, nil
	}
	if !hmac.Equal(m.record.Fingerprint, fingerprint) {
		return Replayed{}, false, ErrDifferentRequest
	}
	return Replayed{Workspace: m.record.Workspace, Credential: m.record.Credential, Response: []byte(m.record.Response)}, true, nil
}
