package byok

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Why one credential cannot supersede another. Nothing was changed.
var (
	ErrSameCredential    = errors.New("a credential cannot supersede itself")
	ErrOtherProvider     = errors.New("the credentials are of different providers")
	ErrOtherSettings     = errors.New("the credentials differ in flags or allow-lists")
	ErrSuccessorDisabled = errors.New("the new credential is disabled")
)

// supersedeAttempts bounds how often Supersede starts over because one of the two
// credentials was changed meanwhile.
const supersedeAttempts = 5

// Supersede rotates a key without a gap: in one transaction the new credential
// takes the old one's sort_order, the old one takes the new one's and is disabled.
// Both are of the workspace. It reads no key. Unless anyway is set, the two must
// have the same flags and allow-lists.
//
// It returns ErrNotFound or one of the errors above. After any other error it may
// have been applied; calling it again is safe: where the old credential is
// disabled and comes after the new one already, nothing is changed.
func (m *Manager) Supersede(ctx context.Context, w ids.Workspace, old, successor ids.Credential, anyway bool) error {
	if old == successor {
		return ErrSameCredential
	}
	for attempt := 1; ; attempt++ {
		credentials, err := m.List(ctx, w)
		if err != nil {
			return err
		}
		from, to, err := rotation(credentials, old, successor, anyway)
		if err != nil || from.Disabled && to.SortOrder < from.SortOrder {
			return err
		}
		err = m.swap(ctx, from, to)
		if err == nil {
			return nil
		}
		// Refused by a condition, or in conflict: somebody else changed one of them.
		why := calls.WhyCancelled(err)
		if why != calls.Refused && why != calls.InConflict || attempt == supersedeAttempts || calls.Pause(ctx, attempt) != nil {
			return fmt.Errorf("superseding a credential: %w", err)
		}
	}
}

// rotation finds both credentials and refuses a pair that must not be swapped.
func rotation(all []Credential, old, successor ids.Credential, anyway bool) (from, to Credential, err error) {
	find := func(id ids.Credential) int {
		return slices.IndexFunc(all, func(c Credential) bool { return c.ID == id })
	}
	i, j := find(old), find(successor)
	if i < 0 || j < 0 {
		return from, to, ErrNotFound
	}
	from, to = all[i], all[j]
	switch {
	case from.Provider != to.Provider:
		return from, to, ErrOtherProvider
	case to.Disabled:
		return from, to, ErrSuccessorDisabled
	case !anyway && !from.sameUse(to.Settings):
		return from, to, ErrOtherSettings
	}
	return from, to, nil
}

// sameUse reports whether both settings mean the same to a router. Lists that are
// nil and lists that are empty mean different things.
func (s Settings) sameUse(other Settings) bool {
	same := func(a, b []string) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }
	return s.BYOKOnly == other.BYOKOnly && s.Fallback == other.Fallback && s.Required == other.Required &&
		same(s.AllowedAPIKeyHashes, other.AllowedAPIKeyHashes) && same(s.AllowedModels, other.AllowedModels) &&
		same(s.AllowedUserIDs, other.AllowedUserIDs)
}

// swap exchanges the places of both, as they were read, and disables the first.
func (m *Manager) swap(ctx context.Context, from, to Credential) error {
	update := func(c Credential, place int64, set string, disabled bool) types.TransactWriteItem {
		number := func(n int64) types.AttributeValue {
			return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
		}
		return types.TransactWriteItem{Update: &types.Update{
			TableName: &m.table, Key: keyOf(c.Workspace, c.ID),
			UpdateExpression:    aws.String("SET sort_order = :place" + set),
			ConditionExpression: aws.String("sort_order = :was AND disabled = :disabled"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":place": number(place), ":was": number(c.SortOrder),
				":disabled": &types.AttributeValueMemberBOOL{Value: disabled},
			},
		}}
	}
	disable := update(from, to.SortOrder, ", disabled = :true", from.Disabled)
	disable.Update.ExpressionAttributeValues[":true"] = &types.AttributeValueMemberBOOL{Value: true}
	_, err := m.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		update(to, from.SortOrder, "", false), disable,
	}})
	return err
}
