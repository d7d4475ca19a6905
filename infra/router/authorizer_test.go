package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

const (
	platformKey = "sk-platform"
	userHeader  = "X-Router-User"
)

// fixture is an account, and an authorizer. Its calls to AWS can be made to fail.
type fixture struct {
	testing.TB
	engines testkit.Engines
	tenant  testkit.Tenant
	token   string // a standard key of the account
	config  config
	reader  *routing.Reader
	faults  *faults.Transport
	log     *bytes.Buffer
	address string
	client  *http.Client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{TB: t, engines: testkit.Start(t), log: new(bytes.Buffer), client: &http.Client{Transport: &http.Transport{}}}
	f.tenant = testkit.NewTenant(t, auth.NewRegistry(dynamodb.NewFromConfig(f.engines.Config), f.engines.Tables.Access))
	f.token = f.tenant.StandardKey(t, "")
	f.faults = faults.Wrap(f.engines.Config.HTTPClient)
	keyFile := filepath.Join(t.TempDir(), "key")
	testkit.Must(t, os.WriteFile(keyFile, []byte(platformKey+"\n"), 0o600))
	var err error
	f.config, err = readConfig(strings.NewReader(strings.NewReplacer("ACCESS", f.engines.Tables.Access, "CREDENTIALS", f.engines.Tables.Credentials,
		"KEY_ARN", f.engines.KeyARN, "KEY_FILE", keyFile).Replace(`
listen: 127.0.0.1:0
stack: {AccessTableName: ACCESS, CredentialsTableName: CREDENTIALS, SealingKeyArn: "KEY_ARN"}
user_id_header: X-Router-User
max_body_bytes: 1000
plan_age: 1m
models:
  m: [openai, anthropic]
  n: [mistral]
providers:
  openai: {host: api.openai.example, key_file: KEY_FILE}
  anthropic: {host: api.anthropic.example, header: x-api-key}
  mistral: {host: api.mistral.example}
`)))
	testkit.Must(t, err)
	faulty := f.engines.Config
	faulty.HTTPClient = f.faults
	f.reader, err = routing.NewReader(dynamodb.NewFromConfig(faulty), kms.NewFromConfig(faulty), routing.Config{
		AccessTable: f.config.Stack.AccessTable, CredentialsTable: f.config.Stack.CredentialsTable, SealingKeyARNs: f.config.Stack.sealingKeys(),
	})
	testkit.Must(t, err)
	t.Cleanup(f.reader.Close)
	f.serve()
	return f
}

// serve starts a new authorizer. It does not stop a running one.
func (f *fixture) serve() {
	f.Helper()
	listener, err := (&net.ListenConfig{}).Listen(f.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(f, err)
	f.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- serve(ctx, newServer(f.config, f.reader, slog.New(slog.NewJSONHandler(f.log, nil))), listener)
	}()
	f.Cleanup(func() {
		f.client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
}

// store stores a credential with the key.
func (f *fixture) store(key string, settings byok.Settings) byok.Credential {
	f.Helper()
	return f.storeKey([]byte(key), settings)
}

func (f *fixture) storeKey(key []byte, settings byok.Settings) byok.Credential {
	f.Helper()
	store := byok.NewStore(dynamodb.NewFromConfig(f.engines.Config), f.engines.Tables.Credentials, f.engines.Tables.Control,
		seal.NewSealer(kms.NewFromConfig(f.engines.Config), f.engines.KeyARN))
	if settings.Provider == "" {
		settings.Provider = "openai"
	}
	draft, err := store.Seal(f.Context(), f.tenant.ID, f.tenant.Workspace, byok.New{Settings: settings, Key: secret.New(key)})
	testkit.Must(f, err)
	draft.SortOrder = time.Now().UnixNano()
	testkit.Must(f, store.Create(f.Context(), draft))
	return draft.Credential
}

// answer is a response as a router sees it.
type answer struct {
	status int
	reason string
	header http.Header
}

// send sends a request with these headers, each a name and a value.
func (f *fixture) send(method, path, body string, header ...string) (status int, responseHeader http.Header, text []byte) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, "http://"+f.address+path, strings.NewReader(body))
	testkit.Must(f, err)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	response, err := f.client.Do(r)
	testkit.Must(f, err)
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(response.Body)
	testkit.Must(f, err)
	return response.StatusCode, response.Header, text
}

// post sends a request as a router does.
func (f *fixture) post(path, body string, header ...string) (a answer) {
	f.Helper()
	var text []byte
	a.status, a.header, text = f.send(http.MethodPost, path, body, header...)
	if a.status != http.StatusOK {
		var envelope struct {
			Error struct {
				Code     int
				Metadata struct{ Reason string }
			}
		}
		if err := json.Unmarshal(text, &envelope); err != nil || envelope.Error.Code != a.status {
			f.Errorf("status %d with %q, %v", a.status, text, err)
		}
		a.reason = envelope.Error.Metadata.Reason
	}
	return a
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// plan plans a request for model m.
func (f *fixture) plan() (name string) {
	f.Helper()
	a := f.post("/plan/v1/chat", `{"model":"m"}`, bearer(f.token)...)
	if a.status != http.StatusOK {
		f.Fatalf("plan: %d %s", a.status, a.reason)
	}
	return a.header.Get("X-Signalbox-Plan")
}

func (f *fixture) open(plan string) answer {
	f.Helper()
	return f.post("/open/v1/chat", "", "X-Signalbox-Plan", plan)
}

func (a answer) is(t testing.TB, what string, status int, reason string) {
	t.Helper()
	if a.status != status || a.reason != reason {
		t.Errorf("%s: %d %q, want %d %q", what, a.status, a.reason, status, reason)
	}
	if isBearer := a.header.Get("WWW-Authenticate") == "Bearer"; isBearer != (status == http.StatusUnauthorized) {
		t.Errorf("%s: status %d, and WWW-Authenticate: Bearer is %t", what, status, isBearer)
	}
	if status != http.StatusOK && (a.header.Get("Authorization") != "" || a.header.Get("X-Api-Key") != "") {
		t.Errorf("%s: a refusal with a key", what)
	}
}

// isKey checks that the response has this key of the step, and nothing else.
func (a answer) isKey(t testing.TB, header, value, provider string, credential ids.Credential, attempt string) {
	t.Helper()
	a.is(t, provider, http.StatusOK, "")
	for name, want := range map[string]string{
		header: value, "X-Signalbox-Provider": provider, "X-Signalbox-Credential": string(credential), "X-Signalbox-Attempt": attempt,
		"X-Signalbox-Host": "api." + provider + ".example",
	} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestEachAttemptGetsItsKey(t *testing.T) {
	f := newFixture(t)
	second := f.store("sk-second", byok.Settings{Provider: "anthropic"})
	first := f.store("sk-first", byok.Settings{})
	last := f.store("sk-last", byok.Settings{Fallback: true})
	a := f.post("/plan/v1/chat", `{"model":"m","messages":[]}`, bearer(f.token)...)
	a.is(t, "plan", http.StatusOK, "")
	if got := a.header.Get("X-Envoy-Max-Retries"); got != "3" { // anthropic has no shared endpoint
		t.Errorf("%s retries", got)
	}
	plan := a.header.Get("X-Signalbox-Plan")
	f.open(plan).isKey(t, "Authorization", "Bearer sk-first", "openai", first.ID, "1")
	f.open(plan).isKey(t, "X-Api-Key", "sk-second", "anthropic", second.ID, "2")
	f.open(plan).isKey(t, "Authorization", "Bearer "+platformKey, "openai", "shared", "3")
	f.open(plan).isKey(t, "Authorization", "Bearer sk-last", "openai", last.ID, "4")
	f.open(plan).is(t, "after the last step", http.StatusServiceUnavailable, "unknown_plan")
	f.post("/open/v1/chat", `{"model":"m"}`, bearer(f.token)...).isKey(t, "Authorization", "Bearer sk-first", "openai", first.ID, "1")

	for request, want := range map[string]int{
		"GET /health": 200, "GET /metrics": 200, "GET /": 404, "GET /plan": 404, "GET /open/v1/chat": 404, "POST /health": 404, "POST /metrics": 404, "POST /plans": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		if status, _, _ := f.send(method, path, ""); status != want {
			t.Errorf("%s: %d, want %d", request, status, want)
		}
	}
	_, _, metrics := f.send(http.MethodGet, "/metrics", "")
	for _, line := range []string{
		`signalbox_router_opened_total{kind="credential",outcome="ok"} 4`, `signalbox_router_opened_total{kind="shared",outcome="ok"} 1`,
		`signalbox_router_decisions_total{path="/open",reason="unknown_plan",status="503"} 1`, "signalbox_router_kept_keys 3", "signalbox_router_plans 0",
	} {
		if !strings.Contains(string(metrics), line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, metrics)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	f.store("sk-only", byok.Settings{BYOKOnly: true, AllowedModels: []string{"other"}})
	f.store("sk-user", byok.Settings{Provider: "mistral", AllowedUserIDs: []string{"u"}})
	unbound, model := bearer(f.token), `{"model":"n"}`
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		reason string
	}{
		"no key":               {model, nil, 401, "missing"},
		"two keys":             {model, append(bearer(f.token), unbound...), 401, "malformed"},
		"an unknown key":       {model, bearer("sbx_unknown"), 401, "unknown_key"},
		"a disabled key":       {model, bearer(f.tenant.DisabledKey(t)), 401, "disabled"},
		"a management key":     {model, bearer(f.tenant.ManagementKey(t)), 403, "management_key"},
		"no user":              {model, unbound, 403, "no_step"},
		"an empty user":        {model, append(bearer(f.token), userHeader, ""), 403, "no_step"},
		"another user":         {model, append(bearer(f.token), userHeader, "U"), 403, "no_step"},
		"two users":            {model, append(bearer(f.token), userHeader, "u", userHeader, "u"), 400, "repeated_user_id"},
		"the user":             {model, append(bearer(f.token), userHeader, "u"), 200, ""},
		"a closed provider":    {`{"model":"m"}`, unbound, 403, "no_step"},
		"an unknown model":     {`{"model":"o"}`, unbound, 404, "unknown_model"},
		"no body":              {``, unbound, 400, "malformed_body"},
		"no object":            {`["model","n"]`, unbound, 400, "malformed_body"},
		"no model":             {`{"x":{"model":"n"}}`, unbound, 400, "malformed_body"},
		"an empty model":       {`{"model":""}`, unbound, 400, "malformed_body"},
		"a model of a number":  {`{"model":1}`, unbound, 400, "malformed_body"},
		"two models":           {`{"model":"n","model":"n"}`, unbound, 400, "malformed_body"},
		"two models, escaped":  {`{"model":"n","m\u006fdel":"m"}`, unbound, 400, "malformed_body"},
		"two models, by case":  {`{"Model":"m","model":"n"}`, unbound, 400, "malformed_body"},
		"a name in capitals":   {`{"MODEL":"n"}`, unbound, 400, "malformed_body"},
		"trailing data":        {`{"model":"n"}{}`, unbound, 400, "malformed_body"},
		"half a body":          {`{"model":"n"`, unbound, 400, "malformed_body"},
		"invalid UTF-8":        {"{\"model\":\"n\",\"x\":\"\xff\"}", unbound, 400, "malformed_body"},
		"too large a body":     {`{"model":"n","x":"` + strings.Repeat("x", 1000) + `"}`, unbound, 413, "body_too_large"},
		"an unknown caller's ": {``, bearer("sbx_unknown"), 401, "unknown_key"},
	} {
		for _, path := range []string{"/plan/v1/chat", "/plan", "/plan//a/../b"} {
			a := f.post(path, c.body, c.header...)
			a.is(t, name+" "+path, c.status, c.reason)
			if (a.header.Get("X-Signalbox-Plan") == "") != (c.status != 200) {
				t.Errorf("%s: a plan %q", name, a.header.Get("X-Signalbox-Plan"))
			}
		}
		if c.status != 200 {
			f.post("/open/v1/chat", c.body, c.header...).is(t, name+", opened", c.status, c.reason)
		}
	}
}

// Only its caller can use a plan, and only for a limited time.
func TestAPlanIsItsCallersOwn(t *testing.T) {
	f := newFixture(t)
	f.store("sk-first", byok.Settings{})
	stranger := f.tenant.StandardKey(t, "")
	plan := f.plan()
	unknown := func(what string, header ...string) {
		t.Helper()
		f.post("/open", `{"model":"m"}`, header...).is(t, what, http.StatusServiceUnavailable, "unknown_plan")
	}
	unknown("another's key", append(bearer(stranger), "X-Signalbox-Plan", plan)...)
	unknown("a malformed key", "Authorization", "x", "X-Signalbox-Plan", plan)
	unknown("two plans", "X-Signalbox-Plan", plan, "X-Signalbox-Plan", plan)
	unknown("an unknown plan", append(bearer(f.token), "X-Signalbox-Plan", "x")...)
	f.post("/open", "", append(bearer(f.token), "X-Signalbox-Plan", plan)...).is(t, "its own", http.StatusOK, "")
	plan = f.plan()
	f.serve()
	unknown("a plan from before a restart", append(bearer(f.token), "X-Signalbox-Plan", plan)...)
	f.config.MaxPlans, f.config.PlanAge = 2, time.Nanosecond
	f.serve()
	unknown("an old plan", append(bearer(f.token), "X-Signalbox-Plan", f.plan())...)
	f.config.PlanAge = time.Minute
	f.serve()
	first, second, third := f.plan(), f.plan(), f.plan()
	unknown("one plan too many", "X-Signalbox-Plan", first)
	for _, plan := range []string{second, third} {
		f.open(plan).is(t, "within the bound", http.StatusOK, "")
	}
}

// Revocation takes effect at the next request, and at the next attempt of the same one.
func TestRevocation(t *testing.T) {
	f := newFixture(t)
	c := f.store("sk-first", byok.Settings{})
	f.store("sk-second", byok.Settings{})
	withdrawn := func(what, plan string) {
		t.Helper()
		f.open(plan).is(t, what, http.StatusServiceUnavailable, "step_withdrawn")
	}
	plan := f.plan()
	f.open(plan).is(t, "the first attempt", http.StatusOK, "")
	f.store("sk-third", byok.Settings{BYOKOnly: true})
	f.open(plan).is(t, "the second credential", http.StatusOK, "")
	withdrawn("the shared endpoint", plan)

	plan = f.plan()
	f.open(plan).is(t, "the first attempt", http.StatusOK, "")
	f.tenant.Disable(t, f.token)
	withdrawn("a disabled API key", plan)
	f.token = f.tenant.StandardKey(t, "")
	manager := byok.NewManager(dynamodb.NewFromConfig(f.engines.Config), f.engines.Tables.Credentials)
	testkit.Must(t, manager.Disable(t.Context(), f.tenant.Workspace, c.ID))
	if a := f.open(f.plan()); a.header.Get("Authorization") != "Bearer sk-second" {
		t.Errorf("%+v", a)
	}
	f.tenant.DeleteWorkspace(t, f.tenant.Workspace)
	f.post("/plan", `{"model":"m"}`, bearer(f.token)...).is(t, "a deleted workspace", http.StatusForbidden, "no_workspace")
}

func TestKeysThatNoHeaderCarries(t *testing.T) {
	for key, fits := range map[string]bool{
		"sk-1": true, "a b": true, "~!": true,
		"sk-1\n": false, "a\nb": false, " a": false, "a ": false, "a\tb": false, "a\x00": false, "\x7f": false, "é": false, "": false,
	} {
		if fitsHeader([]byte(key)) != fits {
			t.Errorf("%q", key)
		}
	}
	f := newFixture(t)
	c := f.store("{\n}", byok.Settings{})
	f.open(f.plan()).is(t, "a document", http.StatusServiceUnavailable, "key_is_no_header")
	if log := f.log.String(); !strings.Contains(log, string(c.ID)) || strings.Contains(log, `{\n}`) {
		t.Errorf("logged %s", log)
	}
}

// Without DynamoDB or KMS no key is sent, not even the platform's.
func TestOutages(t *testing.T) {
	f := newFixture(t)
	f.store("sk-first", byok.Settings{})
	for _, fault := range []faults.Fault{faults.Refuse(), faults.EmptyAnswer(), faults.Throttle(), faults.Answer(500, "InternalServerError", "no")} {
		for _, operation := range []string{"GetItem", "Query"} {
			f.faults.Inject(faults.Rule{Operation: operation, Fault: fault})
			for _, path := range []string{"/plan", "/open"} {
				f.post(path, `{"model":"m"}`, bearer(f.token)...).is(t, operation, http.StatusServiceUnavailable, "unavailable")
			}
			f.faults.Heal()
		}
		f.faults.Inject(faults.Rule{Operation: "Decrypt", Fault: fault})
		plan := f.plan()
		f.open(plan).is(t, "Decrypt", http.StatusServiceUnavailable, "unavailable")
		f.faults.Heal()
	}
	// The turn is spent: the router must not ask again for the same step.
	plan := f.plan()
	f.faults.Inject(faults.Rule{Operation: "Query", Fault: faults.Refuse()})
	f.open(plan).is(t, "just planned", http.StatusOK, "")
	f.open(plan).is(t, "the second attempt", http.StatusServiceUnavailable, "unavailable")
	f.faults.Heal()
	if log := f.log.String(); strings.Contains(log, `"stack"`) {
		t.Errorf("an outage caused a panic: %s", log)
	}
	f.faults.Inject(faults.Rule{Operation: "Query", Fault: func(*http.Request, faults.Apply) (*http.Response, error) { panic("sk-secret") }})
	f.post("/plan", `{"model":"m"}`, bearer(f.token)...).is(t, "a panic", http.StatusServiceUnavailable, "unavailable")
	if log := f.log.String(); !strings.Contains(log, `"stack":"goroutine`) || strings.Contains(log, "sk-") {
		t.Errorf("logged %s", log)
	}
	testkit.Must(t, os.WriteFile(f.config.Providers["openai"].KeyFile, nil, 0o600))
	f.token = f.tenant.StandardKey(t, f.tenant.NewWorkspace(t)) // without credentials
	f.faults.Heal()
	f.open(f.plan()).is(t, "an empty platform key", http.StatusServiceUnavailable, "unavailable")
}

// Only one buffer holds a key while it is written, and it is wiped.
func TestNoCopyOfAKeyIsLeft(t *testing.T) {
	if !testkit.Uninterrupted(t) {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collected memory might have held a copy
	f := newFixture(t)
	key := testkit.NewMasked(48)
	plain := key.Append(make([]byte, 0, len(key)))
	f.storeKey(plain, byok.Settings{})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.address)
	testkit.Must(t, err)
	defer func() { _ = c.Close() }()
	buffer := make([]byte, 4096)
	send := func(request string) (response []byte) {
		_, err := io.WriteString(c, request)
		testkit.Must(t, err)
		n := 0
		for !bytes.HasSuffix(buffer[:n], []byte("\r\n\r\n")) {
			read, err := c.Read(buffer[n:])
			testkit.Must(t, err)
			n += read
		}
		return buffer[:n]
	}
	for range 100 {
		response := send("POST /open HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\nAuthorization: Bearer " + f.token + "\r\n\r\n{\"model\":\"m\"}")
		if !bytes.Contains(response, plain) {
			t.Error("a response without the key")
		}
		clear(response)
	}
	clear(plain)
	// The server wipes a key after writing it. It serves a connection's requests one after
	// the other: after the next response, the last key is wiped.
	send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
	f.reader.Close()
	if n := key.Copies(testkit.Heap(t)); n != 0 {
		t.Errorf("%d copies are left", n)
	}
}

// The rows of a plan serve only its first turn, for two seconds.
func TestPlansForgetTheirRows(t *testing.T) {
	for wait, kept := range map[time.Duration]bool{byok.ReadTime - 1: true, byok.ReadTime + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlans(1, time.Minute)
			name := p.add(plan{steps: make([]routing.Step, 2), reading: new(routing.Reading)})
			time.Sleep(wait)
			synctest.Wait()
			anybody := func(*routing.Caller) bool { return true }
			if first, ok := p.take(name, anybody); !ok || (first.reading != nil) != kept {
				t.Errorf("after %v: %v, with rows: %v", wait, ok, first.reading != nil)
			}
			if second, ok := p.take(name, anybody); !ok || second.reading != nil {
				t.Errorf("the second turn: %v, with rows: %v", ok, second.reading != nil)
			}
			if p.count() != 0 {
				t.Errorf("%d plans are left", p.count())
			}
		})
	}
}
