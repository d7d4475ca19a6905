//go:build !lambda

package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// surveyPage is how many items one Scan reads at most.
const surveyPage = 500

// Survey is a whole access table, as one scan read it. A restored table may hold
// half of a transaction: DynamoDB restores items, not transactions. A survey may also hold
// half of a change made during the scan.
type Survey struct {
	Accounts   map[ids.Account]Account
	Workspaces map[ids.Workspace]Workspace
	Keys       map[ids.KeyHash]Key
	// Missing are the list entries that a readable row lacks. Stray are list entries for a
	// row that is absent or belongs elsewhere.
	Missing, Stray []ItemKey
	// Unknown are the items that no version of this service writes.
	Unknown []ItemKey
	// Newer is the number of items that a newer version of this service wrote. They count as
	// damaged, too.
	Newer int

	lacking map[string]bool // the PKs of the rows in Missing
}

// HalfDeleted reports whether a list lacks the key: only a part of its deletion or of its
// creation was restored. An act on its account or workspace does not find it.
func (s *Survey) HalfDeleted(hash ids.KeyHash) bool { return s.lacking[keyAt(hash).PK] }

// ItemKey is the primary key of an item, for the operator's command.
type ItemKey = primaryKey

func (k primaryKey) String() string { return k.PK + " " + k.SK }

// ID is the id or hash that a list entry names.
func (k primaryKey) ID() string {
	_, id, _ := strings.Cut(k.SK, "#")
	return id
}

// row is the row that a list entry names.
func (k primaryKey) row() primaryKey {
	if strings.HasPrefix(k.SK, keyPrefix) {
		return primaryKey{k.SK, keySort}
	}
	return primaryKey{k.SK, workspaceSort}
}

// ReadSurvey reads the access table with that name; it has no effect.
func ReadSurvey(ctx context.Context, db dynamodb.ScanAPIClient, table string) (*Survey, error) {
	s := &Survey{
		Accounts: map[ids.Account]Account{}, Workspaces: map[ids.Workspace]Workspace{}, Keys: map[ids.KeyHash]Key{},
		lacking: map[string]bool{},
	}
	entries, wanted := map[primaryKey]bool{}, map[primaryKey]bool{}
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{
		TableName: &table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(surveyPage),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading table %s: %w", table, err)
		}
		for _, item := range page.Items {
			s.add(item, entries, wanted)
		}
	}
	for at := range wanted {
		if !entries[at] {
			s.Missing = append(s.Missing, at)
			s.lacking[at.SK] = true
		}
	}
	for at := range entries {
		if !wanted[at] && !s.isDamaged(at.row().PK) {
			s.Stray = append(s.Stray, at)
		}
	}
	for _, keys := range [][]ItemKey{s.Missing, s.Stray, s.Unknown} {
		slices.SortFunc(keys, func(a, b ItemKey) int { return cmp.Compare(a.String(), b.String()) })
	}
	return s, nil
}

// add takes an item into the survey. List entries go into entries. The list entries
// that a key or workspace should have go into wanted.
func (s *Survey) add(item map[string]types.AttributeValue, entries, wanted map[primaryKey]bool) {
	if calls.IsNewer(item, itemVersion) {
		s.Newer++
	}
	at := primaryKeyOf(item)
	inList := strings.HasPrefix(at.PK, accountPrefix) || strings.HasPrefix(at.PK, workspacePrefix)
	switch {
	case strings.HasPrefix(at.PK, keyPrefix) && at.SK == keySort:
		row, damage := decode[keyItem](item)
		key := row.key(damage)
		s.Keys[key.Hash] = key
		if key.Damage == nil {
			for _, entry := range row.entries() {
				wanted[entry] = true
			}
		}
	case strings.HasPrefix(at.PK, workspacePrefix) && at.SK == workspaceSort:
		row, damage := decode[workspaceItem](item)
		if damage == nil && row.Next == nil {
			damage = at.damage(errNoCounter)
		}
		w := row.workspace(damage)
		s.Workspaces[w.ID] = w
		if damage == nil {
			wanted[workspaceEntry(row.Account, w.ID)] = true
		}
	case strings.HasPrefix(at.PK, accountPrefix) && at.SK == accountSort:
		row, damage := decode[accountItem](item)
		account := row.account(damage)
		s.Accounts[account.ID] = account
	case inList && (strings.HasPrefix(at.SK, keyPrefix) || strings.HasPrefix(at.SK, workspacePrefix)):
		if _, damage := decode[header](item); damage != nil {
			s.Unknown = append(s.Unknown, at)
		}
		entries[at] = true
	default:
		s.Unknown = append(s.Unknown, at)
	}
}

// isDamaged reports whether the row of the key or workspace is there but damaged.
func (s *Survey) isDamaged(pk string) bool {
	return s.Keys[ids.KeyHash(strings.TrimPrefix(pk, keyPrefix))].Damage != nil ||
		s.Workspaces[ids.Workspace(strings.TrimPrefix(pk, workspacePrefix))].Damage != nil
}

// ErrNeedless means that the table does not need the repair, or no longer needs it. Each of
// the repairs below is one conditional write and can be repeated. Its conditions check the
// cause again, because a survey may have seen a part of a change. Without the cause nothing is
// written.
var ErrNeedless = errors.New("the table does not need this repair any more")

// RaiseCounter makes sure that the workspace's next credential of the provider
// gets at least this sort_order. It returns nil also if the counter is high enough, or if
// there is no workspace. If the counter is too low, so is made, which is removed: the next
// create counts the stored credentials instead.
func (r *Registry) RaiseCounter(ctx context.Context, workspace ids.Workspace, provider string, next int64) error {
	raise := r.change(workspaceAt(workspace), "SET #next.#provider = :next REMOVE made, made_bytes",
		"attribute_exists(pk) AND (attribute_not_exists(#next.#provider) OR #next.#provider < :next)", values{":next": calls.Number(next)})
	raise.Update.ExpressionAttributeNames = map[string]string{"#next": "next", "#provider": provider}
	return r.update(ctx, "raising a counter", raise.refusing(nil))
}

// ForgetMade removes made and made_bytes, because a restored number is too low. The next
// create counts the stored credentials instead.
func (r *Registry) ForgetMade(ctx context.Context, workspace ids.Workspace) error {
	forget := r.change(workspaceAt(workspace), "REMOVE made, made_bytes", "attribute_exists(made) OR attribute_exists(made_bytes)", nil)
	return r.update(ctx, "forgetting a number of credentials", forget.refusing(ErrNeedless))
}

// ClearDefault clears the account's default workspace if it is this one and this one is
// not live or not the account's.
func (r *Registry) ClearDefault(ctx context.Context, account ids.Account, workspace ids.Workspace) error {
	return r.repair(ctx, "clearing a default workspace", r.workspaceIsGone(account, workspace), r.clearDefault(account, workspace))
}

// Relist adds a missing list entry. A key is disabled in the same transaction: a key that
// a list lacks may be half deleted.
func (r *Registry) Relist(ctx context.Context, missing ItemKey) error {
	row := missing.row()
	there := r.check(row, "attribute_exists(pk)", nil)
	if row.SK == keySort {
		there = r.disable(row)
	}
	return r.repair(ctx, "adding a list entry", r.addEntry(missing), there)
}

// repair runs the transaction, or returns ErrNeedless if a condition does not hold.
func (r *Registry) repair(ctx context.Context, doing string, writes ...write) error {
	for i := range writes {
		writes[i] = writes[i].refusing(ErrNeedless)
	}
	return r.transact(ctx, doing, writes...)
}

// workspaceIsGone is the opposite of workspaceLives.
func (r *Registry) workspaceIsGone(account ids.Account, id ids.Workspace) write {
	return r.check(workspaceAt(id), "NOT ("+isLive+")", liveFor(account))
}

// disable disables the key of that row, if there is one.
func (r *Registry) disable(at primaryKey) write {
	return r.change(at, "SET disabled = :true", "attribute_exists(pk)", values{":true": calls.Bool(true)})
}
