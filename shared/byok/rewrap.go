package byok

import (
	"bytes"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/seal"
)

// Rewrapped is what came of moving one credential to another KMS key.
type Rewrapped int

const (
	// Moved says that its data key is wrapped under the other key now.
	Moved Rewrapped = iota + 1
	// AlreadyThere says that it was so before.
	AlreadyThere
	// Overtaken says that the credential was deleted or changed meanwhile; where
	// it still is, the next run finds it.
	Overtaken
)

// Rewrap moves one credential to the rewrapper's key, if it is as it was read.
// It returns ErrUnreadable or an error of the rewrapper's where nothing was
// written. After any other error the credential is under the old key or the
// new one, whole either way, and may be moved again.
func (w *Wrappings) Rewrap(ctx context.Context, old Wrapping, rewrapper *seal.Rewrapper) (Rewrapped, error) {
	if old.unreadable {
		return 0, ErrUnreadable
	}
	if old.KeyARN == rewrapper.To() {
		return AlreadyThere, nil
	}
	fresh, err := rewrapper.Rewrap(ctx, old.sealed, old.binding)
	if err != nil {
		return 0, err
	}
	err = w.replace(ctx, old, fresh)
	if _, failed := calls.ConditionFailed(err); failed {
		return w.overtaken(ctx, old, fresh)
	}
	if err != nil {
		return 0, fmt.Errorf("storing a rewrapped key: %w", err)
	}
	return Moved, nil
}

// replace writes the new wrapping over the old one, and over nothing else.
func (w *Wrappings) replace(ctx context.Context, old Wrapping, fresh seal.Sealed) error {
	_, err := w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: old.key,
		UpdateExpression:    aws.String("SET seal.key_arn = :to, seal.wrapped_key = :fresh"),
		ConditionExpression: aws.String("seal.key_arn = :from AND seal.wrapped_key = :old"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":from":  &types.AttributeValueMemberS{Value: old.sealed.KeyARN},
			":old":   &types.AttributeValueMemberB{Value: old.sealed.WrappedKey},
			":to":    &types.AttributeValueMemberS{Value: fresh.KeyARN},
			":fresh": &types.AttributeValueMemberB{Value: fresh.WrappedKey},
		},
	})
	return err
}

// overtaken finds out why the old wrapping was not there any more. An earlier
// attempt of the SDK's may have been applied and its answer lost.
func (w *Wrappings) overtaken(ctx context.Context, old Wrapping, fresh seal.Sealed) (Rewrapped, error) {
	projection, names := wrappingAttributes()
	out, err := w.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &w.table, Key: old.key, ConsistentRead: aws.Bool(true),
		ProjectionExpression: &projection, ExpressionAttributeNames: names,
	})
	if err != nil {
		return 0, fmt.Errorf("looking at a credential that was changed meanwhile: %w", err)
	}
	now := readWrapping(out.Item)
	switch {
	case now.KeyARN != fresh.KeyARN:
		return Overtaken, nil
	case bytes.Equal(now.sealed.WrappedKey, fresh.WrappedKey):
		return Moved, nil
	default:
		return AlreadyThere, nil
	}
}
