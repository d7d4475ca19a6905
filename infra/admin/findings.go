package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// The values of finding.By: who settles the finding.
const (
	byRepair   = "repair"
	byOperator = "operator"
	byNone     = "none" // no inconsistency, but worth knowing
)

// finding is something that the tables should not hold, or that they have lost.
type finding struct {
	Kind    string          `json:"kind" list:"kind"` // key, workspace, list, account, counter, credential or item
	ID      string          `json:"id" list:"id,short"`
	Account output.Optional `json:"account_id" list:"account,short"`
	Problem string          `json:"problem" list:"problem,short,46"`
	By      string          `json:"by" list:"by"`
	Remedy  output.Optional `json:"remedy" list:"remedy"`      // an action of the repair, by its name in audit lines, or advice
	Outcome output.Optional `json:"outcome" list:"outcome,30"` // of the repair, after it was tried

	Repair repair `json:"-"`
	// lacking means that the table before the restore lacks it.
	lacking bool
}

// repair is one conditional write.
type repair func(context.Context, *auth.Registry) error

// countFindings counts findings by one of their texts.
func countFindings(found []finding, by func(finding) string) map[string]int {
	counts := map[string]int{}
	for _, f := range found {
		counts[by(f)]++
	}
	return counts
}

// inspection compares the live tables with each other. After a restore it also compares them
// with the access table before the restore.
type inspection struct {
	stored

	live      *auth.Survey
	before    *auth.Survey // empty if there is no such table
	hasBefore bool
	restoring bool
	found     []finding
}

// check lists the inconsistencies of the live tables.
func check(live *auth.Survey, credentials stored) []finding {
	return (&inspection{live: live, stored: credentials, before: &auth.Survey{}}).inspect()
}

// compare lists what a repair does after a restore, in this order, and what it leaves. before
// is nil if there is no table before the restore.
func compare(live *auth.Survey, credentials stored, before *auth.Survey) []finding {
	return (&inspection{live: live, stored: credentials, before: cmp.Or(before, &auth.Survey{}), hasBefore: before != nil, restoring: true}).inspect()
}

func (i *inspection) inspect() []finding {
	i.keys()
	i.workspaces()
	i.lists()
	i.accounts()
	i.counters()
	i.credentials()
	if i.restoring {
		i.differences()
	}
	return i.found
}

// note adds a finding that nobody needs to settle.
func (i *inspection) note(kind, id string, account ids.Account, problem string) *finding {
	i.found = append(i.found, finding{Kind: kind, ID: id, Account: output.Optional(account), Problem: problem, By: byNone})
	return &i.found[len(i.found)-1]
}

// leave adds a finding that the operator must settle.
func (i *inspection) leave(kind, id string, account ids.Account, problem, advice string) {
	f := i.note(kind, id, account, problem)
	f.By, f.Remedy = byOperator, output.Optional(advice)
}

// settle adds a finding that the repair settles by an action.
func (i *inspection) settle(kind, id string, account ids.Account, problem, action string, repair repair) {
	f := i.note(kind, id, account, problem)
	f.By, f.Remedy, f.Repair = byRepair, output.Optional(action), repair
}

// keys disables every enabled key that one of the tables does not show enabled and unchanged.
func (i *inspection) keys() {
	for hash, key := range sorted(i.live.Keys) {
		if key.Fault != nil {
			i.leave("key", string(hash), "", "unreadable: "+key.Fault.Error(), "every request with it is refused: look at its row")
			continue
		}
		why := unusable(i.live, key)
		if why == "" && i.restoring {
			why = i.changed(key)
		}
		if why != "" && !key.Disabled {
			i.settle("key", string(hash), key.Account, "enabled, but "+why, "key.disable",
				func(ctx context.Context, r *auth.Registry) error { return r.DisableKey(ctx, key.Account, hash) })
		}
	}
}

// unusable returns the reason why the other rows of a table do not support the key, or "".
func unusable(table *auth.Survey, key auth.SurveyedKey) string {
	account, owned := table.Accounts[key.Account]
	w, exists := table.Workspaces[key.Workspace]
	switch {
	case !owned:
		return "its account does not exist"
	case account.Fault != nil:
		return "its account cannot be read"
	case key.Workspace == "":
	case w.Fault != nil:
		return "its workspace cannot be read"
	case !exists || w.Account != key.Account:
		return "its account does not have the workspace that it is bound to"
	case !w.DeletedAt.IsZero():
		return "bound to a deleted workspace"
	}
	if table.HalfDeleted(key.Hash) {
		return "half deleted: a list lacks it"
	}
	return ""
}

// changed returns how the table before the restore differs about a key, or "".
func (i *inspection) changed(key auth.SurveyedKey) string {
	was, existed := i.before.Keys[key.Hash]
	switch {
	case !i.hasBefore:
		return "there is no table before the restore"
	case !existed:
		return "not in the table before"
	case was.Fault != nil:
		return "unreadable in the table before"
	case was.Disabled:
		return "disabled in the table before"
	case was.Account != key.Account || was.Kind != key.Kind || was.Workspace != key.Workspace || !was.ExpiresAt.Equal(key.ExpiresAt):
		return "of another account, kind, workspace or expiry in the table before"
	}
	if why := unusable(i.before, was); why != "" {
		return "in the table before: " + why
	}
	return ""
}

// deletedBefore reports whether the table before shows the workspace deleted.
func (i *inspection) deletedBefore(id ids.Workspace) bool {
	was := i.before.Workspaces[id]
	return was.Fault == nil && !was.DeletedAt.IsZero()
}

func (i *inspection) workspaces() {
	for id, w := range sorted(i.live.Workspaces) {
		switch _, owned := i.live.Accounts[w.Account]; {
		case w.Fault != nil:
			i.leave("workspace", string(id), "", "unreadable: "+w.Fault.Error(), "look at its row")
		case !owned:
			i.leave("workspace", string(id), w.Account, "its account does not exist", "look for the account in a backup")
		case w.DeletedAt.IsZero() && i.deletedBefore(id):
			i.settle("workspace", string(id), w.Account, "live, but deleted in the table before", "workspace.delete",
				func(ctx context.Context, r *auth.Registry) error { return r.DeleteWorkspace(ctx, w.Account, id) })
		}
	}
}

func (i *inspection) lists() {
	for _, place := range i.live.Missing {
		i.settle("list", place.ID(), "", "not in the list of "+place.PK, "list.add",
			func(ctx context.Context, r *auth.Registry) error { return r.Relist(ctx, place) })
	}
	for _, place := range i.live.Stray {
		i.settle("list", place.ID(), "", "without a row, in the list of "+place.PK, "list.remove",
			func(ctx context.Context, r *auth.Registry) error { return r.Unlist(ctx, place) })
	}
	for _, place := range i.live.Unknown {
		i.leave("item", place.String(), "", "not an item of the access table", "look at it")
	}
}

func (i *inspection) accounts() {
	for id, account := range sorted(i.live.Accounts) {
		w, exists := i.live.Workspaces[account.Default]
		switch {
		case account.Fault != nil:
			i.leave("account", string(id), id, "unreadable: "+account.Fault.Error(), "look at its row")
		case account.Default == "" || w.Fault != nil:
		case !exists || w.Account != id || !w.DeletedAt.IsZero():
			i.settle("account", string(id), id, "its default workspace is deleted or not its own", "workspace.default.clear",
				func(ctx context.Context, r *auth.Registry) error { return r.ClearDefault(ctx, id, account.Default) })
		}
	}
}

// counters raises the next sort_order above everything that was given out. After a restore it
// also removes the number of credentials made: the next create then counts.
func (i *inspection) counters() {
	given := map[ids.Workspace]map[string]int64{} // one more than the highest sort_order that a credential got
	note := func(w ids.Workspace, provider string, next int64) {
		if given[w] == nil {
			given[w] = map[string]int64{}
		}
		given[w][provider] = max(given[w][provider], next)
	}
	for _, p := range i.placements {
		if !p.Unreadable {
			note(p.Workspace, p.Provider, p.SortOrder+1)
		}
	}
	for id, w := range i.before.Workspaces {
		if w.Fault == nil {
			for provider, next := range w.Next {
				note(id, provider, next)
			}
		}
	}
	for id, w := range sorted(i.live.Workspaces) {
		if w.Fault != nil || !w.DeletedAt.IsZero() || i.deletedBefore(id) {
			continue
		}
		raised := false // that also removes the number of credentials made
		for provider, next := range sorted(given[id]) {
			if is := w.Next[provider]; is < next {
				raised = true
				i.settle("counter", string(id), w.Account, fmt.Sprintf("the next sort_order of %s is %d, but %d was given out", provider, is, next-1), "counter.raise",
					func(ctx context.Context, r *auth.Registry) error { return r.RaiseCounter(ctx, id, provider, next) })
			}
		}
		if i.restoring && w.Counts && !raised {
			i.settle("counter", string(id), w.Account, "its number of credentials is the restored one", "counter.forget",
				func(ctx context.Context, r *auth.Registry) error { return r.ForgetMade(ctx, id) })
		}
	}
}

// credentials looks for credentials that cannot be reached and for credentials with the
// same place.
func (i *inspection) credentials() {
	inside := map[ids.Workspace]int{}
	type place struct {
		workspace ids.Workspace
		provider  string
		sortOrder int64
	}
	places := map[place]ids.Credential{}
	for _, p := range i.placements {
		inside[p.Workspace]++
		w := i.live.Workspaces[p.Workspace]
		if p.Unreadable || w.Account != "" && w.Account != p.Account {
			i.leave("credential", string(p.ID), p.Account, "unreadable or incomplete, or of another account than workspace "+string(p.Workspace)+": routers refuse that workspace", "look at its row, or delete it")
			continue
		}
		at := place{p.Workspace, p.Provider, p.SortOrder}
		if twin, taken := places[at]; taken {
			i.leave("credential", string(p.ID), p.Account, fmt.Sprintf("has the same sort_order of %s, %d, as %s", p.Provider, p.SortOrder, twin),
				"delete one of them and create it again")
		}
		places[at] = p.ID
		unknown := slices.DeleteFunc(slices.Clone(p.AllowedAPIKeyHashes), func(hash string) bool {
			return i.live.Keys[auth.KeyHash(hash)].Account == p.Account
		})
		if len(unknown) > 0 {
			i.note("credential", string(p.ID), p.Account, fmt.Sprintf("its allow-list has %s that the account does not have, %.8s among them",
				output.Count(len(unknown), "API key"), unknown[0]))
		}
	}
	for id, credentials := range sorted(inside) {
		switch w, exists := i.live.Workspaces[id]; {
		case !exists:
			i.leave("workspace", string(id), i.before.Workspaces[id].Account, output.Count(credentials, "credential")+" of a workspace that does not exist",
				"create them again in another workspace")
		case !w.DeletedAt.IsZero():
			i.note("workspace", string(id), w.Account, output.Count(credentials, "credential")+" of a deleted workspace: admin workspace purge")
		case i.tooMany[id]:
			i.leave("workspace", string(id), w.Account, "routers refuse it: "+byok.ErrTooMany.Error(), "delete some of its credentials")
		}
	}
}

// lack notes an account or workspace that the table before lacks. No command removes one, so
// that table is not from the moment just before the restore, or is damaged.
func (i *inspection) lack(kind, id string, account ids.Account) {
	i.note(kind, id, account, "not in the table before")
	i.found[len(i.found)-1].lacking = true
}

// lacking returns the accounts and workspaces that the table before lacks.
func lacking(found []finding) []finding {
	return slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return !f.lacking })
}

// differences reports the rows that only one of the two tables has, and the unreadable rows
// of the table before.
func (i *inspection) differences() {
	compare := func(kind, id string, account ids.Account, fault error, exists, revoked bool) {
		switch {
		case fault != nil:
			i.leave(kind, id, account, "unreadable in the table before: "+fault.Error(), "it counts as revoked: look at its row there")
		case !exists && !revoked:
			i.note(kind, id, account, "only in the table before: create it again if it is still wanted")
		}
	}
	for id, was := range sorted(i.before.Accounts) {
		_, exists := i.live.Accounts[id]
		compare("account", string(id), id, was.Fault, exists, false)
	}
	for id, was := range sorted(i.before.Workspaces) {
		_, exists := i.live.Workspaces[id]
		compare("workspace", string(id), was.Account, was.Fault, exists, !was.DeletedAt.IsZero())
	}
	for hash, was := range sorted(i.before.Keys) {
		_, exists := i.live.Keys[hash]
		compare("key", string(hash), was.Account, was.Fault, exists, was.Disabled)
	}
	if !i.hasBefore {
		return
	}
	for id := range sorted(i.live.Accounts) {
		if _, existed := i.before.Accounts[id]; !existed {
			i.lack("account", string(id), id)
		}
	}
	for id, w := range sorted(i.live.Workspaces) {
		if _, existed := i.before.Workspaces[id]; !existed {
			i.lack("workspace", string(id), w.Account)
		}
	}
}

// sorted yields a map by its keys.
func sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
