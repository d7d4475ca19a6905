package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	maxBody      = 4 << 20 // bytes
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
	p.running = exec.Command(p.command[0], p.command[1:]...) //nolint:gosec // it ends with stop
	p.running.Env, p.running.Stdout, p.running.Stderr = append(os.Environ(), p.env...), log, log
	kit.Must(p, p.running.Start())
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if r, err := http.Get(p.url); err == nil {
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

func (p *process) restart(s os.Signal) {
	p.Helper()
	p.stop(s)
	p.start()
}

// changed runs Envoy with envoy.yaml changed in one place, until the test ends.
func (p *process) changed(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile("envoy.yaml")
	kit.Must(t, err)
	if strings.Count(string(text), from) != 1 {
		t.Fatalf("envoy.yaml has not one %q", from)
	}
	file, shipped := filepath.Join(t.TempDir(), "envoy.yaml"), p.command
	write(t, file, strings.Replace(string(text), from, to, 1))
	t.Cleanup(func() { p.command = shipped; p.restart(syscall.SIGTERM) })
	p.command = slices.Replace(slices.Clone(shipped), 2, 3, file)
	p.restart(syscall.SIGTERM)
}

// peak is the greatest resident memory of the process in MB.
func (p *process) peak() (n int) {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.running.Process.Pid))
	kit.Must(p, err)
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(after, &n)
	kit.Must(p, err)
	return n >> 10 // from kB
}

// The providers at which the platform has a key.
var platforms = []string{"openai", "anthropic"}

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
	b := &bench{T: t, engines: kit.Start(t), client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 2000, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	b.providers = serveProviders(t, folder)
	serveNames(t)
	for _, name := range platforms {
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
	at.KMS = b.serveKMS(at.KMS, b.config.Stack.SealingKey, b.engines.Tables.SealingKey)
	engine := b.engines.Config
	b.engines.Config, b.engines.Tables.SealingKey = at.Config(), b.config.Stack.SealingKey
	b.engines.Config.Retryer = engine.Retryer

	work := t.TempDir()
	b.authorizer = &process{
		TB: t, log: filepath.Join(work, "authorizer"), command: []string{routerBinary, "-config", "router.yaml"}, url: "http://127.0.0.1:9180/ready",
		env: []string{"GOMEMLIMIT=200MiB", "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=" + at.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + at.SecretAccessKey, "AWS_ENDPOINT_URL_DYNAMODB=" + at.DynamoDB, "AWS_ENDPOINT_URL_KMS=" + at.KMS},
	}
	b.envoy = &process{
		TB: t, log: filepath.Join(work, "envoy"), url: "http://127.0.0.1:9901/ready",
		command: []string{envoyBinary, "-c", "envoy.yaml", "-l", "warn", "--concurrency", "2", "--disable-hot-restart"},
	}
	if text, err := exec.CommandContext(t.Context(), envoyBinary, "-c", "envoy.yaml", "--mode", "validate", "-l", "warn").CombinedOutput(); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("Envoy says of envoy.yaml: %v\n%s", err, text)
	}
	for _, p := range []*process{b.authorizer, b.envoy} {
		t.Cleanup(func() { p.stop(os.Kill) })
		p.start()
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", b.authorizer.running.Process.Pid))
	if kit.Must(t, err); !strings.Contains(string(limits), "Max core file size        0                    0 ") {
		t.Errorf("a core dump would hold keys: %s", limits)
	}
	return b
}

// serveKMS passes requests on to the engine, and gives its key the ARN of router.yaml.
func (b *bench) serveKMS(engine, arn, engines string) (url string) {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// tenant is an account with a standard key and credentials.
type tenant struct {
	*bench
	kit.Tenant
	token       string
	credentials []byok.Credential
	keys        map[ids.Credential]string
}

func (b *bench) tenant() *tenant {
	b.Helper()
	t := &tenant{bench: b, Tenant: kit.NewTenant(b, auth.NewRegistry(dynamodb.NewFromConfig(b.engines.Config), b.engines.Tables.Access)), keys: map[ids.Credential]string{}}
	t.token = t.StandardKey(b, "")
	b.providers.mu.Lock()
	defer b.providers.mu.Unlock()
	b.providers.secrets = append(b.providers.secrets, t.token, t.Management)
	return t
}

// store stores a credential with a key of its own, for OpenAI unless the settings say more. It is
// in a document for Azure, and for some of OpenAI's.
func (t *tenant) store(s byok.Settings) {
	t.Helper()
	key := fmt.Sprintf("sk-%d%s", t.numbers.Add(1), strings.Repeat("k", 20))
	n := len(t.credentials)
	switch {
	case s.Provider == "azure":
		t.storeKey(documentFor(key, azureHost), key+"@"+azureHost, s)
	case cmp.Or(s.Provider, "openai") == "openai" && n%5 == 2:
		t.storeKey(fmt.Sprintf(`{"api_key":%q,"region":"eu"}`, key), key+"@eu.api.openai.com", s)
	case n%5 == 1: // no prefix of the header: it belongs to the key
		t.storeKey("Bearer "+key, "Bearer "+key, s)
	default:
		t.storeKey(key, key, s)
	}
}

// documentFor is a key for Azure in a document.
func documentFor(key, host string) string {
	return fmt.Sprintf(`{"model_slug":%q,"model_id":"d","api_key":%q,"endpoint_url":"https://%s%s"}`, model, key, host, azurePath)
}

// storeKey stores a credential, and what its provider receives.
func (t *tenant) storeKey(stored, received string, s byok.Settings) {
	t.Helper()
	c := storeKey(t.bench, t.engines, t.Tenant, []byte(stored), s)
	t.credentials, t.keys[c.ID] = append(t.credentials, c), received
}

// plan is the plan for the tenant's key, as the keys that the providers receive.
// TestVectors checks NewPlan.
func (t *tenant) plan(model string) (all []received) {
	for _, s := range routing.NewPlan(t.credentials, routing.Request{Model: model, APIKeyHash: auth.HashKey(t.token), Providers: t.config.Models[model]}).Steps {
		r := received{s.Provider, cmp.Or(t.keys[s.Credential], "sk-platform-"+s.Provider)}
		if !s.IsShared() || slices.Contains(platforms, s.Provider) {
			all = append(all, r)
		}
	}
	return all
}

// got is what a caller received, and what the providers did.
type got struct {
	status   int
	text     string
	header   http.Header
	received []received
}

// call calls a model with these answers of the providers.
func (t *tenant) call(model string, answers ...string) got {
	return t.ask(func(number string) string { return bodyFor(model, number, answers...) }, forged...)
}

// ask sends a body with a number of its own. On a busy machine DynamoDB or the authorizer may be
// late: then it asks once more. The query has no effect.
func (t *tenant) ask(body func(number string) string, header ...string) (g got) {
	for range 2 {
		number := fmt.Sprint(t.numbers.Add(1))
		g = t.send(http.MethodPost, chat+"?key=sk-forged&k%65y=sk-forged", t.token, strings.NewReader(body(number)), header...)
		g.received = t.providers.take(number)
		if !strings.Contains(g.text, "Stored credentials are unavailable") || !kit.Busy(t, g.text) {
			break
		}
	}
	return g
}

func bodyFor(model, number string, answers ...string) string {
	text, _ := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]any{"role": "user", "content": strings.Join(append([]string{number}, answers...), " ")}}}) // strings
	return string(text)
}

// send sends a request as a client does, and checks what no answer may have.
func (b *bench) send(method, path, key string, body io.Reader, header ...string) (g got) {
	r, err := http.NewRequest(method, envoyURL+path, body)
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
		name = strings.ToLower(name)
		isExpected := slices.Contains(toCaller, name) || slices.Contains(toOwner, name) && g.header.Get("X-Signalbox-Served-By") == "own" ||
			slices.Contains([]string{"connection", "content-encoding", "content-length", "server", "x-signalbox-served-by"}, name) || name == "www-authenticate" && g.status == http.StatusUnauthorized
		if !isExpected || b.providers.isSecret(strings.Join(values, " ")) {
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
	lines, saysWhy := 0, false
	for _, file := range []string{b.authorizer.log, b.envoy.log} {
		text, err := os.ReadFile(file) //nolint:gosec // of the test
		kit.Must(t, err)
		if strings.Contains(string(text), "sk-") || b.providers.isSecret(string(text)) {
			t.Errorf("a key is in the log of %s", filepath.Base(file))
		}
		if strings.Contains(string(text), `"msg":"refused"`) && !strings.Contains(string(text), `"request":"`) {
			t.Error("the authorizer's log lacks Envoy's request id")
		}
		for line := range strings.Lines(string(text)) {
			entry, names := map[string]any{}, []string{"account", "workspace", "key", "model"}
			if json.Unmarshal([]byte(line), &entry) != nil {
				continue
			}
			switch {
			case entry["details"] == "ext_authz_denied" && entry["refused"] == "missing", entry["details"] != "ext_authz_denied" && entry["details"] != "via_upstream":
				continue
			case entry["details"] == "ext_authz_denied":
				names = []string{"key"}
			}
			saysWhy = saysWhy || entry["skipped"] != nil
			isNamed := !slices.ContainsFunc(names, func(name string) bool { return entry[name] == nil })
			if lines++; !isNamed {
				t.Errorf("a line does not say whose request it was: %s", line)
			}
		}
	}
	if flag.Lookup("test.run").Value.String() == "^TestShipped$" && !saysWhy { // random has run
		t.Error("no line says why a credential was not used")
	}
	t.Logf("%d lines name the account, the workspace, the key and the model", lines)
}

// host is a provider's host, and where it has the chat call. Documents name some hosts.
type host struct {
	provider, path string
	isDocuments    bool
}

const (
	azureHost   = "acme.openai.azure.com"
	privateHost = "private.openai.azure.com" // its address is this machine's own, and its certificate for other names
	lossyHost   = "lossy.openai.azure.com"   // the name server loses the first question for it
	newHost     = "new.openai.azure.com"     // the name server does not know it at the first question
	azurePath   = "/openai/deployments/d/chat/completions?api-version=2024-10-21"
)

var hosts = map[string]host{
	"api.openai.com":           {"openai", chat, false},
	"eu.api.openai.com":        {"openai", chat, true},
	"example.openai.azure.com": {"azure", "/openai/v1/chat/completions", false},
	azureHost:                  {"azure", azurePath, true},
	privateHost:                {"azure", azurePath, true},
	lossyHost:                  {"azure", azurePath, true},
	newHost:                    {"azure", azurePath, true},
	"api.anthropic.com":        {"anthropic", chat, false},
	"api.fireworks.ai":         {"fireworks", "/inference/v1/chat/completions", false},
	"us.api.fireworks.ai":      {"fireworks", "/inference/v1/chat/completions", true},
	"bedrock-runtime.us-east-1.amazonaws.com":    {"amazon-bedrock", "/openai/v1/chat/completions", false},
	"bedrock-runtime.eu-central-1.amazonaws.com": {"amazon-bedrock", "/openai/v1/chat/completions", true},
}

// The header in which each provider takes its key, unless it is Authorization.
var keyHeaders = map[string]string{"azure": "Api-Key", "anthropic": "X-Api-Key"}

// Headers with an effect on the authorizer, Envoy or a provider, which a client may send in vain.
var forged = []string{
	"X-Signalbox-Plan", "p", "X-Signalbox-Provider", "azure", "X-Signalbox-User", "u", "X-Api-Key", "sk-forged", "Api-Key", "sk-forged", "X-Goog-Api-Key", "sk-forged", "Cookie", "c=sk-forged",
	"X-Signalbox-Host", "evil.example", "X-Signalbox-Path", "/evil", "X-Envoy-Max-Retries", "9", "X-Envoy-Retry-On", "5xx,retriable-4xx", "X-Envoy-Upstream-Rq-Timeout-Ms", "1", "X-Envoy-Attempt-Count", "2",
}

// received is a key that a provider received, with the host that a document names.
type received struct{ provider, key string }

// forms are bodies of answers that have another one than their status.
var forms = map[string]string{
	"none": "", "zipped": string(zipped([]byte("sk-refused"))), "large": strings.Repeat("sk-refused", 20000), "long": strings.Repeat("A", 200000), "huge": strings.Repeat("A", maxBody+1),
	"credit":    `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`,
	"encrypted": `{"error":{"type":"invalid_request_error","code":"invalid_encrypted_content"}}`,
}

// providers is every provider. A request's text sets the answers to its attempts:
// "17 401 503 200". Answer 0 closes the connection; nonsense is no HTTP; slow waits a little; stream and cut wait
// for the caller to read each part, and cut breaks off; flood ends once nobody reads it.
type providers struct {
	mu       sync.Mutex
	received map[string][]received
	headers  map[string]http.Header // of the last attempt
	leaks    []string
	secrets  []string
	channels map[string]chan struct{} // by the request's number
	open     atomic.Int64             // connections
}

func serveProviders(t *testing.T, folder string) *providers {
	t.Helper()
	p := &providers{received: map[string][]received{}, headers: map[string]http.Header{}, channels: map[string]chan struct{}{}}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, "ca.pem"), filepath.Join(folder, "key.pem"))
	kit.Must(t, err)
	l, err := net.Listen("tcp", ":443") //nolint:gosec // in a network of its own, at once
	kit.Must(t, err)
	server := &http.Server{
		Handler: http.HandlerFunc(p.answer), ReadHeaderTimeout: time.Minute,
		ConnState: p.count,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	t.Cleanup(func() { _ = server.Close() }) // it waits for no stream
	go func() { _ = server.ServeTLS(l, "", "") }()
	return p
}

func (p *providers) count(_ net.Conn, state http.ConnState) {
	p.open.Add(map[http.ConnState]int64{http.StateNew: 1, http.StateClosed: -1, http.StateHijacked: -1}[state])
}

func (p *providers) isSecret(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.secrets, func(s string) bool { return strings.Contains(text, s) })
}

// take returns and forgets what the providers received for a request.
func (p *providers) take(number string) []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.received, number)
	return p.received[number]
}

func (p *providers) headersOf(number string) http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.headers[number]
}

func (p *providers) channel(number string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.channels[number] == nil {
		p.channels[number] = make(chan struct{})
	}
	return p.channels[number]
}

// note records an attempt and returns its number in the request, from 0.
func (p *providers) note(number string, r *http.Request, body []byte) int {
	at := hosts[r.Host]
	name, keyHeader := at.provider, cmp.Or(keyHeaders[at.provider], "Authorization")
	headers, _ := json.Marshal(r.Header) // strings
	text := string(headers) + r.URL.String() + string(body)
	isLeak := len(r.Header.Values(keyHeader)) != 1 || r.RequestURI != at.path || strings.Contains(strings.ToLower(text), "x-signalbox") || strings.Contains(text, "sk-forged") || p.isSecret(text)
	for header := range r.Header {
		isLeak = isLeak || header != keyHeader && header != "Content-Length" && !slices.Contains(toProvider, strings.ToLower(header))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if isLeak {
		p.leaks = append(p.leaks, name+" "+r.RequestURI+" "+string(headers))
	}
	p.headers[number] = r.Header
	key := strings.TrimPrefix(r.Header.Get(keyHeader), map[bool]string{true: "Bearer "}[keyHeader == "Authorization"])
	if at.isDocuments {
		key += "@" + r.Host
	}
	p.received[number] = append(p.received[number], received{name, key})
	return len(p.received[number]) - 1
}

func (p *providers) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if len(body) > maxBody/2 {
		body = nil // it has no number, and takes long to search
	}
	var message struct{ Messages []struct{ Content string } }
	if json.Unmarshal(body, &message) != nil || len(message.Messages) == 0 {
		message.Messages = []struct{ Content string }{{"0"}}
	}
	words := strings.Fields(message.Messages[0].Content)
	attempt, answer := p.note(words[0], r, body), "200"
	if attempt+1 < len(words) {
		answer = words[attempt+1]
	}
	answer, isSlow := strings.CutPrefix(answer, "slow,")
	if isSlow {
		time.Sleep(300 * time.Millisecond)
	}
	for _, name := range slices.Concat(toCaller, toOwner, fromProvider) { // Envoy takes 100
		w.Header().Set(name, "1")
	}
	w.Header().Set("X-Signalbox-Served-By", "forged")
	if answer == "503" {
		w.Header().Del("X-Should-Retry")
	}
	answer, form, _ := strings.Cut(answer, ",")
	status, err := strconv.Atoi(answer)
	switch {
	case answer == "zipped":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped([]byte("answer")))
	case answer == "stream", answer == "cut":
		p.stream(w, words[0], answer == "cut")
	case err == nil && status > 0:
		body, isForm := forms[form]
		if !isForm {
			body = fmt.Sprintf(`{"answer":%q}`, answer)
		}
		if form == "zipped" {
			w.Header().Set("Content-Encoding", "gzip")
		}
		if status/100 == 3 {
			w.Header().Set("Location", "https://api.openai.com/")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	case answer == "flood":
		for err = nil; err == nil; {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			_, err = w.Write(make([]byte, 1<<20))
		}
		close(p.channel(words[0]))
	case answer == "nonsense":
		c, _, _ := http.NewResponseController(w).Hijack() // of HTTP/1.1
		_, _ = io.WriteString(c, "SSH-2.0\r\n")
		_ = c.Close()
	case answer == "hang":
		<-r.Context().Done()
	default:
		panic(http.ErrAbortHandler)
	}
}

// stream sends three parts, each after the caller has read the one before.
func (p *providers) stream(w http.ResponseWriter, number string, isCut bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	for part := range 3 {
		_, _ = fmt.Fprintf(w, "data: %d\n\n", part)
		_ = http.NewResponseController(w).Flush()
		<-p.channel(number)
		if isCut {
			panic(http.ErrAbortHandler)
		}
	}
}
