//go:build !lambda

package byok

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// wrappedKeyPage is how many rows one Scan reads: 100 KB of ordinary rows. A limit
// on pages is therefore a limit on the table's read capacity.
const wrappedKeyPage = 50

type wrappedKeyAPI interface {
	dynamodb.ScanAPIClient
	calls.ItemGetter
	calls.ItemUpdater
}

// WrappedKeys moves the wrapped data keys of all stored credentials to another KMS
// key. It never reads a nonce or ciphertext.
type WrappedKeys struct {
	db    wrappedKeyAPI
	table string
}

// NewWrappedKeys reads the credentials table.
func NewWrappedKeys(db wrappedKeyAPI, table string) *WrappedKeys {
	return &WrappedKeys{db: db, table: table}
}

// WrappedKey is the wrapped data key of one credential.
type WrappedKey struct {
	Workspace ids.Workspace
	ID        ids.Credential
	// KeyARN is the KMS key under which it is wrapped.
	KeyARN string

	row row // without the nonce and the ciphertext
}

// Pages yields all wrapped keys of one of several segments of the table, page by
// page, strongly consistent: every credential that exists during the whole scan is
// among them. It ends after an error.
func (w *WrappedKeys) Pages(ctx context.Context, segment, segments int32) iter.Seq2[[]WrappedKey, error] {
	in := &dynamodb.ScanInput{TableName: &w.table, Limit: aws.Int32(wrappedKeyPage), Segment: &segment, TotalSegments: &segments}
	return func(yield func([]WrappedKey, error) bool) {
		for rows, err := range scan(ctx, w.db, in, wrappedKeyAttributes()...) {
			var keys []WrappedKey
			for _, row := range rows {
				workspace, id := row.ids()
				keys = append(keys, WrappedKey{workspace, id, row.Seal.KeyARN, row})
			}
			if !yield(keys, err) {
				return
			}
		}
	}
}

func wrappedKeyAttributes() []string {
	return []string{"pk", "sk", "v", "id", "account", "workspace", "provider", "seal.format", "seal.key_arn", "seal.wrapped_key"}
}

// RewrapOutcome is the result of moving one credential to another KMS key.
type RewrapOutcome int

const (
	// Moved means that its data key is now wrapped under the other key.
	Moved RewrapOutcome = iota + 1
	// AlreadyThere means that it was wrapped under the other key before.
	AlreadyThere
	// Changed means that somebody else deleted or changed the credential in between.
	// If it still exists, the next run finds it.
	Changed
)

// Rewrap moves one credential to the rewrapper's key, if it is unchanged since it
// was read. If it returns a *calls.Damage or an error of the rewrapper, nothing
// was written. After any other error the credential is under the old key or the
// new one, complete either way, and Rewrap may be repeated.
func (w *WrappedKeys) Rewrap(ctx context.Context, old WrappedKey, rewrapper *seal.Rewrapper) (RewrapOutcome, error) {
	if !old.row.is(sound) {
		return 0, old.row.damage()
	}
	if old.KeyARN == rewrapper.To() {
		return AlreadyThere, nil
	}
	fresh, err := rewrapper.Rewrap(ctx, old.row.Seal, old.row.credential().Binding())
	if err != nil {
		return 0, err
	}
	err = w.replace(ctx, old, fresh)
	if _, failed := calls.ConditionFailed(err); failed {
		return w.whyUnmet(ctx, old, fresh)
	}
	if err != nil {
		return 0, fmt.Errorf("storing a rewrapped key: %w", err)
	}
	return Moved, nil
}

// replace writes the new wrapped key if the old one is still stored.
func (w *WrappedKeys) replace(ctx context.Context, old WrappedKey, fresh seal.Sealed) error {
	_, err := w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: primaryKey(old.Workspace, old.ID),
		UpdateExpression:    aws.String("SET seal.key_arn = :to, seal.wrapped_key = :fresh"),
		ConditionExpression: aws.String("seal.key_arn = :from AND seal.wrapped_key = :old"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":from":  calls.Text(old.KeyARN),
			":old":   &types.AttributeValueMemberB{Value: old.row.Seal.WrappedKey},
			":to":    calls.Text(fresh.KeyARN),
			":fresh": &types.AttributeValueMemberB{Value: fresh.WrappedKey},
		},
	})
	return err
}

// whyUnmet finds out why the wrapped key is not the old one. An earlier attempt of
// the SDK may have been applied and its response lost.
func (w *WrappedKeys) whyUnmet(ctx context.Context, old WrappedKey, fresh seal.Sealed) (RewrapOutcome, error) {
	in := &dynamodb.GetItemInput{TableName: &w.table, Key: primaryKey(old.Workspace, old.ID), ConsistentRead: aws.Bool(true)}
	in.ProjectionExpression, in.ExpressionAttributeNames = project(wrappedKeyAttributes()...)
	out, err := w.db.GetItem(ctx, in)
	if err != nil {
		return 0, fmt.Errorf("reading a credential that was changed meanwhile: %w", err)
	}
	now := decode(out.Item).Seal
	switch {
	case now.KeyARN != fresh.KeyARN:
		return Changed, nil
	case bytes.Equal(now.WrappedKey, fresh.WrappedKey):
		return Moved, nil
	default:
		return AlreadyThere, nil
	}
}
