package byok

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
)

// CreateOnce stores the draft together with the memory of its request, both or
// neither. Where another request under the same id was faster, nothing is
// stored and what it left is returned: its answer is the answer. After an error
// the credential may be there; the same request again finds out.
func (s *Store) CreateOnce(ctx context.Context, d Draft, id RequestID, fingerprint, response []byte) (Remembered, error) {
	put, err := s.put(d)
	if err != nil {
		return Remembered{}, err
	}
	for attempt := 1; ; attempt++ {
		remember, err := s.remember(id, fingerprint, response)
		if err != nil {
			return Remembered{}, err
		}
		_, err = s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: put}, {Put: remember}},
		})
		var cancelled *types.TransactionCanceledException
		if err == nil || !errors.As(err, &cancelled) {
			return Remembered{}, wrapStoring(err)
		}
		earlier, again, err := s.lost(ctx, id, cancelled)
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
func (s *Store) remember(id RequestID, fingerprint, response []byte) (*types.Put, error) {
	now := s.now()
	stored, err := attributevalue.MarshalMap(record{
		PK: string(id), Version: itemVersion, Fingerprint: fingerprint,
		Response: string(response), Expires: now.Add(remembered).Unix(),
	})
	if err != nil {
		return nil, errors.New("encoding an idempotency record")
	}
	return &types.Put{
		TableName: &s.control, Item: stored,
		ConditionExpression: aws.String("attribute_not_exists(pk) OR exp <= :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Unix(), 10)},
		},
		// The loser of two at once has the winner's record from the cancellation itself.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}

// lost finds out why the transaction was cancelled: there is an earlier request
// to replay, or it is worth another try.
func (s *Store) lost(ctx context.Context, id RequestID, cancelled *types.TransactionCanceledException) (earlier Remembered, again bool, err error) {
	conflict := false
	for i, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "None", "":
		case "ConditionalCheckFailed":
			if i == 1 { // the record's
				earlier, err = s.remembered(id, reason.Item)
				return earlier, earlier.record == nil, err
			}
			return Remembered{}, false, cancelled
		case "TransactionConflict":
			conflict = true
		default:
			return Remembered{}, false, cancelled
		}
	}
	if !conflict {
		return Remembered{}, false, cancelled
	}
	earlier, err = s.Recall(ctx, id)
	return earlier, earlier.record == nil, err
}
