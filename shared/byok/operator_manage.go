//go:build !lambda

package byok

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

var (
	ErrNotFound = errors.New("no such credential")
	// ErrListLength means that an allow-list of API keys would be empty or too long. An empty
	// list would allow no key, and no list would allow every key.
	ErrListLength = fmt.Errorf("an allow-list of API keys has 1 to %d hashes", maxListed)
	// ErrChanged means that the credential was changed since it was read.
	ErrChanged = errors.New("the credential was changed in between")
)

type managerAPI interface {
	dynamodb.ScanAPIClient
	dynamodb.QueryAPIClient
	calls.ItemUpdater
	calls.Transactor
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
}

// Manager administers stored credentials, for the operator's command. It never
// reads a sealed key.
type Manager struct {
	db    managerAPI
	table string
}

// NewManager administers the credentials table.
func NewManager(db managerAPI, table string) *Manager {
	return &Manager{db: db, table: table}
}

// Disable keeps a credential from being used, or returns ErrNotFound.
func (m *Manager) Disable(ctx context.Context, w ids.Workspace, id ids.Credential) error {
	return m.setDisabled(ctx, w, id, true)
}

// Enable lets a credential be used, or returns ErrNotFound.
func (m *Manager) Enable(ctx context.Context, w ids.Workspace, id ids.Credential) error {
	return m.setDisabled(ctx, w, id, false)
}

func (m *Manager) setDisabled(ctx context.Context, w ids.Workspace, id ids.Credential, disabled bool) error {
	_, err := m.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &m.table, Key: primaryKey(w, id),
		UpdateExpression:          aws.String("SET disabled = :disabled"),
		ConditionExpression:       aws.String("attribute_exists(pk)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":disabled": calls.Bool(disabled)},
	})
	return wrapManaging("changing a credential", err)
}

// SetAllowedKeys replaces the credential's allow-list of API keys, if it is still the one that
// was read. Calling it again is safe. It returns ErrListLength or ErrChanged.
func (m *Manager) SetAllowedKeys(ctx context.Context, c Credential, hashes []ids.KeyHash) error {
	if len(hashes) == 0 || len(hashes) > maxListed {
		return ErrListLength
	}
	_, err := m.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &m.table, Key: primaryKey(c.Workspace, c.ID),
		UpdateExpression:          aws.String("SET allowed_api_key_hashes = :new"),
		ConditionExpression:       aws.String("allowed_api_key_hashes IN (:old, :new)"), // :new, if a response was lost
		ExpressionAttributeValues: calls.Encode(map[string][]ids.KeyHash{":old": c.AllowedAPIKeyHashes, ":new": hashes}),
	})
	if _, failed := calls.ConditionFailed(err); failed {
		return ErrChanged
	}
	return wrapManaging("changing an allow-list", err)
}

// Delete removes a credential with its sealed key, or returns ErrNotFound, also if an
// earlier attempt removed it and its response was lost.
func (m *Manager) Delete(ctx context.Context, w ids.Workspace, id ids.Credential) error {
	_, err := m.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &m.table, Key: primaryKey(w, id),
		ConditionExpression: aws.String("attribute_exists(pk)"),
	})
	return wrapManaging("deleting a credential", err)
}

func primaryKey(w ids.Workspace, id ids.Credential) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": calls.Text(partition(w)), "sk": calls.Text(sortKey(id))}
}

func wrapManaging(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, failed := calls.ConditionFailed(err); failed {
		return ErrNotFound
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// writeBatch is how many items DynamoDB deletes in one BatchWriteItem.
const writeBatch = 25

// Purge removes every credential of the workspace with its sealed key and
// returns how many. The caller has made sure that the workspace is deleted.
// After an error some may be left; Purge again removes them.
func (m *Manager) Purge(ctx context.Context, w ids.Workspace) (removed int, err error) {
	in := queryOf(m.table, w)
	in.ProjectionExpression = aws.String("pk, sk")
	pages := dynamodb.NewQueryPaginator(m.db, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return removed, fmt.Errorf("listing credentials to purge: %w", err)
		}
		for batch := range slices.Chunk(page.Items, writeBatch) {
			if err := m.remove(ctx, batch); err != nil {
				return removed, fmt.Errorf("purging credentials: %w", err)
			}
			removed += len(batch)
		}
	}
	return removed, nil
}

// remove deletes the items under these keys. It asks again for unprocessed items until
// the context ends.
func (m *Manager) remove(ctx context.Context, keys []map[string]types.AttributeValue) error {
	var requests []types.WriteRequest
	for _, key := range keys {
		requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
	}
	for attempt := 1; ; attempt++ {
		out, err := m.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{m.table: requests},
		})
		if err != nil {
			return err
		}
		if requests = out.UnprocessedItems[m.table]; len(requests) == 0 {
			return nil
		}
		if err := calls.Pause(ctx, attempt); err != nil {
			return err
		}
	}
}
