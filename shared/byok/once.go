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
		remember, err := s.remember(d, id, fingerprint, response)
		if err != nil {
			return Remembered{}, err
		}
		_, err = s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: put}, {Put: remember}},
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
func (s *Store) remember(d Draft, id RequestID, fingerprint, response []byte) (*types.Put, error) {
	now := s.now()
	stored, err := attributevalue.MarshalMap(record{
		PK: string(id), Version: recordVersion, Fingerprint: fingerprint,
		Workspace: d.Workspace, Credential: d.ID, Response: string(response),
		Expires: now.Add(remembered).Unix(),
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

// lost finds out why the transaction failed: an earlier request was faster, or
// it is worth another try; else the error stays. Of several reasons the record's
// condition decides: it says that there is an answer.
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
// second item, did not hold, and what stood there.
func recordUnmet(err error) (found map[string]types.AttributeValue, ok bool) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(cancelled.CancellationReasons) < 2 {
		return nil, false
	}
	reason := cancelled.CancellationReasons[1]
	return reason.Item, aws.ToString(reason.Code) == "ConditionalCheckFailed"
}
