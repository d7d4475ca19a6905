package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

const (
	envoyBinary  = "../../.build/routers/bin/envoy"
	routerBinary = "../../.build/router"
	envoyURL     = "http://127.0.0.1:9100" // of envoy.yaml
	chat         = "/v1/chat/completions"
	most         = 4 << 20 // bytes of a body
)

// process is a program that can be killed and started again.
type process struct {
	testing.TB
	log     string
	command []string
	env     []string
	url     string // 200 once it is ready
	running *exec.Cmd
}

func (p *process) start() {
	p.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	kit.Must(p, err)
	defer func() { _ = log.Close() }()
	p.running = exec.Command(p.command[0], p.command[1:]...) //nolint:gosec,noctx // it ends with stop
	p.running.Env, p.running.Stdout, p.running.Stderr = append(os.Environ(), p.env...), log, log
	kit.Must(p, p.running.Start())
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if r, err := http.Get(p.url); err == nil { //nolint:noctx // our own
			if _ = r.Body.Close(); r.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Since(began) > time.Minute {
			text, _ := os.ReadFile(p.log)
			p.Fatalf("%s does not start: %s", p.command[0], text[max(0, len(text)-3000):])
		}
	}
}

// stop sends the signal and waits for the end.
func (p *process) stop(s os.Signal) {
	if p.running != nil {
		_ = p.running.Process.Signal(s)
		_ = p.running.Wait()
		p.running = nil
	}
}

// peak is the greatest resident memory of the process in MB.
func (p *process) peak() (n int) {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.running.Process.Pid))
	kit.Must(p, err)
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(after, &n)
	kit.Must(p, err)
	return n >> 10 //nolint:mnd // from kB
}

// bench is everything that runs. Its engines are the stack that router.yaml names.
type bench struct {
	*testing.T
	engines    kit.Engines
	config     config
	providers  *providers
	authorizer *process
	envoy      *process
	client     *http.Client
	numbers    atomic.Int64
	kmsIsDown  atomic.Bool
}

func newBench(t *testing.T, folder string) *bench {
	t.Helper()
	b := &bench{T: t, engines: kit.Start(t), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000, DisableCompression: true}}}
	serveNames(t)
	b.providers = serveProviders(t, folder)
	for _, name := range []string{"openai", "anthropic"} {
		write(t, "/run/secrets/"+name, "sk-platform-"+name+"\n")
	}
	write(t, "/run/secrets/name-keys", newNameKey()+"\n")
	var err error
	b.config, err = readConfig("router.yaml")
	kit.Must(t, err)

	// The kit's tables have the names of router.yaml; its key gets the ARN.
	at, ok := b.engines.Config.ConfigSources[0].(awsclients.Engines)
	if !ok {
		t.Fatal("the kit's engines have another form")
	}
	at.KMS = b.serveKMS(at.KMS, b.config.Stack.SealingKey, b.engines.KeyARN)
	engine := b.engines.Config
	b.engines.Config, b.engines.KeyARN = at.Config(), b.config.Stack.SealingKey
	b.engines.Config.Retryer = engine.Retryer

	work := t.TempDir()
	b.authorizer = &process{
		TB: t, log: filepath.Join(work, "authorizer"), command: []string{routerBinary, "-config", "router.yaml"}, url: "http://127.0.0.1:9180/ready",
		env: []string{"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=" + at.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + at.SecretAccessKey, "AWS_ENDPOINT_URL_DYNAMODB=" + at.DynamoDB, "AWS_ENDPOINT_URL_KMS=" + at.KMS},
	}
	b.envoy = &process{
		TB: t, log: filepath.Join(work, "envoy"), url: "http://127.0.0.1:9901/ready",
		command: []string{envoyBinary, "-c", "envoy.yaml", "-l", "warn", "--concurrency", "2", "--disable-hot-restart"},
	}
	for _, p := range []*process{b.authorizer, b.envoy} {
		t.Cleanup(func() { p.stop(os.Kill) })
		p.start()
	}
	return b
}

// serveKMS passes requests on to the engine, and gives its key the ARN of router.yaml.
func (b *bench) serveKMS(engine, arn, engines string) (url string) {
	b.Helper()
	return serveUntilEnd(b.T, "127.0.0.1:0", nil, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // an incomplete one is the engine's to refuse
		forward, _ := http.NewRequestWithContext(r.Context(), r.Method, engine, bytes.NewReader(bytes.ReplaceAll(body, []byte(arn), []byte(engines))))
		forward.Header, forward.Host = r.Header, r.Host // the signature covers them
		response, err := b.client.Do(forward)
		if err != nil || b.kmsIsDown.Load() {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = response.Body.Close() }()
		body, _ = io.ReadAll(response.Body)
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(bytes.ReplaceAll(body, []byte(engines), []byte(arn)))
	})
}

// tenant is an account with a standard key and credentials.
type tenant struct {
	*bench
	kit.Tenant
	token       string
	credentials []byok.Credential
	keys        map[ids.Credential]string
	manager     *byok.Manager
}

func (b *bench) tenant() *tenant {
	b.Helper()
	db, tables := dynamodb.NewFromConfig(b.engines.Config), b.engines.Tables
	t := &tenant{bench: b, Tenant: kit.NewTenant(b, auth.NewRegistry(db, tables.Access)), keys: map[ids.Credential]string{}, manager: byok.NewManager(db, tables.Credentials)}
	t.token = t.StandardKey(b, "")
	b.providers.mu.Lock()
	defer b.providers.mu.Unlock()
	b.providers.secrets = append(b.providers.secrets, t.token, t.Management)
	return t
}

// store stores a credential with a key of its own, for OpenAI unless the settings say more.
func (t *tenant) store(s byok.Settings) ids.Credential {
	t.Helper()
	key := fmt.Sprintf("sk-%d%s", t.numbers.Add(1), strings.Repeat("k", 20))
	if len(t.credentials)%5 == 1 {
		key = "Bearer " + key // no prefix of the header: it belongs to the key
	}
	return t.storeKey(key, s)
}

func (t *tenant) storeKey(key string, s byok.Settings) ids.Credential {
	t.Helper()
	c := storeKey(t.bench, t.engines, t.Tenant, []byte(key), s)
	t.credentials, t.keys[c.ID] = append(t.credentials, c), key
	return c.ID
}

// plan is the plan for the tenant's key, as the keys that the providers receive.
// TestVectors checks NewPlan.
func (t *tenant) plan(model string) (all []received) {
	for _, s := range routing.NewPlan(t.credentials, routing.Request{Model: model, APIKeyHash: string(auth.HashKey(t.token)), Providers: t.config.Models[model]}).Steps {
		r := received{s.Provider, cmp.Or(t.keys[s.Credential], "sk-platform-"+s.Provider)}
		if s.Provider != "azure" || !s.IsShared() { // the platform has no key there
			all = append(all, r)
		}
	}
	return all
}

func isPlatform(r received) bool { return strings.HasPrefix(r.key, "sk-platform-") }

// got is what a caller received, and what the providers did.
type got struct {
	status   int
	text     string
	header   http.Header
	received []received
}

// call calls a model with these answers of the providers.
func (t *tenant) call(model string, answers ...string) got {
	number := fmt.Sprint(t.numbers.Add(1))
	g := t.send(http.MethodPost, chat, t.token, strings.NewReader(bodyFor(model, number, answers...)), forged...)
	g.received = t.providers.take(number)
	return g
}

func bodyFor(model, number string, answers ...string) string {
	text, _ := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]any{"role": "user", "content": strings.Join(append([]string{number}, answers...), " ")}}}) // strings
	return string(text)
}

// send sends a request as a client does, and checks what no answer may have.
func (b *bench) send(method, path, key string, body io.Reader, header ...string) (g got) {
	r, err := http.NewRequest(method, envoyURL+path, body) //nolint:noctx // it ends with Envoy
	if err != nil {
		b.Error(err)
		return got{}
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	if r.Header.Del("Authorization"); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := b.client.Do(r)
	if err != nil {
		return got{text: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		text = []byte(err.Error())
	}
	g = got{status: response.StatusCode, text: strings.TrimSpace(string(text)), header: response.Header}
	for name, values := range g.header {
		isOurs := strings.HasPrefix(name, "X-Signalbox") && name != "X-Signalbox-Served-By"
		isProviders := slices.Contains(hidden, name) && (name != "Www-Authenticate" || g.status != http.StatusUnauthorized)
		if isOurs || isProviders || b.providers.isSecret(strings.Join(values, " ")) {
			b.Errorf("a caller gets the header %s: %s", name, values)
		}
	}
	if strings.Contains(g.text, "sk-") {
		b.Errorf("a key is in a response: %s", g.text)
	}
	return g
}

// is checks the status, the whole body, and what the providers received.
func (g got) is(t testing.TB, what string, status int, text string, keys ...received) {
	t.Helper()
	if g.status != status || g.text != text || !slices.Equal(g.received, keys) {
		t.Errorf("%s: %d %s, received %v; want %d %s, %v", what, g.status, g.text, g.received, status, text, keys)
	}
}

// envelope is a refusal's body.
func envelope(code int, message, reason string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"metadata":{"reason":%q}}}`, code, message, reason)
}

// beside runs f while n callers repeat call.
func beside(n int, call func(), f func()) {
	var stop atomic.Bool
	together(n+1, func(i int) {
		if i == 0 {
			defer stop.Store(true)
			f()
			return
		}
		for !stop.Load() {
			call()
		}
	})
}

func together(n int, f func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
}

// noSecrets checks that no key is in a log, and that each line of Envoy says whose request
// it was, for which model and by whose key.
func (b *bench) noSecrets(t *testing.T) {
	b.envoy.stop(syscall.SIGTERM) // it writes what it has kept
	lines := 0
	for _, file := range []string{b.authorizer.log, b.envoy.log} {
		text, err := os.ReadFile(file) //nolint:gosec // of the test
		kit.Must(t, err)
		if strings.Contains(string(text), "sk-") || b.providers.isSecret(string(text)) {
			t.Errorf("a key is in the log of %s", filepath.Base(file))
		}
		for line := range strings.Lines(string(text)) {
			var entry struct {
				Account, Workspace, Key, Model, Refused, Attempt, Path *string
				Details                                                string
			}
			if json.Unmarshal([]byte(line), &entry) != nil || entry.Details != "via_upstream" && entry.Details != "ext_authz_denied" {
				continue
			}
			isNamed := entry.Account != nil && entry.Workspace != nil && entry.Key != nil && entry.Model != nil && (entry.Path != nil || entry.Attempt != nil)
			if entry.Details == "ext_authz_denied" {
				isNamed = entry.Account != nil || entry.Refused != nil && (entry.Key != nil || *entry.Refused == "missing")
			}
			if lines++; !isNamed {
				t.Errorf("a line does not say whose request it was: %s", line)
			}
		}
	}
	t.Logf("%d lines name the account, the workspace, the key and the model", lines)
}
