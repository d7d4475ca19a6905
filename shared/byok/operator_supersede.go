//go:build !lambda

package byok

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

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

// supersedeAttempts bounds how often Supersede starts over because somebody else
// changed one of the two credentials.
const supersedeAttempts = 5

// Pause returns after the duration, or with the context's error, as calls.Wait does.
type Pause func(context.Context, time.Duration) error

// Supersede rotates a key without a gap: in one transaction the new credential
// takes the old one's sort_order, the old one takes the new one's and is disabled. If
// the new one comes first already, both keep theirs. Both must be in the workspace, and
// have the same flags and allow-lists. It reads no key.
//
// It returns ErrNotFound or one of the errors above. After any other error it may
// have been applied. Calling it again is safe: if the old credential is disabled and
// comes after the new one already, nothing is changed, and changed is false.
//
// A query is no snapshot. If it began before the new credential was usable, it may
// still read the old one after the transaction and see neither as usable. Supersede
// therefore looks at the new credential and then waits for ReadTime. A later reading may
// see one of the two rows changed: it sees the new credential as usable, and possibly the
// old one too.
func (m *Manager) Supersede(ctx context.Context, pause Pause, w ids.Workspace, old, successor ids.Credential) (changed bool, err error) {
	if old == successor {
		return false, ErrSameCredential
	}
	for attempt := 1; ; attempt++ {
		credentials, err := m.List(ctx, w)
		if err != nil {
			return false, err
		}
		from, err := find(credentials, old)
		if err != nil {
			return false, err
		}
		to, err := find(credentials, successor)
		if err != nil {
			return false, err
		}
		if err := from.checkSuccessor(to); err != nil {
			return false, err
		}
		if from.Disabled && to.SortOrder < from.SortOrder { // superseded before
			return false, nil
		}
		if err := pause(ctx, ReadTime); err != nil {
			return false, fmt.Errorf("superseding a credential: %w", err)
		}
		err = m.swap(ctx, from, to)
		if err == nil {
			return true, nil
		}
		why := calls.WhyCancelled(err)
		isChanged := why == calls.Refused || why == calls.InConflict // by somebody else
		if !isChanged || attempt == supersedeAttempts || calls.Pause(ctx, attempt) != nil {
			return false, fmt.Errorf("superseding a credential: %w", err)
		}
	}
}

// find returns the credential with the id.
func find(all []Credential, id ids.Credential) (Credential, error) {
	i := slices.IndexFunc(all, func(c Credential) bool { return c.ID == id })
	if i < 0 {
		return Credential{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return all[i], nil
}

// checkSuccessor returns why the other credential cannot supersede this one, or nil.
func (c Credential) checkSuccessor(to Credential) error {
	differing := c.differences(to.Settings)
	switch {
	case c.Provider != to.Provider:
		return ErrOtherProvider
	case to.Disabled:
		return ErrSuccessorDisabled
	case len(differing) > 0:
		return fmt.Errorf("%w: %s", ErrOtherSettings, strings.Join(differing, ", "))
	}
	return nil
}

// differences names the flags and allow-lists in which the settings mean different
// things to a router. The order of a list means nothing; a nil one and an empty one
// mean different things.
func (s Settings) differences(other Settings) []string {
	// A router ignores texts for people, and checkSuccessor has checked Disabled.
	s.Name, s.Disabled = other.Name, other.Disabled
	others := maps.Collect(other.withSets().ByName())
	var names []string
	for name, value := range s.withSets().ByName() {
		if !reflect.DeepEqual(value, others[name]) {
			names = append(names, name)
		}
	}
	return names
}

// withSets returns the settings with each list sorted and without duplicates.
func (s Settings) withSets() Settings {
	s.AllowedAPIKeyHashes = set(s.AllowedAPIKeyHashes)
	s.AllowedModels = set(s.AllowedModels)
	s.AllowedUserIDs = set(s.AllowedUserIDs)
	return s
}

func set[T ~string](list []T) []T {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// swap gives the second credential the lower sort_order of both, and disables the first with
// the higher one. It fails if one has changed since it was read.
func (m *Manager) swap(ctx context.Context, from, to Credential) error {
	_, err := m.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Update: m.update(to, min(from.SortOrder, to.SortOrder), false)},
		{Update: m.update(from, max(from.SortOrder, to.SortOrder), true)},
	}})
	return err
}

func (m *Manager) update(c Credential, sortOrder int64, disabled bool) *types.Update {
	return &types.Update{
		TableName: &m.table, Key: primaryKey(c.Workspace, c.ID),
		UpdateExpression:    aws.String("SET sort_order = :order, disabled = :disabled"),
		ConditionExpression: aws.String("sort_order = :old_order AND disabled = :old_disabled"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":order": calls.Number(sortOrder), ":disabled": calls.Bool(disabled),
			":old_order": calls.Number(c.SortOrder), ":old_disabled": calls.Bool(c.Disabled),
		},
	}
}
