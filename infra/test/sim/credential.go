package sim

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// credentialJudge knows the credentials from the responses and the operator's acts.
type credentialJudge struct {
	watched   bool // a request for a credential is under way
	answered  map[ids.Credential]answered
	uncertain map[string]int          // perhaps stored by a request that got a 500, by idempotency key
	removed   map[ids.Credential]bool // by the operator
	changed   map[ids.Credential]bool // by the operator
	filled    map[ids.Credential]bool // by Fill
	rotations *rotationJudge          // nil if none is superseded
}

type answered struct {
	made map[string]any
	to   *actor
}

func newCredentialJudge() credentialJudge {
	return credentialJudge{
		answered: map[ids.Credential]answered{}, uncertain: map[string]int{},
		removed: map[ids.Credential]bool{}, changed: map[ids.Credential]bool{}, filled: map[ids.Credential]bool{},
	}
}

func (j *credentialJudge) watch(w *World) {
	if j.watched {
		return
	}
	j.watched = true
	w.eachStep = append(w.eachStep, w.countStored)
	w.finally = append(w.finally, w.judgeCredentials, w.judgeCopies)
}

// countStored notes how many credentials the workspace holds, for each request under way.
func (w *World) countStored() {
	stored := w.model.Count(credentialsTable, "workspace#"+string(w.Tenant.Workspace))
	for _, x := range w.exchanges {
		if x.run != nil && !x.through {
			x.leastStored, x.mostStored = min(x.leastStored, stored), max(x.mostStored, stored)
		}
	}
}

// judgeCopies requires the same answer to all copies of a request at the same time, unless
// somebody else changed the storage that they depend on.
func (w *World) judgeCopies() {
	for i, x := range w.exchanges {
		for _, y := range w.exchanges[:i] {
			if !x.isCopyOf(y) || !x.overlaps(y.actor) || x.answer.Status == y.answer.Status {
				continue
			}
			w.reached[CopiesDiffer] = true
			if !w.disturbed(x, y) {
				w.problem("the same request, sent at the same time, got %d as %s and %d as %s", x.answer.Status, x.Name, y.answer.Status, y.Name)
			}
		}
	}
}

// isCopyOf reports whether both are one request under one idempotency key, with a 201 or 400.
func (x *exchange) isCopyOf(y *exchange) bool {
	c, isCreate := x.request.(Create)
	d, same := y.request.(Create)
	decided := func(x *exchange) bool {
		return x.answer.Status == http.StatusCreated || x.answer.Status == http.StatusBadRequest
	}
	return isCreate && same && c.Idempotency != "" && c.key() == d.key() && x.event.Body == y.event.Body && decided(x) && decided(y)
}

// disturbed reports whether an actor that is no copy worked at the same time as one of the
// copies.
func (w *World) disturbed(x, y *exchange) bool {
	return slices.ContainsFunc(w.actors, func(a *actor) bool {
		other, isRequest := a.work.(*exchange)
		isCopy := isRequest && other.event.Body == x.event.Body
		return !isCopy && (a.overlaps(x.actor) || a.overlaps(y.actor))
	})
}

// judgeCredentials compares the stored credentials with the responses.
func (w *World) judgeCredentials() {
	stored, err := byok.ReadAll(w.t.Context(), w.Direct.DB, credentialsTable, w.Tenant.ID, w.Tenant.Workspace)
	if err != nil {
		w.problem("the stored credentials cannot be read: %v", err)
		return
	}
	w.judgePositions(stored)
	unanswered := 0
	for _, s := range stored {
		if w.credentials.filled[s.ID] { // it has the seal of another
			continue
		}
		w.judgeSeal(s)
		if given, ok := w.credentials.answered[s.ID]; !ok {
			unanswered++
		} else if !w.credentials.changed[s.ID] {
			w.judgeStored(s, given.made)
		}
	}
	for id := range w.credentials.answered {
		if !w.credentials.removed[id] && !w.registry.purged && !slices.ContainsFunc(stored, func(s byok.Stored) bool { return s.ID == id }) {
			w.problem("the credential %s was answered and is not stored", id)
		}
	}
	for _, n := range w.credentials.uncertain {
		unanswered -= n
	}
	if unanswered > 0 {
		w.problem("%d credentials more are stored than the answers explain", unanswered)
	}
}

// judgePositions requires that no two credentials have one position. After a restore that
// holds for those that were created after the repair.
func (w *World) judgePositions(stored []byok.Stored) {
	unique := map[int64]bool{} // whether the position may be held only once
	for _, s := range stored {
		given, ok := w.credentials.answered[s.ID]
		alone := !w.registry.restored || ok && w.repairedBefore(given.to)
		other, taken := unique[s.SortOrder]
		if taken && (alone || other) {
			w.problem("two credentials have the sort_order %d", s.SortOrder)
		}
		unique[s.SortOrder] = alone || other
	}
}

func (w *World) judgeSeal(s byok.Stored) {
	opener := seal.NewOpener(w.Direct.KMS, keyARN)
	if opened, err := opener.Open(w.t.Context(), s.Sealed, s.Binding()); err != nil || string(opened.Reveal()) != providerKey {
		w.problem("the stored credential %s does not open: %v", s.ID, err)
	}
}

func (w *World) judgeStored(s byok.Stored, made map[string]any) {
	want := kit.SettingsByName(w.t, s.Settings)
	maps.Copy(want, map[string]any{
		"id": string(s.ID), "workspace_id": string(s.Workspace), "label": s.Label, "sort_order": float64(s.SortOrder), "created_at": s.CreatedAt.Format(time.RFC3339),
	})
	if !reflect.DeepEqual(made, want) {
		w.problem("answered %v, stored %v", made, want)
	}
}

// Fill stores credentials in the tenant's workspace, as if requests had made them. That many
// more were made and deleted.
func (w *World) Fill(stored, deleted int) {
	first := w.Created("before", Create{})
	partition := "workspace#" + string(w.Tenant.Workspace)
	row := w.model.Item(credentialsTable, partition, "credential#"+string(first))
	for n := range int64(stored - 1) {
		other := maps.Clone(row)
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		other["id"], other["sk"], other["sort_order"] = text(id), text("credential#"+id), number(n+1)
		w.model.Put(credentialsTable, other)
		w.credentials.filled[ids.Credential(id)] = true
	}
	made := int64(stored + deleted)
	workspace := w.model.Item(accessTable, partition, "workspace")
	workspace["made"], workspace["made_bytes"], workspace["next"] = number(made), number(1000*made), map[string]any{"M": map[string]any{provider: number(made)}}
	w.model.Put(accessTable, workspace)
}

func text(s string) map[string]any  { return map[string]any{"S": s} }
func number(n int64) map[string]any { return map[string]any{"N": strconv.FormatInt(n, 10)} }

// Expire lets the records of all earlier requests under the idempotency key expire;
// they stay stored, as DynamoDB may keep them.
func (w *World) Expire(idempotency string) {
	rows := w.Rows(controlTable)
	for _, row := range rows.All(w.t) {
		if row["fingerprint"] != nil {
			rows.Set(w.t, row, "exp", kit.Number("1"))
		}
	}
	c := Create{Idempotency: idempotency}.withDefaults(w)
	w.showed(w.past(), sets(c.key(), "expired", once{}))
}

// Credential stores a credential before all others begin, by a request to create-byok-key.
// In the simulation of another function, use byok.NewStore on the Direct clients.
func (w *World) Credential(name string) ids.Credential {
	id := w.Created(name, Create{})
	w.Name(string(id), name)
	return id
}

// DisableCredential makes an actor that disables a credential after a time.
func (w *World) DisableCredential(name string, id ids.Credential, after time.Duration) {
	w.credentials.changed[id] = true
	w.acts(act{name: name, run: func(ctx context.Context, c Clients) error {
		time.Sleep(after)
		return c.Manager.Disable(ctx, w.Tenant.Workspace, id)
	}})
}

// DeleteCredential makes an actor that deletes a credential.
func (w *World) DeleteCredential(name string, id ids.Credential) {
	w.credentials.removed[id] = true
	w.acts(act{
		name: name, run: func(ctx context.Context, c Clients) error { return c.Manager.Delete(ctx, w.Tenant.Workspace, id) },
		refused: without([]error{byok.ErrNotFound}),
	})
}

// DeletedCredential deletes a credential before all others begin.
func (w *World) DeletedCredential(id ids.Credential) {
	w.credentials.removed[id] = true
	w.must(w.Direct.Manager.Delete(w.t.Context(), w.Tenant.Workspace, id))
}

// Supersede makes an actor that supersedes a credential with its successor.
func (w *World) Supersede(name string, old, successor ids.Credential) {
	w.credentials.changed[old], w.credentials.changed[successor] = true, true
	if w.credentials.rotations == nil {
		w.credentials.rotations = &rotationJudge{world: w, successors: map[ids.Credential][]ids.Credential{}}
		w.eachStep = append(w.eachStep, w.credentials.rotations.check)
	}
	successors := w.credentials.rotations.successors
	successors[old] = append(successors[old], successor)
	w.acts(act{
		name: name,
		run: func(ctx context.Context, c Clients) error {
			_, err := c.Manager.Supersede(ctx, w.Tenant.Workspace, old, successor)
			if position := w.position(old); err == nil && position.exists && !position.disabled {
				w.problem("%s: done, and the old one is enabled", name)
			}
			return err
		},
		rereads: true, refused: without([]error{byok.ErrNotFound, byok.ErrSuccessorDisabled, byok.ErrOtherSettings}),
	})
}

// rotationJudge judges the credentials that are superseded after each step. The step that
// disables the old one must leave a successor enabled, in an earlier position. No two
// credentials may ever have the same position.
type rotationJudge struct {
	world      *World
	successors map[ids.Credential][]ids.Credential
	was        map[ids.Credential]position
}

func (j *rotationJudge) check() {
	is, taken := map[ids.Credential]position{}, map[int64]bool{}
	for id := range j.world.credentials.changed {
		is[id] = j.world.position(id)
		if is[id].exists && taken[is[id].order] {
			j.world.problem("two credentials have the position %d", is[id].order)
		}
		taken[is[id].order] = is[id].exists || taken[is[id].order]
	}
	for old, successors := range j.successors {
		follows := func(id ids.Credential) bool { return !is[id].disabled && is[id].order < is[old].order }
		if is[old].disabled && !j.was[old].disabled && !slices.ContainsFunc(successors, follows) {
			j.world.problem("%s is disabled, and no successor is enabled in an earlier position", j.world.names[string(old)])
		}
	}
	j.was = is
}

type position struct {
	order            int64
	disabled, exists bool
}

// position reads a stored credential of the tenant's workspace.
func (w *World) position(id ids.Credential) (p position) {
	row := w.model.Item(credentialsTable, "workspace#"+string(w.Tenant.Workspace), "credential#"+string(id))
	flag, _ := row["disabled"].(map[string]any)
	p.disabled, _ = flag["BOOL"].(bool)
	p.order, p.exists = awsmodel.Integer(row["sort_order"])
	return p
}
