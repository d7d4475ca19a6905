//go:build !lambda

package byok

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
)

// Why SetAllowedKeys changed nothing.
var (
	// ErrListLength means that the list would be empty or too long. An empty list would allow
	// no key, and no list would allow every key: neither is what replacing a key means.
	ErrListLength = fmt.Errorf("an allow-list of API keys has 1 to %d hashes", maxListed)
	// ErrChanged means that the credential was changed since it was read.
	ErrChanged = errors.New("the credential was changed in between")
)

// SetAllowedKeys replaces the credential's allow-list of API keys, if it is still the one that
// was read. Calling it again is safe. It returns ErrListLength or ErrChanged.
func (m *Manager) SetAllowedKeys(ctx context.Context, c Credential, hashes []string) error {
	if len(hashes) == 0 || len(hashes) > maxListed {
		return ErrListLength
	}
	_, err := m.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &m.table, Key: primaryKey(c.Workspace, c.ID),
		UpdateExpression:          aws.String("SET allowed_api_key_hashes = :new"),
		ConditionExpression:       aws.String("allowed_api_key_hashes IN (:old, :new)"), // :new, if a response was lost
		ExpressionAttributeValues: map[string]types.AttributeValue{":old": texts(c.AllowedAPIKeyHashes), ":new": texts(hashes)},
	})
	if _, failed := calls.ConditionFailed(err); failed {
		return ErrChanged
	}
	if err != nil {
		return fmt.Errorf("changing an allow-list: %w", err)
	}
	return nil
}

func texts(all []string) *types.AttributeValueMemberL {
	list := new(types.AttributeValueMemberL)
	for _, text := range all {
		list.Value = append(list.Value, calls.Text(text))
	}
	return list
}
