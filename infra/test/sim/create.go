package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// The states that the judge of creates notes.
const (
	BoundPassed  = "the workspace holds more than its bound"
	CopiesDiffer = "two copies of a request get different answers"
)

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

// Create makes an actor that creates a credential, and repeats the request once all actors
// have ended.
func (w *World) Create(name string, c Create) {
	w.credentials.watch(w)
	w.sends(name, c.withDefaults(w))
}

// Created makes a request before all others. It gets a 201.
func (w *World) Created(name string, c Create) ids.Credential {
	made := w.earlier(name, c.withDefaults(w)).created()
	return idOf(made)
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

func (c Create) bound() int { return cmp.Or(c.Most, byok.MaxStored) }

// key is the idempotency key, as an object of facts.
func (c Create) key() string { return "idempotency key " + c.Token + c.Idempotency }

// once is the state of an idempotency key: the request that succeeded with it, and the
// answer.
type once struct{ request, answer string }

func (c Create) judge(w *World, x *exchange) {
	if x.run != nil && x.mostStored > c.bound() {
		w.reached[BoundPassed] = true
	}
	switch x.answer.Status {
	case http.StatusForbidden:
		if c.Never != http.StatusForbidden {
			w.problem("%s: a management key got a 403", x.Name)
		}
	case http.StatusInternalServerError:
		c.judgeUncertain(w, x)
	case http.StatusCreated:
		c.judgeCreated(w, x)
	case http.StatusBadRequest:
		if c.Never != http.StatusBadRequest {
			c.judgeRefused(w, x)
		}
	}
}

// judgeUncertain notes that a request with a 500 may have stored a credential.
func (c Create) judgeUncertain(w *World, x *exchange) {
	if c.Idempotency == "" {
		w.credentials.uncertain[""]++
		return
	}
	w.credentials.uncertain[c.key()] = 1
	w.showed(x.actor, perhaps(on(c.key(), "created", func(s once) (bool, once) { return s == once{}, once{x.event.Body, "?"} })))
}

// created is the credential that a 201 shows.
func (x *exchange) created() map[string]any {
	var body struct{ Data map[string]any }
	err := json.Unmarshal([]byte(x.answer.Body), &body)
	if err != nil || idOf(body.Data) == "" {
		x.world.problem("%s: the body of the 201 is %s", x.Name, x.answer.Body)
	}
	return body.Data
}

func idOf(made map[string]any) ids.Credential {
	id, _ := made["id"].(string)
	return ids.Credential(id)
}

func (c Create) judgeCreated(w *World, x *exchange) {
	made := x.created()
	if c.Never != 0 {
		w.problem("%s: 201 for a request that cannot succeed", x.Name)
	}
	if x.answer.Audit["credential"] != made["id"] || x.answer.Audit["workspace"] != made["workspace_id"] {
		w.problem("%s: the audit line %v names another credential than the answer", x.Name, x.answer.Audit)
	}
	delete(w.credentials.uncertain, c.key())
	if x.answer.Header["Idempotent-Replayed"] == "true" {
		c.judgeReplayed(w, x)
		return
	}
	w.credentials.answered[idOf(made)] = answered{made, x.actor}
	if x.run != nil && x.leastStored >= c.bound() && (!w.registry.restored || w.repairedBefore(x.actor)) {
		w.problem("%s: 201, though the workspace for %d held %d all the time", x.Name, c.bound(), x.leastStored)
	}
	w.showed(x.actor, seenOn(workspaceObject(fmt.Sprint(made["workspace_id"]))))
	for _, hash := range c.Hashes {
		w.showed(x.actor, seenOn(existence(hash)))
	}
	if c.Idempotency != "" {
		w.showed(x.actor, on(c.key(), "created", func(s once) (bool, once) {
			return s == once{}, once{x.event.Body, x.answer.Body}
		}))
	}
	if made["label"] != "sk-...-end" {
		w.problem("%s: the label is %v", x.Name, made["label"])
	}
}

func (c Create) judgeReplayed(w *World, x *exchange) {
	made := x.created()
	w.credentials.answered[idOf(made)] = answered{made, x.actor}
	if x.answer.Line["replayed"] != true {
		w.problem("%s: a replay that is not logged", x.Name)
	}
	if c.Idempotency == "" {
		w.problem("%s: replayed without an idempotency key", x.Name)
	}
	w.showed(x.actor, on(c.key(), "replayed", func(s once) (bool, once) {
		return s.request == x.event.Body && (s.answer == x.answer.Body || s.answer == "?"), once{x.event.Body, x.answer.Body}
	}))
}

// judgeRefused requires that storage explains each issue of a 400.
func (c Create) judgeRefused(w *World, x *exchange) {
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
			w.showed(x.actor, seenOff(existence(c.Hashes[i])))
		case path == "" && c.Idempotency != "":
			w.showed(x.actor, shows(c.key(), "of another request", func(s once) bool { return s.request != "" && s.request != x.event.Body }))
			return
		default:
			w.problem("%s: nothing explains the 400: %s", x.Name, x.answer.Body)
		}
	}
	if c.Idempotency != "" {
		w.showed(x.actor, shows(c.key(), "free", func(s once) bool { return s == once{} }))
	}
}
