package acts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// The values of Finding.By: who mends the finding.
const (
	ByRepair   = "repair"
	ByOperator = "operator"
	ByNone     = "none" // no inconsistency, but worth knowing
)

// NotBefore is the problem of an account or a workspace that the table before the restore lacks.
const NotBefore = "not in the table before"

// Finding is something that the tables should not hold, or that they have lost.
type Finding struct {
	Kind, ID string // key, workspace, list, account, counter, credential or item
	Account  ids.Account
	Problem  string
	By       string
	Remedy   string // the name of a repair, or advice
	Outcome  string // of the repair, after it was tried

	repair repair // of ByRepair
}

// repair is one conditional write or transaction. The deletion of a workspace is several.
type repair func(context.Context, *auth.Registry) error

// Tables are the access table, and the places of the stored credentials.
type Tables struct {
	Access     *auth.Survey
	Placements []byok.Surveyed
}

// CountBy counts the findings by who mends them.
func CountBy(found []Finding) map[string]int {
	counts := map[string]int{}
	for _, f := range found {
		counts[f.By]++
	}
	return counts
}

// Inspect lists the inconsistencies of the live tables. refused are the workspaces that routers
// refuse because their credentials take too much.
func Inspect(live Tables, now time.Time, refused []ids.Workspace) []Finding {
	return (&inspection{Tables: live, before: &auth.Survey{}, now: now, refused: refused}).inspect()
}

// InspectRestored also compares the live tables with the access table before a restore. Without
// one, before is nil.
func InspectRestored(live Tables, before *auth.Survey, now time.Time) []Finding {
	i := &inspection{Tables: live, before: before, hasBefore: before != nil, restoring: true, now: now}
	if before == nil {
		i.before = &auth.Survey{}
	}
	return i.inspect()
}

// inspection compares the live tables with each other. After a restore it also compares them
// with the access table before the restore.
type inspection struct {
	Tables

	before    *auth.Survey // empty if there is no such table
	hasBefore bool
	restoring bool
	now       time.Time
	refused   []ids.Workspace // routers refuse them, because their credentials take too much
	found     []Finding
}

// inspect lists the inconsistencies. After a restore these are the repairs, in this order, and
// the findings that a repair leaves.
func (i *inspection) inspect() []Finding {
	i.inspectKeys()
	i.inspectWorkspaces()
	i.inspectLists()
	i.inspectAccounts()
	i.inspectCounters()
	i.inspectCredentials()
	if i.restoring {
		i.compareTables()
	}
	return i.found
}

// note adds a finding that nobody needs to mend.
func (i *inspection) note(kind, id string, account ids.Account, problem string) {
	i.found = append(i.found, Finding{Kind: kind, ID: id, Account: account, Problem: problem, By: ByNone})
}

// leave adds a finding that the operator must mend.
func (i *inspection) leave(kind, id string, account ids.Account, problem, advice string) {
	i.found = append(i.found, Finding{Kind: kind, ID: id, Account: account, Problem: problem, By: ByOperator, Remedy: advice})
}

// plan adds a finding that a repair mends. Audit lines name the remedy.
func (i *inspection) plan(kind, id string, account ids.Account, problem, remedy string, run repair) {
	i.found = append(i.found, Finding{Kind: kind, ID: id, Account: account, Problem: problem, By: ByRepair, Remedy: remedy, repair: run})
}

// damaged is the problem of a damaged row. The finding names the row itself.
func damaged(damage error) string { return "damaged: " + errors.Unwrap(damage).Error() }

// inspectKeys plans to disable every enabled key that one of the tables does not show enabled
// and unchanged, and after a restore to suspend the keys of suspended accounts. Damaged keys are
// among them, although they are refused: somebody may put their rows right. A check leaves a key
// that a list lacks to the operator.
func (i *inspection) inspectKeys() {
	for hash, key := range Sorted(i.Access.Keys) {
		if key.Damage != nil {
			i.leave("key", string(hash), "", damaged(key.Damage), "every request with it is refused: look at its row")
		}
		why := unusable(i.Access, key)
		if why == "" && i.restoring {
			why = i.changed(key)
		}
		unlisted := !i.restoring && i.Access.HalfDeleted(hash)
		switch {
		case why == "" || key.Disabled:
		case unlisted:
			i.leave("key", string(hash), key.Account, "enabled, but "+why, "check again: a key that was just made may be named. Then admin key disable "+string(hash))
		default:
			i.plan("key", string(hash), key.Account, "enabled, but "+why, "key.disable",
				func(ctx context.Context, r *auth.Registry) error { return r.DisableKey(ctx, key.Account, hash) })
		}
		account, exists := i.Access.Accounts[key.Account]
		const repeat = "repeat admin account disable, or enable"
		switch {
		case unlisted:
		case !i.restoring && !key.Suspended && account.Suspended:
			i.leave("key", string(hash), key.Account, "not suspended, but its account is", repeat)
		case !i.restoring && key.Suspended && exists && account.Damage == nil && !account.Suspended:
			i.leave("key", string(hash), key.Account, "suspended, but its account is not", repeat)
		case !key.Suspended && (i.before.Keys[hash].Suspended || account.Suspended || i.before.Accounts[key.Account].Suspended):
			i.plan("key", string(hash), key.Account, "not suspended, but its account is", "key.suspend",
				func(ctx context.Context, r *auth.Registry) error { return r.SuspendKey(ctx, key.Account, hash, true) })
		}
	}
}

// unusable returns the reason why the other rows of a table do not support the key, or "".
func unusable(table *auth.Survey, key auth.Key) string {
	account, owned := table.Accounts[key.Account]
	w, exists := table.Workspaces[key.Workspace]
	switch {
	case !owned:
		return "its account does not exist"
	case account.Damage != nil:
		return "its account is damaged"
	case key.Workspace == "":
	case w.Damage != nil:
		return "its workspace is damaged"
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
func (i *inspection) changed(key auth.Key) string {
	was, existed := i.before.Keys[key.Hash]
	switch {
	case !i.hasBefore:
		return "there is no table before the restore"
	case !existed:
		return NotBefore
	case was.Damage != nil:
		return "damaged in the table before"
	case was.Disabled:
		return "disabled in the table before"
	case key.Damage != nil:
		return "its row is damaged"
	case was.Account != key.Account || was.Kind != key.Kind || was.Workspace != key.Workspace || !was.ExpiresAt.Equal(key.ExpiresAt):
		return "of another account, kind, workspace or expiry in the table before"
	}
	if why := unusable(i.before, was); why != "" {
		return "in the table before: " + why
	}
	return ""
}

func (i *inspection) deletedBefore(id ids.Workspace) bool {
	was := i.before.Workspaces[id]
	return was.Damage == nil && !was.DeletedAt.IsZero()
}

func (i *inspection) inspectWorkspaces() {
	for id, w := range Sorted(i.Access.Workspaces) {
		account, owned := i.Access.Accounts[w.Account]
		revived := w.DeletedAt.IsZero() && i.deletedBefore(id)
		switch {
		case w.Damage != nil && i.deletedBefore(id):
			i.leave("workspace", string(id), "", "deleted in the table before; "+damaged(w.Damage), "put its row right, then repeat the repair")
		case w.Damage != nil:
			i.leave("workspace", string(id), "", damaged(w.Damage), "look at its row")
		case w.DeletedAt.After(i.now.Add(RequestsEnd)):
			i.leave("workspace", string(id), w.Account, "deleted in the future: at "+w.DeletedAt.Format(time.RFC3339), "set deleted_at of its row to the Unix time of now")
		case !owned:
			i.leave("workspace", string(id), w.Account, "its account does not exist", "look for the account in a backup")
		case revived && account.Damage != nil:
			i.leave("workspace", string(id), w.Account, "live, but deleted in the table before; its account is damaged", "put the account's row right, then delete it")
		case revived:
			i.plan("workspace", string(id), w.Account, "live, but deleted in the table before", "workspace.delete",
				func(ctx context.Context, r *auth.Registry) error { return r.DeleteWorkspace(ctx, w.Account, id) })
		}
	}
}

func (i *inspection) inspectLists() {
	for _, entry := range i.Access.Missing {
		i.plan("list", entry.ID(), "", "not in the list of "+entry.PK, "list.add",
			func(ctx context.Context, r *auth.Registry) error { return r.Relist(ctx, entry) })
	}
	for _, entry := range i.Access.Stray {
		i.note("list", entry.ID(), "", "without a row, in the list of "+entry.PK+": it harms nobody")
	}
	for _, item := range i.Access.Unknown {
		i.leave("item", item.String(), "", "not an item of the access table", "look at it")
	}
}

func (i *inspection) inspectAccounts() {
	for id, account := range Sorted(i.Access.Accounts) {
		if i.before.Accounts[id].Suspended && !account.Suspended {
			i.plan("account", string(id), id, "suspended in the table before", "account.disable",
				func(ctx context.Context, r *auth.Registry) error { return r.SuspendAccount(ctx, id, true) })
		}
		w, exists := i.Access.Workspaces[account.Default]
		switch {
		case account.Damage != nil:
			i.leave("account", string(id), id, damaged(account.Damage), "look at its row")
		case account.Default == "" || w.Damage != nil:
		case !exists || w.Account != id || !w.DeletedAt.IsZero():
			i.plan("account", string(id), id, "its default workspace is deleted or not its own", "workspace.default.clear",
				func(ctx context.Context, r *auth.Registry) error { return r.ClearDefault(ctx, id, account.Default) })
		}
	}
}

// inspectCounters raises the next sort_order above everything that was given out. After a
// restore it also removes the number of credentials made: the next create then counts.
func (i *inspection) inspectCounters() {
	given := i.given()
	for id, w := range Sorted(i.Access.Workspaces) {
		if w.Damage != nil || !w.DeletedAt.IsZero() || i.deletedBefore(id) {
			continue
		}
		raised := false // that also removes the number of credentials made
		for provider, next := range Sorted(given[id]) {
			if is := w.Next[provider]; is < next {
				raised = true
				i.plan("counter", string(id), w.Account, fmt.Sprintf("the next sort_order of %s is %d, but %d was given out", provider, is, next-1), "counter.raise",
					func(ctx context.Context, r *auth.Registry) error { return r.RaiseCounter(ctx, id, provider, next) })
			}
		}
		if i.restoring && w.HasMade && !raised {
			i.plan("counter", string(id), w.Account, "its number of credentials is the restored one", "counter.forget",
				func(ctx context.Context, r *auth.Registry) error { return r.ForgetMade(ctx, id) })
		}
	}
}

// given returns for each workspace and provider one more than the highest sort_order that a
// credential got.
func (i *inspection) given() map[ids.Workspace]map[string]int64 {
	given := map[ids.Workspace]map[string]int64{}
	for id, w := range i.before.Workspaces {
		if w.Damage == nil {
			given[id] = maps.Clone(w.Next)
		}
	}
	for _, p := range i.Placements {
		if p.Damaged {
			continue
		}
		if given[p.Workspace] == nil {
			given[p.Workspace] = map[string]int64{}
		}
		given[p.Workspace][p.Provider] = max(given[p.Workspace][p.Provider], p.SortOrder+1)
	}
	return given
}

// inspectCredentials looks for credentials that cannot be reached, and for credentials with
// the same sort_order.
func (i *inspection) inspectCredentials() {
	inside := map[ids.Workspace]int{}
	type position struct {
		workspace ids.Workspace
		provider  string
		sortOrder int64
	}
	taken := map[position]ids.Credential{}
	for _, p := range i.Placements {
		inside[p.Workspace]++
		w := i.Access.Workspaces[p.Workspace]
		if p.Damaged || w.Account != "" && w.Account != p.Account {
			i.leave("credential", string(p.ID), p.Account, "damaged, or of another account than workspace "+string(p.Workspace)+": routers refuse that workspace", "look at its row, or delete it")
			continue
		}
		at := position{p.Workspace, p.Provider, p.SortOrder}
		if twin := taken[at]; twin != "" {
			i.leave("credential", string(p.ID), p.Account, fmt.Sprintf("has the same sort_order of %s, %d, as %s", p.Provider, p.SortOrder, twin),
				"delete one of them and create it again")
		}
		taken[at] = p.ID
		if p.Form == byok.SignalboxKey {
			// A label is too short to know, so this is no inconsistency: it could never be mended.
			i.note("credential", string(p.ID), p.Account, "its key may be an API key of this service, by its label "+p.Label+
				": routers refuse to send one. If it is, disable that API key and delete the credential")
		}
		_, unknown := Split(p.AllowedAPIKeyHashes, func(hash ids.KeyHash) bool { return i.Access.Keys[hash].Account == p.Account })
		if len(unknown) > 0 {
			i.note("credential", string(p.ID), p.Account, fmt.Sprintf("its allow-list has %s that the account does not have, %.8s among them",
				Count(len(unknown), "API key"), unknown[0]))
		}
	}
	for id, credentials := range Sorted(inside) {
		switch w, exists := i.Access.Workspaces[id]; {
		case !exists:
			i.leave("workspace", string(id), i.before.Workspaces[id].Account, Count(credentials, "credential")+" of a workspace that does not exist",
				"create them again in another workspace")
		case !w.DeletedAt.IsZero():
			i.note("workspace", string(id), w.Account, Count(credentials, "credential")+" of a deleted workspace: admin workspace purge")
		case slices.Contains(i.refused, id):
			i.leave("workspace", string(id), w.Account, "routers refuse it: "+byok.ErrTooMany.Error(), "delete some of its credentials")
		}
	}
}

// compareTables reports the rows that only one of the two tables has, and the damaged rows
// of the table before.
func (i *inspection) compareTables() {
	for id, was := range Sorted(i.before.Accounts) {
		_, exists := i.Access.Accounts[id]
		i.compare("account", string(id), id, was.Damage, exists)
	}
	for id, was := range Sorted(i.before.Workspaces) {
		_, exists := i.Access.Workspaces[id]
		i.compare("workspace", string(id), was.Account, was.Damage, exists || !was.DeletedAt.IsZero())
	}
	for hash, was := range Sorted(i.before.Keys) {
		_, exists := i.Access.Keys[hash]
		i.compare("key", string(hash), was.Account, was.Damage, exists || was.Disabled)
	}
	if !i.hasBefore {
		return
	}
	for id := range Sorted(i.Access.Accounts) {
		if _, existed := i.before.Accounts[id]; !existed {
			i.note("account", string(id), id, NotBefore)
		}
	}
	for id, w := range Sorted(i.Access.Workspaces) {
		if _, existed := i.before.Workspaces[id]; !existed {
			i.note("workspace", string(id), w.Account, NotBefore)
		}
	}
}

// compare reports a row of the table before that is damaged, or that nobody revoked and the
// restored table lacks.
func (i *inspection) compare(kind, id string, account ids.Account, damage error, existsOrRevoked bool) {
	switch {
	case damage != nil:
		i.leave(kind, id, account, "damaged in the table before: "+errors.Unwrap(damage).Error(), "it counts as revoked: look at its row there")
	case !existsOrRevoked:
		i.note(kind, id, account, "only in the table before: create it again if it is still wanted")
	}
}
