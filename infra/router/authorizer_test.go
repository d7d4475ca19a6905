package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

const (
	platformKey = `"sk-platform"` // odd: it may be right, so it is sent
	userHeader  = "X-Router-User"
)

// fixture is an account, and an authorizer. Its calls to AWS can be made to fail.
type fixture struct {
	testing.TB
	engines    kit.Engines
	tenant     kit.Tenant
	token      string // a standard key of the account
	file       string
	config     config
	authorizer *authorizer
	faults     *faults.Transport
	log        *bytes.Buffer
	address    string
	client     *http.Client

	readTime time.Duration // 0: the server's own
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{TB: t, engines: kit.Start(t), log: new(bytes.Buffer), client: &http.Client{Transport: &http.Transport{}}}
	f.tenant = kit.NewTenant(t, auth.NewRegistry(dynamodb.NewFromConfig(f.engines.Config), f.engines.Tables.Access))
	f.token = f.tenant.StandardKey(t, "")
	f.faults = faults.Wrap(f.engines.Config.HTTPClient)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "key"), platformKey+"\n")
	write(t, filepath.Join(folder, "names"), newNameKey()+"\n")
	f.file = filepath.Join(folder, "router.yaml")
	write(t, f.file, strings.NewReplacer("ACCESS", f.engines.Tables.Access, "CREDENTIALS", f.engines.Tables.Credentials,
		"KEY_ARN", f.engines.Tables.SealingKey, "FOLDER", folder).Replace(`
listen: 127.0.0.1:0
name_keys_file: FOLDER/names
stack: {AccessTableName: ACCESS, CredentialsTableName: CREDENTIALS, SealingKeyArn: "KEY_ARN"}
user_id_header: X-Router-User
max_body_bytes: 1000
models:
  m: [openai, anthropic]
  n: [mistral]
  o: [groq]
providers:
  openai: {key_file: FOLDER/key}
  anthropic: {header: x-api-key}
  mistral: {paths: {/m/v1: [chat/completions]}, document: {key: api_key, region: region, regions: [eu], hosts: ['*.mistral.example']}}
  groq: {header: x-aigw-api-key}
`))
	var err error
	f.config, err = readConfig(f.file)
	kit.Must(t, err)
	f.serve()
	return f
}

// serve starts a new authorizer. It does not stop a running one.
func (f *fixture) serve() {
	f.Helper()
	listener, err := (&net.ListenConfig{}).Listen(f.Context(), "tcp", "127.0.0.1:0")
	kit.Must(f, err)
	f.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	faulty := f.engines.Config
	faulty.HTTPClient = f.faults
	log := slog.New(slog.NewJSONHandler(f.log, nil))
	f.authorizer, err = newAuthorizer(f.config, faulty, log)
	kit.Must(f, err)
	f.Cleanup(f.authorizer.reader.Close)
	ended := make(chan error)
	server := newServer(f.authorizer, log)
	server.ReadTimeout = cmp.Or(f.readTime, server.ReadTimeout)
	go func() { ended <- serve(ctx, server, listener, f.config.MaxConnections) }()
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
	return storeKey(f, f.engines, f.tenant, []byte(key), settings)
}

// storeKey stores a credential in the tenant's workspace, for OpenAI unless the settings say more.
func storeKey(t testing.TB, e kit.Engines, of kit.Tenant, key []byte, settings byok.Settings) byok.Credential {
	t.Helper()
	store := byok.NewStore(dynamodb.NewFromConfig(e.Config), e.Tables.Credentials, e.Tables.Control, seal.NewSealer(kms.NewFromConfig(e.Config), e.Tables.SealingKey))
	if settings.Provider == "" {
		settings.Provider = "openai"
	}
	draft, err := store.Seal(t.Context(), of.ID, of.Workspace, byok.New{Settings: settings, Key: secret.New(key)})
	kit.Must(t, err)
	draft.SortOrder = time.Now().UnixNano()
	kit.Must(t, store.Create(t.Context(), draft))
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
	kit.Must(f, err)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	response, err := f.client.Do(r)
	kit.Must(f, err)
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(response.Body)
	kit.Must(f, err)
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

// open asks for the key of an attempt, as Envoy counts it.
func (f *fixture) open(plan string, attempt int) answer {
	f.Helper()
	return f.post("/open/v1/chat", "", "X-Signalbox-Plan", plan, "X-Envoy-Attempt-Count", strconv.Itoa(attempt))
}

func write(t testing.TB, file, text string) {
	t.Helper()
	kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
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
func (a answer) isKey(t testing.TB, header, value, provider string, credential ids.Credential, servedBy string) {
	t.Helper()
	a.is(t, provider, http.StatusOK, "")
	for name, want := range map[string]string{
		header: value, "X-Signalbox-Provider": provider, "X-Signalbox-Credential": string(credential), "X-Signalbox-Served-By": servedBy,
	} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestEachAttemptGetsItsKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	second := f.store("sk-second", byok.Settings{Provider: "anthropic"})
	first := f.store("sk-first", byok.Settings{AllowedAPIKeyHashes: []ids.KeyHash{auth.HashKey(f.token)}})
	last := f.store("sk-last", byok.Settings{Fallback: true})
	a := f.post("/plan/v1/chat", `{"model":"m","messages":[]}`, bearer(f.token)...)
	a.is(t, "plan", http.StatusOK, "")
	if got := a.header.Get("X-Envoy-Max-Retries"); got != "3" { // anthropic has no shared endpoint
		t.Errorf("%s retries", got)
	}
	plan := a.header.Get("X-Signalbox-Plan")
	for _, header := range []http.Header{a.header, f.open(plan, 1).header, f.open(plan, 2).header} {
		if header.Get("X-Signalbox-Account") != string(f.tenant.ID) || header.Get("X-Signalbox-Workspace") != string(f.tenant.Workspace) ||
			header.Get("X-Signalbox-Key") != auth.HashKey(f.token).Short() {
			t.Errorf("for the log: %v", header)
		}
	}
	f.open(plan, 1).isKey(t, "Authorization", "Bearer sk-first", "openai", first.ID, "own")
	f.open(plan, 2).isKey(t, "X-Api-Key", "sk-second", "anthropic", second.ID, "own")
	f.open(plan, 3).isKey(t, "Authorization", "Bearer "+platformKey, "openai", "shared", "platform")
	f.open(plan, 4).isKey(t, "Authorization", "Bearer sk-last", "openai", last.ID, "own")
	f.open(plan, 5).is(t, "after the last step", http.StatusForbidden, "unknown_attempt")
	f.post("/open/v1/chat", `{"model":"m"}`, bearer(f.token)...).isKey(t, "Authorization", "Bearer sk-first", "openai", first.ID, "own")
	// Without a plan, and for the bare key in a header of its own.
	other := f.store("sk-other", byok.Settings{Provider: "groq"})
	f.post("/open/v1/chat/completions", `{"model":"o"}`, bearer(f.token)...).isKey(t, "X-Aigw-Api-Key", "sk-other", "groq", other.ID, "own")

	for request, want := range map[string]int{
		"GET /health": 200, "GET /metrics": 200, "GET /ready": 503, "GET /": 404, "GET /plan": 401, "POST /health": 404, "POST /metrics": 404, "POST /plans": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		if status, _, _ := f.send(method, path, ""); status != want {
			t.Errorf("%s: %d, want %d", request, status, want)
		}
	}
	if log := f.log.String(); strings.Count(log, `"provider":"openai"`) != 1 || strings.Contains(log, "sk-") {
		t.Errorf("of an odd platform key: logged %s", log)
	}
	_, _, metrics := f.send(http.MethodGet, "/metrics", "")
	for _, line := range []string{
		`signalbox_router_opened_total{kind="credential",outcome="ok"} 7`, `signalbox_router_opened_total{kind="shared",outcome="ok"} 1`,
		`signalbox_router_decisions_total{path="/open",reason="unknown_attempt",status="403"} 1`, "signalbox_router_kept_keys 4",
		`signalbox_router_aws_call_seconds_count{operation="Decrypt",outcome="ok",service="KMS"} 4`, "go_goroutines ", "process_open_fds ",
		"# TYPE signalbox_router_decisions_total counter", "# TYPE signalbox_router_aws_call_seconds histogram",
	} {
		if !strings.Contains(string(metrics), "\n"+line) {
			t.Errorf("the metrics lack %s:\n%s", line, metrics)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
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
		"no key":                      {model, nil, 401, "missing"},
		"two keys":                    {model, append(bearer(f.token), unbound...), 401, "malformed"},
		"an unknown key":              {model, bearer("sbx_unknown"), 401, "unknown_key"},
		"a disabled key":              {model, bearer(f.tenant.DisabledKey(t)), 401, "disabled"},
		"a management key":            {model, bearer(f.tenant.ManagementKey(t)), 403, "management_key"},
		"no user":                     {model, unbound, 403, "no_step"},
		"an empty user":               {model, append(bearer(f.token), userHeader, ""), 403, "no_step"},
		"another user":                {model, append(bearer(f.token), userHeader, "U"), 403, "no_step"},
		"two users":                   {model, append(bearer(f.token), userHeader, "u", userHeader, "u"), 400, "repeated_user_id"},
		"the user":                    {model, append(bearer(f.token), userHeader, "u"), 200, ""},
		"a closed provider":           {`{"model":"m"}`, unbound, 403, "no_step"},
		"an unknown model":            {`{"model":"unknown"}`, unbound, 404, "unknown_model"},
		"no body":                     {``, unbound, 400, "malformed_body"},
		"a coded body":                {model, append(bearer(f.token), "Content-Encoding", "gzip"), 400, "content_encoding"},
		"too large a body":            {`{"model":"n","x":"` + strings.Repeat("x", 1000) + `"}`, unbound, 413, "body_too_large"},
		"a part of a body":            {`{"model":"n",`, append(bearer(f.token), "X-Envoy-Auth-Partial-Body", "true"), 413, "body_too_large"},
		"a whole body":                {model, append(bearer(f.token), userHeader, "u", "X-Envoy-Auth-Partial-Body", "false", "Content-Encoding", "identity"), 200, ""},
		"an unknown caller's no body": {``, bearer("sbx_unknown"), 401, "unknown_key"},
		"a manager's no body":         {``, bearer(f.tenant.ManagementKey(t)), 403, "management_key"},
	} {
		a := f.post("/plan//a/../b", c.body, c.header...)
		a.is(t, name, c.status, c.reason)
		if a.header.Get("X-Signalbox-Reason") != c.reason {
			t.Errorf("%s: for the log %q", name, a.header.Get("X-Signalbox-Reason"))
		}
		if isNamed := a.header.Get("X-Signalbox-Account") == string(f.tenant.ID); isNamed != (c.status != 401 && c.reason != "management_key") {
			t.Errorf("%s: the account is named: %t", name, isNamed)
		}
		if counts := a.header.Get("X-Signalbox-Skipped"); c.reason == "no_step" && counts != map[bool]string{true: "model 1, shared_endpoint 1", false: "user 1"}[name == "a closed provider"] {
			t.Errorf("%s: for the log %q", name, counts)
		}
		if (a.header.Get("X-Signalbox-Plan") == "") != (c.status != 200) {
			t.Errorf("%s: a plan %q", name, a.header.Get("X-Signalbox-Plan"))
		}
		if c.status != 200 {
			f.post("/open/v1/chat", c.body, c.header...).is(t, name+", opened", c.status, c.reason)
		}
		if c.status == 401 || c.reason == "management_key" {
			f.post("/who/v1/chat", "", c.header...).is(t, name+", before the body", c.status, c.reason)
		}
	}
	if log := f.log.String(); !strings.Contains(log, `"reason":"no_step","error":{"text":"credentials in no step: user 1"}`) {
		t.Errorf("logged %s", log)
	}
}

// Only its caller can use a plan, for a limited time and for its own attempts. Each
// authorizer with the same name keys serves it.
func TestAPlanIsItsCallersOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store("sk-first", byok.Settings{})
	stranger := f.tenant.StandardKey(t, "")
	plan := f.plan()
	refused := func(what, reason string, header ...string) {
		t.Helper()
		f.post("/open", `{"model":"m"}`, header...).is(t, what, http.StatusForbidden, reason)
	}
	first := []string{"X-Envoy-Attempt-Count", "1", "X-Signalbox-Plan"}
	refused("another's key", "unknown_plan", append(bearer(stranger), append(first, plan)...)...)
	refused("a malformed key", "unknown_plan", append(first, plan, "Authorization", "x")...)
	refused("two plans", "unknown_plan", append(first, plan, "X-Signalbox-Plan", plan)...)
	refused("a forged plan", "unknown_plan", append(first, plan[1:])...) // TestNames forges more
	for _, count := range [][]string{{}, {"0"}, {"3"}, {"-1"}, {"+1"}, {"01"}, {" 1 1"}, {"1.0"}, {""}, {"1", "1"}, {"99999999999999999999"}} {
		header := []string{"X-Signalbox-Plan", plan}
		for _, c := range count {
			header = append(header, "X-Envoy-Attempt-Count", c)
		}
		refused("attempt "+strings.Join(count, ", "), "unknown_attempt", header...)
	}
	f.post("/open", "", append(bearer(f.token), append(first, plan)...)...).is(t, "its own", http.StatusOK, "")
	other := f.plan()
	if other == plan {
		t.Error("equal requests have one name")
	}
	f.config.nameKeys = append(nameKeys{[]byte(strings.Repeat("k", nameKeySize))}, f.config.nameKeys...)
	f.serve()
	f.open(other, 1).is(t, "after a restart, with another first key", http.StatusOK, "")
	f.open(other, 2).is(t, "its second attempt", http.StatusOK, "")
	f.open(f.plan(), 2).is(t, "a second attempt whose first one another authorizer has served", http.StatusOK, "")
	f.config.nameKeys = f.config.nameKeys[:1]
	f.serve()
	f.open(other, 1).is(t, "without its key", http.StatusForbidden, "unknown_plan")
	f.config.PlanAge = time.Nanosecond
	f.serve()
	f.open(f.plan(), 1).is(t, "an old plan", http.StatusForbidden, "unknown_plan")
}

// A name holds a plan of any size in few characters, and what is signed is what is read.
func TestNames(t *testing.T) {
	keys, err := readNameKeys([]byte(newNameKey() + "\r\n" + newNameKey()))
	kit.Must(t, err)
	for steps, most := range map[int]int{1: 260, 10: 400, 100: 1800} {
		signed := ticket{Made: 1_800_000_000_123, Caller: auth.HashKey("k"), Model: "gpt-5.2", UserID: []byte{0xff}, Steps: make([]stepID, steps)}
		for i := range signed.Steps {
			signed.Steps[i] = idOf(routing.Step{Provider: "openai", Credential: ids.Credential(strconv.Itoa(i))})
		}
		name := keys.sign(signed)
		got, ok := keys[:1].read(name)
		signed.Random = got.Random
		if !ok || !reflect.DeepEqual(got, signed) || len(name) > most {
			t.Errorf("%d steps: %+v, %t, of %+v in %d characters", steps, got, ok, signed, len(name))
		}
		if _, ok := keys[1:].read(name); ok {
			t.Error("another key verifies it")
		}
		if keys.sign(signed) == name {
			t.Error("equal requests have one name, and so one reading")
		}
		for i := range name { // each character counts
			other := []byte(name)
			other[i] ^= 1
			if _, ok := keys.read(string(other)); ok {
				t.Fatalf("character %d is not signed", i)
			}
		}
	}
	for _, file := range []string{"", "\n", "AAAA\n", newNameKey() + "\n\n", newNameKey() + "A"} {
		if _, err := readNameKeys([]byte(file)); err == nil {
			t.Errorf("a file of %q", file)
		}
	}
}

// Each attempt is decided by the rows as they are then: a withdrawn step is passed over, a
// successor serves in its predecessor's place, and a request without a step left ends.
func TestChangesBetweenAttempts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	manager := byok.NewManager(dynamodb.NewFromConfig(f.engines.Config), f.engines.Tables.Credentials)
	first, second := f.store("sk-first", byok.Settings{}), f.store("sk-second", byok.Settings{})
	sends := func(what, plan string, attempt int, key string) {
		t.Helper()
		if a := f.open(plan, attempt); a.header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s: %+v, want %s", what, a, key)
		}
	}
	plan := f.plan()
	sends("the first attempt", plan, 1, "sk-first")
	third := f.store("sk-third", byok.Settings{})
	_, err := manager.Supersede(t.Context(), calls.Wait, f.tenant.Workspace, second.ID, third.ID)
	kit.Must(t, err)
	sends("superseded", plan, 2, "sk-third")
	sends("the shared endpoint after it", plan, 3, "sk-third") // it was not in the plan as it was made

	plan = f.plan()
	sends("the first attempt", plan, 1, "sk-first")
	kit.Must(t, manager.Disable(t.Context(), f.tenant.Workspace, third.ID))
	sends("disabled", plan, 2, platformKey)
	f.store("sk-only", byok.Settings{Provider: "openai", BYOKOnly: true, AllowedModels: []string{}})
	f.open(plan, 3).is(t, "no step is left", http.StatusForbidden, "no_step")
	kit.Must(t, manager.Disable(t.Context(), f.tenant.Workspace, first.ID))
	f.post("/plan", `{"model":"m"}`, bearer(f.token)...).is(t, "the next request", http.StatusForbidden, "no_step")

	f.store("sk-last", byok.Settings{})
	plan = f.plan()
	f.tenant.Disable(t, f.token)
	sends("just planned", plan, 1, "sk-last")
	f.open(plan, 1).is(t, "a disabled API key", http.StatusUnauthorized, "disabled")
	f.token = f.tenant.StandardKey(t, "")
	f.tenant.DeleteWorkspace(t, f.tenant.Workspace)
	f.post("/plan", `{"model":"m"}`, bearer(f.token)...).is(t, "a deleted workspace", http.StatusForbidden, "no_workspace")
}

func TestKeysThatAreNotSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.store("Bearer sbx_0123456789-abcdefghijklmnopqrstuvwxyz_ABCDE", byok.Settings{})
	a := f.open(f.plan(), 1)
	a.is(t, "an API key of Signalbox", http.StatusUnprocessableEntity, "key_is_signalbox_key")
	if got := a.header.Get("X-Signalbox-Credential"); got != string(c.ID) {
		t.Errorf("for the log: %q", got)
	}
	if log := f.log.String(); !strings.Contains(log, string(c.ID)) || strings.Contains(log, "sbx_") {
		t.Errorf("logged %s", log)
	}

	// A router that does not know documents would send the key to the provider's own host.
	c = f.store(`{"api_key":"sk-eu","region":"eu"}`, byok.Settings{Provider: "mistral"})
	ask := append(bearer(f.token), "X-Signalbox-Documents", "host")
	f.post("/open/v1/embeddings", `{"model":"n"}`, ask...).is(t, "a call that the provider has not", http.StatusNotFound, "unknown_call")
	f.post("/open/v1/chat/completions", `{"model":"n"}`, ask[:2]...).is(t, "without the router's word", http.StatusUnprocessableEntity, "key_is_document")
	a = f.post("/open/v1/chat/completions", `{"model":"n"}`, ask...)
	a.isKey(t, "Authorization", "Bearer sk-eu", "mistral", c.ID, "own")
	if host, path := a.header.Get("X-Signalbox-Host"), a.header.Get("X-Signalbox-Path"); host != "eu.mistral.example" || path != "/m/v1/chat/completions" {
		t.Errorf("the key goes to %s%s", host, path)
	}
}

// Without DynamoDB or KMS no key is sent, not even the platform's.
func TestOutages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store("sk-first", byok.Settings{})
	for _, fault := range []faults.Fault{faults.Refuse(), faults.EmptyAnswer()} {
		for _, operation := range []string{"GetItem", "Query"} {
			f.faults.Inject(faults.Rule{Operation: operation, Fault: fault})
			for _, path := range []string{"/plan", "/open"} {
				f.post(path, `{"model":"m"}`, bearer(f.token)...).is(t, operation, http.StatusServiceUnavailable, "unavailable")
			}
			f.faults.Heal()
		}
		f.faults.Inject(faults.Rule{Operation: "Decrypt", Fault: fault})
		f.open(f.plan(), 1).is(t, "Decrypt", http.StatusServiceUnavailable, "unavailable")
		f.faults.Heal()
	}
	plan := f.plan()
	f.faults.Inject(faults.Rule{Operation: "Query", Fault: faults.Refuse()})
	// No row of the workspace is read for a body that cannot be served, or again for the first attempt.
	f.post("/plan", "{", bearer(f.token)...).is(t, "a malformed body", http.StatusBadRequest, "malformed_body")
	f.post("/plan", `{"model":"unknown"}`, bearer(f.token)...).is(t, "an unknown model", http.StatusNotFound, "unknown_model")
	f.open(plan, 1).is(t, "just planned", http.StatusOK, "")
	f.open(plan, 2).is(t, "the second attempt", http.StatusServiceUnavailable, "unavailable")
	f.faults.Heal()
	if log := f.log.String(); strings.Contains(log, `"stack"`) {
		t.Errorf("an outage caused a panic: %s", log)
	}
	const requestID = "0a1b2c3d-0000-4000-8000-000000000000"
	f.config.Providers["openai"] = nil
	f.post("/open", `{"model":"m"}`, append(bearer(f.token), "X-Request-Id", requestID)...).is(t, "a panic", http.StatusServiceUnavailable, "unavailable")
	if log := f.log.String(); !strings.Contains(log, `"request":"`+requestID+`","stack":"goroutine`) || strings.Contains(log, "sk-") {
		t.Errorf("logged %s", log)
	}
}

// The router sends a body that it has whole: if that takes too long, the caller is not at
// fault.
func TestASlowBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.readTime = 100 * time.Millisecond
	f.serve()
	for token, want := range map[string]string{f.token: "503 slow_body", "sbx_unknown": "401 unknown_key"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.address)
		kit.Must(t, err)
		_, err = io.WriteString(c, "POST /plan HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\nAuthorization: Bearer "+token+"\r\n\r\n{\"model\":")
		kit.Must(t, err)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		kit.Must(t, err)
		if got := strconv.Itoa(response.StatusCode) + " " + response.Header.Get("X-Signalbox-Reason"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		kit.Must(t, errors.Join(response.Body.Close(), c.Close()))
	}
	if log := f.log.String(); strings.Count(log, "slow_body") != 1 || strings.Contains(log, "model") {
		t.Errorf("logged %s", log)
	}
}

// A retry does not help if a row is damaged.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.store("sk-first", byok.Settings{})
	rows := kit.Rows{DB: dynamodb.NewFromConfig(f.engines.Config), Table: f.engines.Tables.Credentials}
	at := kit.Key("workspace#"+string(f.tenant.Workspace), "credential#"+string(c.ID))
	rows.Change(t, at, func(row kit.Row) {
		row["seal"].(*types.AttributeValueMemberM).Value["nonce"] = &types.AttributeValueMemberB{Value: make([]byte, 12)}
	})
	f.open(f.plan(), 1).is(t, "a damaged seal", http.StatusUnprocessableEntity, "damaged_key")
	rows.Set(t, at, "disabled", kit.Text("no"))
	f.post("/plan", `{"model":"m"}`, bearer(f.token)...).is(t, "a damaged flag", http.StatusUnprocessableEntity, "damaged_row")
	if r := refusalOf(routing.ErrTooMany); r.status != http.StatusUnprocessableEntity || r.reason != "workspace_too_large" {
		t.Errorf("more than a page: %d %s", r.status, r.reason)
	}
	if log := f.log.String(); strings.Count(log, "refused") != 2 {
		t.Errorf("logged %s", log)
	}
}

// Only one buffer holds a key while it is written, and it is wiped.
func TestNoCopyOfAKeyIsLeft(t *testing.T) {
	t.Parallel() // the process that is looked at runs nothing else
	if !kit.Uninterrupted(t) {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collected memory might have held a copy
	f := newFixture(t)
	key := kit.NewMasked(48)
	plain := key.Append(make([]byte, 0, len(key)))
	storeKey(f, f.engines, f.tenant, plain, byok.Settings{})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.address)
	kit.Must(t, err)
	defer func() { _ = c.Close() }()
	buffer := make([]byte, 4096)
	send := func(request string) (response []byte) {
		_, err := io.WriteString(c, request)
		kit.Must(t, err)
		n := 0
		for !bytes.HasSuffix(buffer[:n], []byte("\r\n\r\n")) {
			read, err := c.Read(buffer[n:])
			kit.Must(t, err)
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
	f.authorizer.reader.Close()
	if n := key.Copies(kit.Heap(t)); n != 0 {
		t.Errorf("%d copies are left", n)
	}
}

// Finished requests leave nothing, and kept readings are bounded.
func TestReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r readings
		for n := range mostReadings + 10 {
			r.keep(strconv.Itoa(n), new(routing.Reading))
		}
		r.mu.Lock() // timers are under way
		if n := len(r.all); n != mostReadings {
			t.Errorf("%d are kept", n)
		}
		r.mu.Unlock()
		time.Sleep(byok.ReadTime)
		synctest.Wait()
		if n := len(r.all); n != 0 {
			t.Errorf("%d are left after two seconds", n)
		}
	})
}
