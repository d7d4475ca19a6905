package main

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/seal"
)

// fixture is one request for a credential, in an account of its own.
type fixture struct {
	t           testing.TB
	env         *functest.Env
	tenant      functest.Tenant
	token       string
	key         string // the provider's
	idempotency string // "" where the request has none
	body        map[string]any
	changed     map[string]any // members that differ from those of the request sent before

	prior     int  // credentials that are stored before
	replays   bool // the same request is answered before
	meanwhile []faults.Rule
}

func newFixture(t testing.TB, env *functest.Env) *fixture {
	t.Helper()
	tenant := env.NewTenant(t)
	f := &fixture{t: t, env: env, tenant: tenant, token: tenant.Management, key: functest.Secret()}
	f.body = map[string]any{
		"key": f.key, "provider": "openai", "name": functest.Private + "name",
		"allowed_models": []string{functest.Private + "model"}, "allowed_user_ids": []string{},
	}
	return f
}

// The kinds of request. Each changes the fixture further.

func (f *fixture) defaultWorkspace() {}

func (f *fixture) namedWorkspace() { f.body["workspace_id"] = f.tenant.Workspace }

func (f *fixture) allowedKeys() {
	own, other := string(auth.HashKey(f.token)), string(auth.HashKey(f.tenant.StandardKey(f.t, f.tenant.Workspace)))
	f.body["allowed_api_key_hashes"] = []string{own, other, own}
}

// idempotent names its workspace, as most of the kinds with an idempotency key do.
func (f *fixture) idempotent() { f.namedWorkspace(); f.idempotency = functest.Secret() }

func (f *fixture) everything() { f.idempotent(); f.allowedKeys() }

// replay was sent before.
func (f *fixture) replay() {
	f.idempotent()
	f.env.Instance().Invoke(f.t, f.event()).Is(f.t, http.StatusCreated)
	f.prior, f.replays = 1, true
}

func (f *fixture) replayWithoutWorkspace() {
	f.replay()
	f.tenant.DeleteWorkspace(f.t, f.tenant.Workspace)
}

// recordExpired was sent before; its record has expired and is not yet removed.
func (f *fixture) recordExpired() {
	f.replay()
	f.replays = false
	f.control().Set(f.t, f.recordKey(), "exp", testkit.Number("1"))
}

func (f *fixture) differentRequest() { f.replay(); f.changed = map[string]any{"disabled": true} }

// sameWasFaster meets the same request, sent at the same time and answered first.
func (f *fixture) sameWasFaster() {
	f.idempotent()
	f.replays = true
	e := f.event().Again()
	f.meanwhile = []faults.Rule{{Operation: "GenerateDataKey", Fault: faults.Then(func() { f.env.Instance().Invoke(f.t, e) })}}
}

// sameWasFasterWithoutWorkspace meets the same request, answered first, whose
// workspace was deleted since.
func (f *fixture) sameWasFasterWithoutWorkspace() {
	f.idempotent()
	f.replays = true
	e := f.event().Again()
	faster := sync.OnceFunc(func() {
		f.env.Instance().Invoke(f.t, e)
		f.tenant.DeleteWorkspace(f.t, f.tenant.Workspace)
	})
	f.meanwhile = []faults.Rule{{Operation: "GetItem", Kind: "idem#", Call: 1, Fault: faults.Then(faster)}}
}

func (f *fixture) unknownMember() { f.body[testkit.Marker+"models"] = "x" }

func (f *fixture) foreignKey() {
	f.body["allowed_api_key_hashes"] = []string{string(auth.HashKey(f.token)), string(auth.HashKey("sbx_nobody's"))}
}

func (f *fixture) foreignWorkspace() { f.body["workspace_id"] = f.env.NewTenant(f.t).Workspace }

func (f *fixture) foreignWorkspaceIdempotent() { f.idempotent(); f.foreignWorkspace() }

func (f *fixture) noDefaultWorkspace() { f.tenant.DeleteWorkspace(f.t, f.tenant.Workspace) }

func (f *fixture) standardKey() { f.idempotent(); f.token = f.tenant.StandardKey(f.t, "") }

func (f *fixture) unknownKey() { f.idempotent(); f.token = testkit.Marker + string(f.tenant.ID) }

func createRequest(body any) functest.Event {
	return functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body)
}

func (f *fixture) event() functest.Event {
	body := maps.Clone(f.body)
	maps.Copy(body, f.changed)
	e := createRequest(body).As(f.token)
	if f.idempotency != "" {
		e = e.With("Idempotency-Key", f.idempotency)
	}
	return e
}

// newCase returns the request and its checks: status is that of its answer without
// a fault.
func (f *fixture) newCase(status int) functest.Case {
	prior, created := f.prior, status == http.StatusCreated
	var between int // credentials stored after the first request
	return functest.Case{
		Env: f.env, Event: f.event(), Meanwhile: f.meanwhile,
		Check: func(t testing.TB, first functest.Answer) {
			between = f.check(t, first)
			switch {
			case first.Status == http.StatusCreated && !f.replays && between != prior+1,
				between < prior || between > prior+1 || !created && between != prior:
				t.Errorf("after status %d %d credentials are stored, before there were %d", first.Status, between, prior)
			case f.idempotency != "" && f.hasRecord(t) != (between > 0):
				t.Errorf("%d credentials are stored, recorded: %v", between, between == 0)
			}
		},
		Settled: func(t testing.TB, first, again functest.Answer) {
			again.Is(t, status)
			want := prior
			switch {
			case created && f.idempotency == "":
				want = between + 1 // one for each request
			case created && f.replays:
				want = 1
			case created:
				want = prior + 1
			}
			if end := f.check(t, again); end != want {
				t.Errorf("in the end %d credentials are stored, want %d", end, want)
			}
			replayed := again.Header["Idempotent-Replayed"] == "true"
			if known := f.idempotency != "" && created && want == between; replayed != known {
				t.Errorf("replayed: %v, want %v", replayed, known)
			}
			if replayed && first.Status == status && again.Body != first.Body {
				t.Errorf("replayed as %s, first %s", again.Body, first.Body)
			}
		},
	}
}

// check compares an answer with what is stored, and returns how many credentials
// that is.
func (f *fixture) check(t testing.TB, a functest.Answer) int {
	t.Helper()
	rows := storedCredentials(t, f.env, f.tenant, f.key)
	if a.Line["account"] != nil && a.Status != http.StatusForbidden && a.Audit == nil {
		t.Error("no audit line")
	}
	if a.Status == http.StatusCreated {
		f.checkCreated(t, a, rows)
	}
	replayed := a.Header["Idempotent-Replayed"]
	if replayed != "" && (replayed != "true" || a.Status != http.StatusCreated || f.idempotency == "" || a.Line["replayed"] != true) {
		t.Errorf("status %d, Idempotent-Replayed %q", a.Status, replayed)
	}
	return len(rows)
}

// checkCreated compares a 201 with the row of its credential, the request and the
// audit line.
func (f *fixture) checkCreated(t testing.TB, a functest.Answer, rows []byok.Stored) {
	t.Helper()
	var members map[string]map[string]any
	a.Decode(t, &members)
	functest.HasMembers(t, members["data"], "id", "name", "provider", "label", "workspace_id", "created_at", "disabled",
		"is_byok_only", "is_fallback", "is_required", "allowed_api_key_hashes", "allowed_models", "allowed_user_ids", "sort_order")
	var answered body
	a.Decode(t, &answered)
	c := answered.Data
	i := slices.IndexFunc(rows, func(r byok.Stored) bool { return r.ID == c.ID })
	if i < 0 {
		t.Fatalf("credential %s is not stored", c.ID)
	}
	if diff := cmp.Diff(c, newBody(rows[i].Credential).Data); diff != "" {
		t.Errorf("credential %s (-answered +stored):\n%s", c.ID, diff)
	}
	if c.Name != f.body["name"] || c.Label != "sk-...-end" || c.Provider != f.body["provider"] {
		t.Errorf("answered otherwise than sent: %+v", c)
	}
	replayed := a.Header["Idempotent-Replayed"] == "true"
	for field, want := range map[string]any{"operation": "createByokKey", "credential": string(c.ID), "workspace": string(c.WorkspaceID)} {
		if a.Audit[field] != want || (a.Audit["replayed"] == true) != replayed {
			t.Errorf("replayed: %v, %s %v, audit line %v", replayed, field, want, a.Audit)
		}
	}
}

// storedCredentials reads the credentials in the tenant's default workspace and checks
// that each of them is complete: its seal opens where it is stored and contains the key.
func storedCredentials(t testing.TB, env *functest.Env, tenant functest.Tenant, key string) []byok.Stored {
	t.Helper()
	rows, err := byok.ReadAll(t.Context(), env.DB, env.Engines.Tables.Credentials, tenant.ID, tenant.Workspace)
	testkit.Must(t, err)
	opener := seal.NewOpener(env.KMS, env.Engines.KeyARN)
	taken := map[int64]bool{}
	for _, r := range rows {
		opened, err := opener.Open(t.Context(), r.Sealed, r.Binding())
		if err != nil || string(opened.Reveal()) != key || taken[r.SortOrder] {
			t.Errorf("credential %+v opens as %q, %v; its sort_order is taken: %v", r, opened.Reveal(), err, taken[r.SortOrder])
		}
		taken[r.SortOrder] = true
	}
	return rows
}

// recordKey is the key of the record of the idempotent request.
func (f *fixture) recordKey() testkit.Row {
	return testkit.Key(string(byok.NewRequestID(string(auth.HashKey(f.token)), f.idempotency)))
}

func (f *fixture) control() testkit.Rows {
	return testkit.Rows{DB: f.env.DB, Table: f.env.Engines.Tables.Control}
}

func (f *fixture) hasRecord(t testing.TB) bool {
	t.Helper()
	return f.control().Get(t, f.recordKey()) != nil
}
