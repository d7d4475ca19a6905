package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// The states that the judge of creates notes.
const (
	BoundPassed  = "the workspace holds more than its bound"
	CopiesDiffer = "two copies of a request get different answers"
)

// credentialJudge knows what the responses and the operator's acts say of the stored
// credentials.
type credentialJudge struct {
	answered   map[ids.Credential]map[string]any   // in a 201
	uncertain  map[string]int                      // perhaps stored by a request that got a 500
	removed    map[ids.Credential]bool             // by the operator
	changed    map[ids.Credential]bool             // by the operator
	filled     map[ids.Credential]bool             // by Fill
	fresh      map[ids.Credential]bool             // created by a request that began after the repair
	twins      map[string][]*exchange              // of one request under one idempotency key
	successors map[ids.Credential][]ids.Credential // of those that are superseded
	watched    bool                                // a request for a credential is under way
}

func newCredentialJudge() credentialJudge {
	return credentialJudge{
		answered: map[ids.Credential]map[string]any{}, uncertain: map[string]int{}, twins: map[string][]*exchange{},
		removed: map[ids.Credential]bool{}, changed: map[ids.Credential]bool{}, filled: map[ids.Credential]bool{}, fresh: map[ids.Credential]bool{},
	}
}

// Create is a request for a credential.
type Create struct {
	Token       string        // the tenant's management key by default
	Workspace   ids.Workspace // the tenant's by default
	Unnamed     bool          // the request names no workspace
	Idempotency string
	Hashes      []string
	// Changed are members that differ from the default request.
	Changed map[string]any
	// Most is how many credentials the workspace may hold; 0 means the default.
	Most int
	// Never is the status of a request that can never succeed, or 0.
	Never int
}

const (
	providerKey = "sk-zQ7-marker-mX4w-of-a-simulated-request-end"
	provider    = "openai"
)

func (c Create) withDefaults(w *World) Create {
	c.Token, c.Workspace = cmp.Or(c.Token, w.Tenant.Management), cmp.Or(c.Workspace, w.Tenant.Workspace)
	return c
}

func (c Create) body() map[string]any {
	body := map[string]any{
		"key": providerKey, "provider": provider, "name": functest.Private + "name",
		"allowed_models": []string{functest.Private + "model"}, "allowed_user_ids": []string{},
	}
	if !c.Unnamed {
		body["workspace_id"] = c.Workspace
	}
	if c.Hashes != nil {
		body["allowed_api_key_hashes"] = c.Hashes
	}
	maps.Copy(body, c.Changed)
	return body
}

// Create makes an actor that creates a credential, and repeats the request once all actors
// have ended.
func (w *World) Create(name string, c Create) {
	c = c.withDefaults(w)
	if !w.credentials.watched {
		w.credentials.watched = true
		w.checks = append(w.checks, w.countStored)
		w.finally = append(w.finally, w.judgeCredentials, w.judgeTwins)
	}
	w.actors = append(w.actors, w.client(name, c.event, func(x *exchange) { w.judgeCreate(x, c) }, true))
}

// Created makes a request before all others. It gets a 201.
func (w *World) Created(name string, c Create) ids.Credential {
	id, _ := w.before(name, c).created(w)
	return id
}

func (w *World) before(name string, c Create) *exchange {
	c = c.withDefaults(w)
	return w.earlier(name, c.event(), func(x *exchange) { w.judgeCreate(x, c) })
}

func (c Create) event() functest.Event {
	e := functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(c.body()).As(c.Token)
	if c.Idempotency != "" {
		e = e.With("Idempotency-Key", c.Idempotency)
	}
	if c.Most > 0 {
		e.Stage["credentialsPerWorkspace"] = strconv.Itoa(c.Most)
	}
	return e
}

// created is the credential that a 201 shows.
func (x *exchange) created(w *World) (ids.Credential, map[string]any) {
	var body struct{ Data map[string]any }
	err := json.Unmarshal([]byte(x.answer.Body), &body)
	id, _ := body.Data["id"].(string)
	if err != nil || id == "" {
		w.problem("%s: the body of the 201 is %s", x.Name, x.answer.Body)
	}
	return ids.Credential(id), body.Data
}

// once is the state of an idempotency key: the request that succeeded with it, and the
// answer.
type once struct{ request, answer string }

// judgeCreate notes the facts that the response shows.
func (w *World) judgeCreate(x *exchange, c Create) {
	if x.run != nil && x.mostStored > c.bound() {
		w.reached[BoundPassed] = true
	}
	idem := "idempotency key " + c.Token + c.Idempotency
	encoded, _ := json.Marshal(c.body())
	request := string(encoded)
	switch x.answer.Status {
	case http.StatusUnauthorized:
		return
	case http.StatusForbidden:
		if c.Never != http.StatusForbidden {
			w.problem("%s: a management key got a 403", x.Name)
		}
		return
	case http.StatusInternalServerError:
		if c.Idempotency != "" {
			w.credentials.uncertain[idem] = 1
			w.showed(x.actor, perhaps(on(idem, "created", func(s once) (bool, once) { return s == once{}, once{request, "?"} })))
		} else {
			w.credentials.uncertain[""]++
		}
		return
	}
	if c.Idempotency != "" {
		w.credentials.twins[idem+request] = append(w.credentials.twins[idem+request], x)
	}
	switch x.answer.Status {
	case http.StatusCreated:
		w.judgeCreated(x, c, idem, request)
	case http.StatusBadRequest:
		w.judgeRefused(x, c, idem, request)
	}
}

func (w *World) judgeCreated(x *exchange, c Create, idem, request string) {
	id, made := x.created(w)
	replayed := x.answer.Header["Idempotent-Replayed"] == "true"
	if c.Never != 0 {
		w.problem("%s: 201 for a request that cannot succeed", x.Name)
	}
	if x.answer.Audit["credential"] != made["id"] || x.answer.Audit["workspace"] != made["workspace_id"] {
		w.problem("%s: the audit line %v names another credential than the answer", x.Name, x.answer.Audit)
	}
	w.credentials.answered[id] = made
	w.credentials.fresh[id] = x.afterRepair
	delete(w.credentials.uncertain, idem)
	if replayed {
		if x.answer.Line["replayed"] != true {
			w.problem("%s: a replay that is not logged", x.Name)
		}
		if c.Idempotency == "" {
			w.problem("%s: replayed without an idempotency key", x.Name)
		}
		w.showed(x.actor, on(idem, "replayed", func(s once) (bool, once) {
			return s.request == request && (s.answer == x.answer.Body || s.answer == "?"), once{request, x.answer.Body}
		}))
		return
	}
	if x.run != nil && x.leastStored >= c.bound() && (!w.registry.restored || x.afterRepair) {
		w.problem("%s: 201, though the workspace for %d held %d all the time", x.Name, c.bound(), x.leastStored)
	}
	w.showed(x.actor, seenOn(workspaceObject(fmt.Sprint(made["workspace_id"]))))
	for _, hash := range c.Hashes {
		w.showed(x.actor, seenOn("existence of key "+hash[:12]))
	}
	if c.Idempotency != "" {
		w.showed(x.actor, on(idem, "created", func(s once) (bool, once) {
			return s == once{}, once{request, x.answer.Body}
		}))
	}
	w.judgeEcho(x, made)
	if made["label"] != "sk-...-end" {
		w.problem("%s: the label is %v", x.Name, made["label"])
	}
}

// judgeEcho compares a new credential with its request: a 201 has the sent value of every
// member, or the contract's default.
func (w *World) judgeEcho(x *exchange, got map[string]any) {
	want := kit.SettingsByName(w.t, byok.Settings{})
	want["name"], want["workspace_id"] = nil, string(w.Tenant.Workspace)
	sent := map[string]any{}
	w.must(json.Unmarshal([]byte(x.event.Body), &sent))
	maps.Copy(want, sent)
	delete(want, "key")
	want["name"] = cmp.Or(want["name"], want["provider"])
	want["workspace_id"] = strings.ToLower(fmt.Sprint(want["workspace_id"]))
	for _, made := range []string{"id", "created_at", "label", "sort_order"} {
		want[made] = got[made]
		if got[made] == nil {
			w.problem("%s: a 201 without %s: %s", x.Name, made, x.answer.Body)
		}
	}
	if !reflect.DeepEqual(want, got) {
		w.problem("%s: answered %v, want %v", x.Name, got, want)
	}
	if x.answer.Header["Idempotent-Replayed"] != "" {
		return
	}
	created, _ := time.Parse("2006-01-02T15:04:05Z", fmt.Sprint(got["created_at"]))
	if created.Before(x.began.Truncate(time.Second)) || created.After(x.ended) || x.answer.Line["replayed"] != nil {
		w.problem("%s: created at %v, from %v to %v; its log line: %v", x.Name, created, x.began, x.ended, x.answer.Line)
	}
}

func (w *World) judgeRefused(x *exchange, c Create, idem, request string) {
	if c.Never == http.StatusBadRequest {
		return
	}
	for _, path := range x.answer.Issues {
		switch {
		case path == "/workspace_id" && strings.Contains(x.answer.Body, `"reason":"full"`):
			if x.mostStored < c.bound() {
				w.problem("%s: the workspace is full, though it never held more than %d of %d", x.Name, x.mostStored, c.bound())
			}
		case path == "/workspace_id":
			w.showed(x.actor, seenOff(workspaceObject(c.Workspace)))
		case strings.HasPrefix(path, "/allowed_api_key_hashes/"):
			i := int(path[len(path)-1] - '0')
			w.showed(x.actor, seenOff("existence of key "+c.Hashes[i][:12]))
		case path == "" && c.Idempotency != "":
			w.showed(x.actor, shows(idem, "of another request", func(s once) bool { return s.request != "" && s.request != request }))
			return
		default:
			w.problem("%s: nothing explains the 400: %s", x.Name, x.answer.Body)
		}
	}
	if c.Idempotency != "" {
		w.showed(x.actor, shows(idem, "free", func(s once) bool { return s == once{} }))
	}
}

// judgeTwins requires the same answer to all copies of a request at the same time, unless
// somebody else changed the storage that they depend on.
func (w *World) judgeTwins() {
	for _, twins := range w.credentials.twins {
		for i, x := range twins {
			for _, y := range twins[:i] {
				if !x.overlaps(y.actor) || x.answer.Status == y.answer.Status {
					continue
				}
				w.reached[CopiesDiffer] = true
				if !w.disturbed(x, y) {
					w.problem("the same request, sent at the same time, got %d as %s and %d as %s", x.answer.Status, x.Name, y.answer.Status, y.Name)
				}
			}
		}
	}
}

// disturbed reports whether an actor that is no copy worked at the same time as one of the
// copies.
func (w *World) disturbed(x, y *exchange) bool {
	return slices.ContainsFunc(w.actors, func(a *actor) bool {
		isCopy := slices.ContainsFunc(w.exchanges, func(other *exchange) bool { return other.actor == a && other.event.Body == x.event.Body })
		return !isCopy && (a.overlaps(x.actor) || a.overlaps(y.actor))
	})
}

// bound is how many credentials the workspace may hold.
func (c Create) bound() int { return cmp.Or(c.Most, byok.MaxStored) }

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

// countStored notes how many credentials the workspace holds, for each request under way.
func (w *World) countStored() {
	stored := w.model.Count(credentialsTable, "workspace#"+string(w.Tenant.Workspace))
	for _, x := range w.exchanges {
		if x.run != nil && !x.through {
			x.leastStored, x.mostStored = min(x.leastStored, stored), max(x.mostStored, stored)
		}
	}
}

// judgeCredentials compares the stored credentials with the responses.
func (w *World) judgeCredentials() {
	stored, err := byok.ReadAll(w.t.Context(), w.Direct.DB, credentialsTable, w.Tenant.ID, w.Tenant.Workspace)
	if err != nil {
		w.problem("the stored credentials cannot be read: %v", err)
		return
	}
	opener := seal.NewOpener(w.Direct.KMS, keyARN)
	places := map[int64]bool{} // whether the position may be held only once
	unanswered := 0
	for _, s := range stored {
		if w.credentials.filled[s.ID] { // it is the seal of another
			places[s.SortOrder] = places[s.SortOrder] || !w.registry.restored
			continue
		}
		if opened, err := opener.Open(w.t.Context(), s.Sealed, s.Binding()); err != nil || string(opened.Reveal()) != providerKey {
			w.problem("the stored credential %s does not open: %v", s.ID, err)
		}
		alone := !w.registry.restored || w.credentials.fresh[s.ID]
		if other, taken := places[s.SortOrder]; taken && (alone || other) {
			w.problem("two credentials have the sort_order %d", s.SortOrder)
		}
		places[s.SortOrder] = places[s.SortOrder] || alone
		made, told := w.credentials.answered[s.ID]
		if !told {
			unanswered++
			continue
		}
		if w.credentials.changed[s.ID] {
			continue
		}
		want := kit.SettingsByName(w.t, s.Settings)
		maps.Copy(want, map[string]any{
			"id": string(s.ID), "workspace_id": string(s.Workspace), "label": s.Label, "sort_order": float64(s.SortOrder), "created_at": s.CreatedAt.Format(time.RFC3339),
		})
		if !reflect.DeepEqual(made, want) {
			w.problem("answered %v, stored %v", made, want)
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
