package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

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
	Kind    string          `json:"kind" title:"kind"` // key, workspace, list, account, counter, credential or item
	ID      string          `json:"id" title:"id"`
	Account output.Optional `json:"account_id" title:"account"`
	Problem string          `json:"problem" title:"problem"`
	By      string          `json:"by" title:"by"`
	Remedy  string          `json:"remedy" title:"remedy"`
	Outcome output.Optional `json:"outcome" title:"outcome"` // of the repair, after it was tried

	Action string `json:"-"` // the name of the repair in audit lines
	Repair repair `json:"-"`
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

// clockMargin is how far another machine's clock may be wrong. A row counts as newer than
// the restore only if its time is more than clockMargin after the restore.
const clockMargin = time.Hour

// accessRestore describes a restore of the access table.
type accessRestore struct {
	Since time.Time // the moment to which the table was restored
	// Old is the table just before the restore. It is nil if there is none.
	Old    *auth.Survey
	latest time.Time // no restored row is later than this, unless a clock was wrong
	now    time.Time
}

// newAccessRestore returns a restore to the moment since. created is when its table was made.
func newAccessRestore(since, created, now time.Time, old *auth.Survey) accessRestore {
	r := accessRestore{Since: since, Old: old, now: now}
	r.latest = slices.MaxFunc([]time.Time{since, created, r.before().Newest()}, time.Time.Compare)
	return r
}

// isNew reports whether a row with this time is certainly newer than the restore. The time
// comes from another machine's clock, which may be wrong.
func (r accessRestore) isNew(made time.Time) bool {
	return made.After(r.latest.Add(clockMargin)) && !made.After(r.now)
}

func (r accessRestore) before() *auth.Survey { return cmp.Or(r.Old, &auth.Survey{}) }

// inspection compares the live tables with each other and, after a restore, with
// the access table before the restore.
type inspection struct {
	accessRestore
	stored

	live  *auth.Survey
	old   *auth.Survey // empty if there is no old table
	found []finding
}

// inspect lists all findings in the order of their repairs.
func inspect(live *auth.Survey, credentials stored, r accessRestore) []finding {
	i := &inspection{accessRestore: r, live: live, stored: credentials, old: r.before()}
	i.keys()
	i.workspaces()
	i.lists()
	i.accounts()
	i.counters()
	i.credentials()
	if i.Old != nil {
		i.lost()
	}
	return i.found
}

// report adds a finding that the operator must settle. Its caller may change that.
func (i *inspection) report(kind, id string, account ids.Account, problem, remedy string) *finding {
	i.found = append(i.found, finding{Kind: kind, ID: id, Account: output.Optional(account), Problem: problem, By: byOperator, Remedy: remedy})
	return &i.found[len(i.found)-1]
}

// repairedBy lets a repair settle the finding.
func (f *finding) repairedBy(action string, repair repair) {
	f.By, f.Action, f.Repair = byRepair, action, repair
}

func (i *inspection) keys() {
	for hash, key := range sorted(i.live.Keys) {
		if key.Fault != nil {
			i.report("key", string(hash), "", "unreadable: "+key.Fault.Error(), "every request with it is refused: look at its row, or leave it")
			continue
		}
		problem, disable := i.unowned(key)
		if problem == "" && i.Old != nil {
			problem, disable = i.revoked(key), func(ctx context.Context, r *auth.Registry) error { return r.DisableKey(ctx, key.Account, hash) }
		}
		if problem != "" && !key.Disabled {
			i.report("key", string(hash), key.Account, "enabled, but "+problem, "disable it").repairedBy("key.disable", disable)
			continue
		}
		if _, existed := i.old.Keys[hash]; i.Old != nil && !existed && !key.Disabled {
			i.report("key", string(hash), key.Account, "made after the restore, at "+string(output.When(key.CreatedAt)), "it stays enabled").By = byNone
		}
	}
}

// unowned returns the reason why the key cannot be used any more, with its repair. The
// reason is "" if the key can be used.
func (i *inspection) unowned(key auth.SurveyedKey) (problem string, repair repair) {
	orphan := func(ctx context.Context, r *auth.Registry) error { return r.DisableOrphan(ctx, key) }
	stranded := func(ctx context.Context, r *auth.Registry) error { return r.DisableStranded(ctx, key) }
	bound, exists := i.live.Workspaces[key.Workspace]
	switch _, owned := i.live.Accounts[key.Account]; {
	case !owned:
		return "its account does not exist", orphan
	case key.Workspace == "" || bound.Fault != nil:
		return "", nil
	case !exists || bound.Account != key.Account:
		return "its account does not have the workspace that it is bound to", stranded
	case !bound.DeletedAt.IsZero():
		return "bound to a deleted workspace", stranded
	}
	return "", nil
}

// revoked returns the sign in the old table that the key may have been revoked, or "".
func (i *inspection) revoked(key auth.SurveyedKey) string {
	switch was, ok := i.old.Keys[key.Hash]; {
	case !ok && i.isNew(key.CreatedAt):
		return ""
	case !ok:
		return "not in the old table: deleted since, or not shown to be newer than the restore"
	case was.Fault != nil:
		return "unreadable in the old table"
	case was.Disabled:
		return "disabled in the old table"
	case i.old.HalfDeleted(key.Hash):
		return "half deleted in the old table: a list lacks it"
	}
	return ""
}

func (i *inspection) workspaces() {
	for id, w := range sorted(i.live.Workspaces) {
		was := i.old.Workspaces[id]
		switch _, owned := i.live.Accounts[w.Account]; {
		case w.Fault != nil:
			i.report("workspace", string(id), "", "unreadable: "+w.Fault.Error(), "look at its row")
		case !owned:
			i.report("workspace", string(id), w.Account, "its account does not exist", "it cannot be reached: look for the account in a backup")
		case !was.DeletedAt.IsZero() && w.DeletedAt.IsZero():
			i.report("workspace", string(id), w.Account, "live, but deleted in the old table", "delete it and disable its keys").repairedBy("workspace.delete",
				func(ctx context.Context, r *auth.Registry) error { return r.DeleteWorkspace(ctx, w.Account, id) })
		}
	}
}

func (i *inspection) lists() {
	for _, place := range i.live.Missing {
		remedy := "add it"
		if place.IsKey() {
			remedy = "add it and disable the key, which may be half deleted"
		}
		i.report("list", place.String(), "", "the row is there, its list entry is not", remedy).repairedBy("list.add",
			func(ctx context.Context, r *auth.Registry) error { return r.Relist(ctx, place) })
	}
	for _, place := range i.live.Stray {
		i.report("list", place.String(), "", "a list entry without its row", "remove it").repairedBy("list.remove",
			func(ctx context.Context, r *auth.Registry) error { return r.Unlist(ctx, place) })
	}
	for _, place := range i.live.Unknown {
		i.report("item", place.String(), "", "not an item of the access table", "look at it")
	}
}

func (i *inspection) accounts() {
	for id, account := range sorted(i.live.Accounts) {
		w, exists := i.live.Workspaces[account.Default]
		switch {
		case account.Fault != nil:
			i.report("account", string(id), id, "unreadable: "+account.Fault.Error(), "look at its row")
		case account.Default == "" || w.Fault != nil:
		case !exists || w.Account != id || !w.DeletedAt.IsZero():
			i.report("account", string(id), id, "its default workspace is deleted or not its own", "clear the default").repairedBy("workspace.default.clear",
				func(ctx context.Context, r *auth.Registry) error { return r.ClearDefault(ctx, id, account.Default) })
		}
	}
}

// counters compares the counters with the credentials and with the old counters. If a
// restore brings deleted credentials back, the counter does not include their room.
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
	for id, w := range i.old.Workspaces {
		if w.Fault == nil {
			for provider, next := range w.Next {
				note(id, provider, next)
			}
		}
	}
	for id, w := range sorted(i.live.Workspaces) {
		for provider, next := range sorted(given[id]) {
			if is := w.Next[provider]; w.Fault == nil && is < next {
				i.report("counter", string(id), w.Account, fmt.Sprintf("the next sort_order of %s is %d, but %d was given out", provider, is, next-1),
					fmt.Sprintf("raise it to %d", next)).repairedBy("counter.raise",
					func(ctx context.Context, r *auth.Registry) error { return r.RaiseCounter(ctx, id, provider, next) })
			}
		}
	}
}

// credentials looks for credentials that cannot be reached and for credentials with the
// same place.
func (i *inspection) credentials() {
	inside := map[ids.Workspace]int{}
	places := map[byok.Placement]ids.Credential{}
	for _, p := range i.placements {
		inside[p.Workspace]++
		w := i.live.Workspaces[p.Workspace]
		if p.Unreadable || w.Account != "" && w.Account != p.Account {
			i.report("credential", string(p.ID), p.Account, "unreadable, or of another account than workspace "+string(p.Workspace), "look at its row")
			continue
		}
		place := byok.Placement{Workspace: p.Workspace, Provider: p.Provider, SortOrder: p.SortOrder}
		if twin, taken := places[place]; taken {
			i.report("credential", string(p.ID), p.Account, fmt.Sprintf("has the same sort_order of %s, %d, as %s", p.Provider, p.SortOrder, twin),
				"delete one of them and create it again")
		}
		places[place] = p.ID
	}
	for id, credentials := range sorted(inside) {
		switch w, exists := i.live.Workspaces[id]; {
		case !exists:
			i.report("workspace", string(id), i.old.Workspaces[id].Account, output.Count(credentials, "credential")+" of a workspace that does not exist",
				"they cannot be reached: create them again in another")
		case !w.DeletedAt.IsZero():
			i.report("workspace", string(id), w.Account, output.Count(credentials, "credential")+" of a deleted workspace", "admin workspace purge").By = byNone
		case i.tooMany[id]:
			i.report("workspace", string(id), w.Account, "routers refuse it: "+byok.ErrTooMany.Error(), "delete some of its credentials")
		}
	}
}

// notBefore is the problem of an account or workspace that the old table lacks.
const notBefore = "not in the old table"

// lacking returns the rows that the old table lacks although no command removes them. Such
// a table is older than the restore, or damaged. A key that it lacks was perhaps never
// deleted.
func lacking(found []finding) []finding {
	return slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.Problem != notBefore })
}

// lost reports the rows that only one of the two tables has, and the old table's unreadable
// rows. It does not report revoked keys.
func (i *inspection) lost() {
	const damaged = "no command removes it: the old table is older than the restore, or has lost rows, perhaps of keys too"
	const unread = "it may have been changed since: look at its row there"
	for id, was := range sorted(i.old.Accounts) {
		live, exists := i.live.Accounts[id]
		switch {
		case was.Fault != nil:
			i.report("account", string(id), id, "unreadable in the old table: "+was.Fault.Error(), unread)
		case !exists:
			i.onlyOld("account", string(id), id, was.CreatedAt)
		case was.Default != "" && was.Default != live.Default && i.live.Workspaces[was.Default].DeletedAt.IsZero():
			i.report("account", string(id), id, "its default workspace was "+string(was.Default), "if that is still wanted: admin workspace default")
		}
	}
	for id, was := range sorted(i.old.Workspaces) {
		_, exists := i.live.Workspaces[id]
		switch {
		case was.Fault != nil:
			i.report("workspace", string(id), "", "unreadable in the old table: "+was.Fault.Error(), "if it was deleted: admin workspace delete. Its counters there are not known")
		case !exists && was.DeletedAt.IsZero():
			i.onlyOld("workspace", string(id), was.Account, was.CreatedAt)
		}
	}
	for hash, was := range sorted(i.old.Keys) {
		_, exists := i.live.Keys[hash]
		switch {
		case was.Fault != nil:
			i.report("key", string(hash), "", "unreadable in the old table: "+was.Fault.Error(), unread)
		case !exists && !was.Disabled:
			i.onlyOld("key", string(hash), was.Account, was.CreatedAt)
		}
	}
	for _, place := range i.old.Unknown {
		i.report("item", place.String(), "", "not an item of an access table, in the old table", "look at it there")
	}
	for id, account := range sorted(i.live.Accounts) {
		if _, existed := i.old.Accounts[id]; !existed && account.Fault == nil && !i.isNew(account.CreatedAt) {
			i.report("account", string(id), id, notBefore, damaged)
		}
	}
	for id, w := range sorted(i.live.Workspaces) {
		if _, existed := i.old.Workspaces[id]; !existed && w.Fault == nil && !i.isNew(w.CreatedAt) {
			i.report("workspace", string(id), w.Account, notBefore, damaged)
		}
	}
}

// onlyOld reports a row that the restore has lost.
func (i *inspection) onlyOld(kind, id string, account ids.Account, created time.Time) {
	problem := "only in the old table: made at " + string(output.When(created))
	if created.Before(i.Since.Add(-clockMargin)) {
		problem += ", before --since: check that --since is the moment restored to"
	}
	i.report(kind, id, account, problem, "create it again if it is still wanted")
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
