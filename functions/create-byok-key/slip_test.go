package main

import (
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
)

// slip is one request for a credential, in an account of its own.
type slip struct {
	testing.TB
	*vault
	tenant      functest.Tenant
	token       string
	key         string // the provider's
	idempotency string // "" where the request has none
	body        map[string]any
	changed     map[string]any // what became of the body since it was sent before

	prior     int  // credentials that are there before
	replays   bool // the request was answered before
	meanwhile []faults.Rule
}

func newSlip(t testing.TB, v *vault) *slip {
	tenant := v.Tenant(t)
	s := &slip{TB: t, vault: v, tenant: tenant, token: tenant.Management, key: functest.Secret()}
	s.body = map[string]any{
		"key": s.key, "provider": "openai", "name": functest.Private + "name",
		"allowed_models": []string{functest.Private + "model"}, "allowed_user_ids": []string{},
	}
	return s
}

// The kinds of request. Each takes the one it is given further.

func (s *slip) plain() {}

func (s *slip) named() { s.body["workspace_id"] = s.tenant.Workspace }

func (s *slip) hashes() {
	own := string(auth.HashKey(s.token))
	other := string(auth.HashKey(s.tenant.Standard(s, s.tenant.Workspace)))
	s.body["allowed_api_key_hashes"] = []string{own, other, own}
}

func (s *slip) once() { s.idempotency = functest.Secret() }

func (s *slip) everything() { s.hashes(); s.once() }

func (s *slip) again() { s.named(); s.once(); s.send(); s.replays = true }

func (s *slip) afterTheWorkspace() { s.again(); s.tenant.Delete(s, s.tenant.Workspace) }

func (s *slip) expired() { s.named(); s.once(); s.send(); s.expire(s, s.token, s.idempotency) }

func (s *slip) different() { s.again(); s.changed = map[string]any{"disabled": true} }

// late finds that the same request, sent at the same time, was faster.
func (s *slip) late() {
	s.named()
	s.once()
	e := s.event()
	s.replays = true
	s.meanwhile = []faults.Rule{{Operation: "GenerateDataKey", Fault: faults.Then(func() { s.Instance().Invoke(s, e.Again()) })}}
}

// overtaken finds that the same request was faster, and that its workspace was
// deleted since.
func (s *slip) overtaken() {
	s.named()
	s.once()
	e := s.event()
	s.replays = true
	faster := sync.OnceFunc(func() {
		s.Instance().Invoke(s, e.Again())
		s.tenant.Delete(s, s.tenant.Workspace)
	})
	s.meanwhile = []faults.Rule{{Operation: "GetItem", Kind: "idem#", Call: 1, Fault: faults.Then(faster)}}
}

func (s *slip) misspelt() { s.body[functest.Marker+"models"] = "x" }

func (s *slip) foreignHash() {
	s.hashes()
	s.body["allowed_api_key_hashes"] = []string{string(auth.HashKey(s.token)), string(auth.HashKey("sbx_nobody's"))}
}

func (s *slip) foreignWorkspace() { s.body["workspace_id"] = s.Tenant(s).Workspace }

func (s *slip) noDefault() { s.tenant.Delete(s, s.tenant.Workspace) }

func (s *slip) standard() { s.named(); s.once(); s.token = s.tenant.Standard(s, "") }

func (s *slip) unknown() { s.named(); s.once(); s.token = functest.Marker + string(s.tenant.ID) }

func (s *slip) event() functest.Event {
	body := maps.Clone(s.body)
	maps.Copy(body, s.changed)
	e := functest.NewEvent(http.MethodPost, "/api/v1/byok").As(s.token).Sending(body)
	if s.idempotency != "" {
		e = e.With("Idempotency-Key", s.idempotency)
	}
	return e
}

// send sends the request before its time.
func (s *slip) send() {
	s.Helper()
	if got := s.Instance().Invoke(s, s.event()); got.Status != http.StatusCreated {
		s.Fatalf("sending it before: status %d", got.Status)
	}
	s.prior++
}

// judge checks an answer against what is stored, and tells how much that is.
func (s *slip) judge(t testing.TB, a functest.Answer) int {
	t.Helper()
	rows := s.stored(t, s.tenant.Workspace, s.key)
	if letIn := a.Line["account"] != nil; letIn && a.Status != http.StatusForbidden && a.Audit == nil {
		t.Error("no audit line")
	}
	if a.Status == http.StatusCreated {
		s.judgeCreated(t, a, rows)
	}
	replayed := a.Header["Idempotent-Replayed"]
	if replayed != "" && (replayed != "true" || a.Status != http.StatusCreated || s.idempotency == "" || a.Line["replayed"] != true) {
		t.Errorf("status %d, Idempotent-Replayed %q", a.Status, replayed)
	}
	return len(rows)
}

// judgeCreated finds the credential of a 201 among those that are stored.
func (s *slip) judgeCreated(t testing.TB, a functest.Answer, rows []row) {
	t.Helper()
	var body map[string]map[string]any
	a.Decode(t, &body)
	functest.HasMembers(t, body["data"], "id", "name", "provider", "label", "workspace_id", "created_at", "disabled",
		"is_byok_only", "is_fallback", "is_required", "allowed_api_key_hashes", "allowed_models", "allowed_user_ids", "sort_order")
	var told struct{ Data credential }
	a.Decode(t, &told)
	for _, r := range rows {
		if r.ID != told.Data.ID {
			continue
		}
		c := told.Data
		want := row{
			Version: 1, ID: c.ID, Account: s.tenant.ID, Workspace: c.WorkspaceID, Provider: c.Provider, Name: c.Name,
			Label: c.Label, SortOrder: c.SortOrder, Hashes: c.AllowedAPIKeyHashes, Models: c.AllowedModels, Users: c.AllowedUserIDs,
			Seal: r.Seal,
		}
		if a.Audit["credential"] != string(c.ID) || a.Audit["workspace"] != string(c.WorkspaceID) {
			t.Errorf("the answer names credential %s, the audit line %v in %v", c.ID, a.Audit["credential"], a.Audit["workspace"])
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("stored otherwise than told (-told +stored):\n%s", diff)
		}
		if c.Name != s.body["name"] || c.Label != "sk-...-end" || c.Provider != s.body["provider"] {
			t.Errorf("told otherwise than sent: %+v", c)
		}
		return
	}
	t.Errorf("201, and credential %s is not stored", told.Data.ID)
}

// testCase is the world of the request: status is how it ends without a fault.
func (s *slip) testCase(status int) functest.Case {
	prior, created := s.prior, status == http.StatusCreated
	var halfway int
	return functest.Case{
		Env: s.Env, Event: s.event(), Meanwhile: s.meanwhile,
		Check: func(t testing.TB, first functest.Answer) {
			halfway = s.judge(t, first)
			switch {
			case first.Status == http.StatusCreated && !s.replays && halfway != prior+1,
				halfway < prior || halfway > prior+1 || !created && halfway != prior:
				t.Errorf("after status %d %d credentials are stored, before there were %d", first.Status, halfway, prior)
			case s.idempotency != "" && s.remembered(t, s.token, s.idempotency) != (halfway > 0):
				t.Errorf("%d credentials are stored, remembered: %v", halfway, halfway == 0)
			}
		},
		Settled: func(t testing.TB, first, again functest.Answer) {
			if again.Status != status {
				t.Errorf("again: status %d, want %d", again.Status, status)
			}
			want := prior
			if created {
				want = s.inTheEnd(halfway)
			}
			if end := s.judge(t, again); end != want {
				t.Errorf("in the end %d credentials are stored, want %d", end, want)
			}
			replayed := again.Header["Idempotent-Replayed"] == "true"
			if known := s.idempotency != "" && created && want == halfway; replayed != known {
				t.Errorf("replayed: %v, want %v", replayed, known)
			}
			if replayed && first.Status == status && again.Body != first.Body {
				t.Errorf("replayed as %s, told %s", again.Body, first.Body)
			}
		},
	}
}

// inTheEnd is how many credentials there are after the request was repeated:
// one for each request without an idempotency key, one for all with one.
func (s *slip) inTheEnd(halfway int) int {
	switch {
	case s.idempotency == "":
		return halfway + 1
	case s.replays:
		return 1
	default:
		return s.prior + 1
	}
}
