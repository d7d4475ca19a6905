package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/routing"
)

const model, claude = "gpt-5.2", "claude-opus-4.5" // of router.yaml

func runShipped(t *testing.T, folder string) {
	b := newBench(t, folder)
	a := b.tenant()
	a.store(byok.Settings{})
	type check struct {
		name string
		run  func(*testing.T, *tenant)
	}
	t.Run("beside", func(t *testing.T) { // each other
		for _, c := range []check{{"answers", answers}, {"headers", headers}, {"documents", documents}, {"random", random}, {"streams", streams}} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, a)
			})
		}
	})
	for _, c := range []check{ // these restart what the others need
		{"repeats", repeats}, {"restarts", restarts}, {"strangers", strangers}, {"silence", silence}, {"large", large}, {"brownOut", brownOut}, {"outages", outages},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, a) })
	}
	b.noSecrets(t)
	if len(b.providers.leaks) > 0 {
		t.Errorf("a provider gets more than one key and the request: %s", b.providers.leaks)
	}
}

// answers: each refusal has its whole body, whoever makes it, and calls no provider.
func answers(t *testing.T, a *tenant) {
	asks := func(model string) string { return fmt.Sprintf(`{"model":%q}`, model) }
	tooLarge := `{"model":"gpt-5.2","x":"` + strings.Repeat("A", maxBody) + `"}`
	notFound, unknown := envelope(404, "Resource not found", "route_not_found"), envelope(401, "Missing Authentication header", "unknown_key")
	var models []string
	for _, name := range slices.Sorted(maps.Keys(a.config.Models)) {
		models = append(models, fmt.Sprintf(`{"created":0,"id":%q,"object":"model","owned_by":"signalbox"}`, name))
	}
	list := `{"data":[` + strings.Join(models, ",") + `],"object":"list"}`
	for _, c := range []struct {
		method, path, key, body string
		status                  int
		text                    string
	}{
		{"POST", chat, "", asks(model), 401, envelope(401, howToSend["missing"], "missing")},
		{"POST", chat, "sbx_made_up", asks(model), 401, unknown},
		{"POST", chat, "sbx_made_up", tooLarge[:20000], 401, unknown},
		{"POST", chat, a.token, tooLarge, 413, envelope(413, "Request body too large", "body_too_large")},
		{"POST", "/v1/messages/count_tokens", a.token, "{}", 404, notFound},
		{"GET", chat, a.token, "", 404, notFound},
		{"POST", "/v1/sk-pasted", a.token, "{}", 404, notFound},
		{"PUT", chat, a.token, asks(model), 404, notFound},
		{"POST", "/v1/models", a.token, "{}", 404, notFound},
		{"GET", "/v1/models", "sbx_made_up", "", 401, unknown},
		{"GET", "/v1/models", a.token, "", 200, list},
		{"GET", "/v1/models?limit=1", a.token, "", 200, list},
	} {
		g := a.send(c.method, c.path, c.key, strings.NewReader(c.body), "Content-Type", "application/json")
		g.is(t, c.method+" "+c.path, c.status, c.text)
		if g.header.Get("Content-Type") != "application/json" || c.status == 401 && g.header.Get("Www-Authenticate") != "Bearer" || g.header.Get("X-Signalbox-Served-By") != "" {
			t.Errorf("%s %s: %v", c.method, c.path, g.header)
		}
	}
	for n := range 9 { // Envoy takes 100, and adds some
		header := []string{"Content-Type", "application/json"}
		for i := range 84 + 2*n {
			header = append(header, fmt.Sprintf("x-client-%d", i), "v")
		}
		g := a.ask(func(number string) string { return bodyFor(model, number) }, header...)
		if g.status != 200 && (g.status != 431 || !strings.Contains(g.text, "too_many_headers")) {
			t.Errorf("%d headers: %d %s", len(header)/2, g.status, g.text)
		}
	}
	a.send("GET", "/v1/responses", a.token, nil, "Connection", "Upgrade", "Upgrade", "websocket").is(t, "a WebSocket", 426, envelope(426, "", "upgrade_failed"))
	for i := 0; i < 20; i += 4 { // chunked, a little or much too large
		body := io.MultiReader(strings.NewReader(tooLarge[:maxBody]+strings.Repeat("A", 1<<i)), strings.NewReader(`"}`))
		a.send("POST", chat, a.token, body).is(t, "a chunked body", 413, envelope(413, "Request body too large", "body_too_large"))
	}
	// A client's own headers and query have no effect. What the client may know comes back.
	own, platform := a.plan(model)[0], received{"openai", "sk-platform-openai"}
	refused := envelope(502, "The provider refused the platform", "platform_key_refused")
	for _, c := range []struct {
		model    string
		answers  []string
		status   int
		text     string
		servedBy string
		keys     []received
	}{
		{model, []string{"200"}, 200, `{"answer":"200"}`, "own", []received{own}},
		{model, []string{"404"}, 404, `{"answer":"404"}`, "own", []received{own}},
		{model, []string{"500"}, 200, `{"answer":"200"}`, "platform", []received{own, platform}},
		{model, []string{"500", "402"}, 502, refused, "platform", []received{own, platform}},
		{model, []string{"500", "401,none"}, 502, refused, "platform", []received{own, platform}},
		{model, []string{"500", "403,zipped"}, 502, refused, "platform", []received{own, platform}},
		{model, []string{"500", "403,large"}, 502, refused, "platform", []received{own, platform}},
		{model, []string{"401,zipped"}, 200, `{"answer":"200"}`, "platform", []received{own, platform}},
		{model, []string{"0", "0"}, 503, "", "", []received{own, platform}},
		{model, []string{"400,long"}, 400, forms["long"], "own", []received{own}},
		{model, []string{"400,none"}, 400, "", "own", []received{own}},
		{model, []string{"400,credit"}, 400, forms["credit"], "own", []received{own}}, // a prompt may say so
		{claude, []string{"400,credit"}, 502, refused, "platform", []received{{"anthropic", "sk-platform-anthropic"}}},
		{model, []string{"400,encrypted"}, 200, `{"answer":"200"}`, "platform", []received{own, platform}},
		{model, []string{"400,encrypted", "400,encrypted"}, 409, forms["encrypted"], "platform", []received{own, platform}},
	} {
		g := a.call(c.model, c.answers...)
		if c.text == "" {
			g.text = "" // Envoy's own words
		}
		g.is(t, fmt.Sprint(c.answers), c.status, c.text, c.keys...)
		if servedBy := strings.Join(g.header["X-Signalbox-Served-By"], ","); servedBy != c.servedBy {
			t.Errorf("%v: served by %q, want %q", c.answers, servedBy, c.servedBy)
		}
	}
	g := a.ask(func(number string) string { // the conversation is at the owner's account
		return strings.Replace(bodyFor(model, number, "429"), "{", `{"previous_response_id":"r",`, 1)
	})
	if g.is(t, "a follow-up", 429, `{"answer":"429"}`, own); g.header.Get("Retry-After") != "1" {
		t.Errorf("a follow-up gets %v", g.header)
	}
	// A bomb would take memory before anything could count it.
	for _, coding := range []string{"gzip", "zstd", "br"} {
		g := a.ask(func(number string) string { return string(zipped([]byte(bodyFor(model, number)))) }, "Content-Encoding", coding)
		g.is(t, coding, 400, envelope(400, howToSend["content_encoding"], "content_encoding"))
	}
	a.call(model, "zipped").is(t, "a compressed answer", 200, string(zipped([]byte("answer"))), own)
	// Limits count connections, and one of HTTP/2 holds a thousand streams of 60 KiB of headers.
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	if r, err := (&http.Client{Transport: &http.Transport{Protocols: protocols}}).Get(envoyURL); err == nil {
		t.Errorf("Envoy speaks HTTP/2 with clients: %s", r.Status)
	}
	if r, err := http.Post("http://127.0.0.1:9901/logging?level=trace", "", nil); err != nil || r.StatusCode != 403 {
		t.Errorf("a log level is set: %v, %v", r, err)
	}
}

// documents: a document's key reaches the host that it names and no other, or none.
func documents(t *testing.T, a *tenant) {
	own, platform := "sk-own", received{"openai", "sk-platform-openai"}
	for _, c := range []struct {
		what, provider, stored, model, answer string
		status                                int
		text                                  string
		keys                                  []received
	}{
		{"a redirect", "azure", documentFor(own, azureHost), model, "307", 307, `{"answer":"307"}`, []received{{"azure", own + "@" + azureHost}}},
		{"a host that fails", "azure", documentFor(own, azureHost), model, "500", 200, `{"answer":"200"}`, []received{{"azure", own + "@" + azureHost}, platform}},
		{"a private host without its certificate", "azure", documentFor(own, privateHost), model, "200", 200, `{"answer":"200"}`, []received{platform}},
		{"a lost question to the name server", "azure", documentFor(own, lossyHost), model, "200", 200, `{"answer":"200"}`, []received{{"azure", own + "@" + lossyHost}}},
		{"a region", "openai", `{"api_key":"` + own + `","region":"eu"}`, model, "200", 200, `{"answer":"200"}`, []received{{"openai", own + "@eu.api.openai.com"}}},
		{"Fireworks", "fireworks", `{"api_key":"` + own + `","region":"us"}`, "accounts/fireworks/models/kimi-k3", "200", 200, `{"answer":"200"}`, []received{{"fireworks", own + "@us.api.fireworks.ai"}}},
		{"Bedrock", "amazon-bedrock", own, "openai.gpt-oss-120b-1:0", "200", 200, `{"answer":"200"}`, []received{{"amazon-bedrock", own}}},
	} {
		one := a.tenant()
		one.storeKey(c.stored, "", byok.Settings{Provider: c.provider})
		one.call(c.model, c.answer).is(t, c.what, c.status, c.text, c.keys...)
	}
	late := a.tenant()
	late.storeKey(documentFor(own, newHost), "", byok.Settings{Provider: "azure"})
	late.call(model).is(t, "an unknown host", 200, `{"answer":"200"}`, platform)
	for began := time.Now(); late.call(model).received[0] == platform; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("a host that was unknown once stays so")
		}
	}
	aws := a.tenant()
	aws.storeKey(`{"accessKeyId":"AKIDEXAMPLE","secretAccessKey":"sk-secret","region":"eu-central-1"}`, "", byok.Settings{Provider: "amazon-bedrock"})
	g := aws.call("openai.gpt-oss-120b-1:0")
	if len(g.received) != 1 || !strings.HasPrefix(g.received[0].key, "bedrock-api-key-") || !strings.HasSuffix(g.received[0].key, "@bedrock-runtime.eu-central-1.amazonaws.com") {
		t.Errorf("AWS's access keys: %d %s, received %v", g.status, g.text, g.received)
	}
}

func zipped(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}

// random: for random requests each provider receives exactly the keys of the plan.
func random(t *testing.T, a *tenant) {
	r := rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // a seed
	tenants := []*tenant{a.tenant(), a.tenant()}
	for _, one := range tenants {
		for range 10 {
			s := byok.Settings{Provider: []string{"openai", "azure", "anthropic"}[r.IntN(3)], Fallback: r.Float64() < 0.4, Required: r.Float64() < 0.2}
			s.AllowedModels = [][]string{nil, nil, {model}, {claude, "other"}}[r.IntN(4)]
			s.AllowedUserIDs = [][]string{nil, nil, nil, {"u"}}[r.IntN(4)]
			one.store(s)
		}
	}
	var attempts atomic.Int64
	together(20, func(i int) {
		r := rand.New(rand.NewPCG(*seed, uint64(i+1))) //nolint:gosec // a seed, and a small number
		for range *requests / 20 {
			one, model, answers := tenants[r.IntN(2)], []string{model, claude}[r.IntN(2)], make([]string, 8)
			for i := range answers {
				answers[i] = []string{"200", "200", "200", "400", "404", "422", "0", "401", "402", "403", "408", "409", "429", strconv.Itoa(400 + r.IntN(200))}[r.IntN(14)]
			}
			g := one.call(model, answers...)
			status, keys := expected(one.plan(model), answers)
			attempts.Add(int64(len(g.received)))
			if g.status != status || !slices.Equal(g.received, keys) {
				t.Errorf("%s %v: %d %s, received %v; want %d, %v", model, answers, g.status, g.text, g.received, status, keys)
			}
		}
	})
	t.Logf("%d requests, %d attempts, no wrong key", *requests, attempts.Load())
}

// expected is the status that the caller gets, and what the providers receive.
func expected(plan []received, answers []string) (int, []received) {
	for i, r := range plan {
		status := http.StatusOK
		if i < len(answers) {
			status, _ = strconv.Atoi(answers[i])
		}
		if isLast := i == len(plan)-1; isLast || status != 0 && !routing.MovesOn(status) {
			step := routing.Step{Provider: r.provider}
			if !strings.HasPrefix(r.key, "sk-platform-") {
				step.Credential = "own"
			}
			if status == 0 {
				status = http.StatusServiceUnavailable
			}
			return step.Reported(status), plan[:i+1]
		}
	}
	return http.StatusForbidden, nil // no step
}

// streams: the parts of a stream arrive while it is sent, also after a failed attempt. No
// attempt follows an answer that breaks off.
func streams(t *testing.T, a *tenant) {
	for _, answers := range [][]string{{"stream"}, {"429", "stream"}, {"cut"}} {
		number := fmt.Sprint(a.numbers.Add(1))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, envoyURL+chat, strings.NewReader(bodyFor(model, number, answers...)))
		kit.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+a.token)
		response, err := a.client.Do(r)
		kit.Must(t, err)
		parts := 0
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") {
				parts++
				a.providers.channel(number) <- struct{}{} // else the provider sends no other part
			}
		}
		_ = response.Body.Close()
		want := map[bool]int{true: 1, false: 3}[slices.Contains(answers, "cut")]
		if keys := a.providers.take(number); parts != want || !slices.Equal(keys, a.plan(model)[:len(answers)]) {
			t.Errorf("%v: %d parts, keys %v", answers, parts, keys)
		}
	}
}

// repeats: an SDK repeats a 5xx unless the answer says that it should not. It repeats no request
// that a provider may have served, and none for which the platform's key is refused. A time-out
// of an attempt is shorter here.
func repeats(t *testing.T, a *tenant) {
	a.envoy.changed(t, "per_try_timeout: 590s", "per_try_timeout: 1s")
	own, platform := a.plan(model)[0], received{"openai", "sk-platform-openai"}
	for _, c := range []struct {
		answers []string
		status  int
		keys    []received
	}{
		{[]string{"hang"}, 504, []received{own}},
		{[]string{"nonsense"}, 502, []received{own}},
		{[]string{"400,huge"}, 500, []received{own}},
		{[]string{"500", "402"}, 502, []received{own, platform}},
		{[]string{"500", "503", "500", "503", "500", "503"}, 503, []received{own, platform, own, platform, own, platform}},
	} {
		number := fmt.Sprint(a.numbers.Add(1))
		var g got
		for range 3 { // as the SDKs of OpenAI and Anthropic do
			if g = a.send("POST", chat, a.token, strings.NewReader(bodyFor(model, number, c.answers...))); g.header.Get("X-Should-Retry") == "false" {
				break
			}
		}
		if keys := a.providers.take(number); g.status != c.status || !slices.Equal(keys, c.keys) {
			t.Errorf("%v: %d %s, received %v, want %v", c.answers, g.status, g.text, keys, c.keys)
		}
	}
}

// restarts: no request fails while the authorizer is ended, however it is ended and however
// long first attempts take.
func restarts(t *testing.T, a *tenant) {
	for signal, all := range map[syscall.Signal][][]string{syscall.SIGTERM: {{"429"}, {"slow,429"}}, syscall.SIGKILL: {{"slow,429"}, {"429"}}} {
		for _, answers := range all[:map[bool]int{true: 2, false: 1}[*isLong]] {
			tick := time.NewTicker(10 * time.Millisecond) // 100 requests a second
			var served atomic.Int64
			var isOver atomic.Bool
			together(101, func(i int) {
				if i == 0 {
					defer isOver.Store(true)
					for range map[bool]int{true: 5, false: 1}[*isLong] {
						for before := served.Load(); served.Load() < before+40; {
							time.Sleep(time.Millisecond)
						}
						a.authorizer.restart(signal)
					}
					return
				}
				for !isOver.Load() {
					<-tick.C
					g := a.call(model, answers...)
					g.is(t, "a request during a restart", 200, `{"answer":"200"}`, a.plan(model)[:2]...)
					served.Add(1)
				}
			})
			tick.Stop()
			t.Logf("%v, %s: 0 of %d failed", signal, answers[0], served.Load())
		}
	}
}

// served checks that a tenant gets 20 of 20 answers, each sooner than Envoy ends a stranger's
// connection: none waits for one. On a busy machine 4,900 strangers alone take ten seconds.
func (t *tenant) served(test *testing.T, what string) {
	test.Helper()
	for range 20 {
		for isLast := false; ; isLast = true {
			began := time.Now()
			t.call(model).is(test, "a tenant beside "+what, 200, `{"answer":"200"}`, t.plan(model)[0])
			took := time.Since(began)
			if took < 30*time.Second {
				break
			}
			if isLast || !kit.Busy(test, "a tenant waited") {
				test.Errorf("a tenant beside %s waited %s", what, took)
				break
			}
		}
	}
}

// open opens connections to Envoy, and writes the text into each until Envoy stops reading.
func open(t *testing.T, n int, text func(i int) []byte) (all []net.Conn) {
	t.Helper()
	for i := range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(envoyURL, "http://"))
		kit.Must(t, err)
		all = append(all, c)
		t.Cleanup(func() { _ = c.Close() })
		go func() { _, _ = c.Write(text(i)) }()
	}
	return all
}

func (b *bench) isReady(t *testing.T) {
	t.Helper()
	if text, err := exec.CommandContext(t.Context(), routerBinary, "-config", "router.yaml", "ready").CombinedOutput(); err != nil {
		t.Errorf("the authorizer is not ready: %v %s", err, text)
	}
}

// strangers: bodies and streams with made-up keys cost little memory, and keep nobody from
// the authorizer.
func strangers(t *testing.T, a *tenant) {
	// All connections share these texts: they may be 4 MiB each.
	stranger := func(header, body string) func(int) []byte {
		start, rest := "POST "+chat+" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n", header+"\r\n\r\n"+body
		anonymous, madeUp := []byte(start+rest), []byte(start+"Authorization: Bearer sbx_made_up\r\n"+rest)
		return func(i int) []byte {
			if i%3 == 0 {
				return anonymous
			}
			return madeUp
		}
	}
	body := `{"model":"gpt-5.2","x":"` + strings.Repeat("A", maxBody-100)
	n := map[bool]int{true: 4900, false: 400}[*isLong] // within connection_limit
	for what, attack := range map[string]func(int) []byte{
		"large bodies":  stranger("Content-Length: "+strconv.Itoa(maxBody), body),
		"small bodies":  stranger("Content-Length: 16384", body[:16000]),
		"small streams": stranger("Transfer-Encoding: chunked", "4000\r\n"+body[:0x4000]+"\r\n"),
	} {
		a.envoy.restart(os.Kill)
		all := open(t, n, attack)
		a.served(t, what)
		a.isReady(t)
		for _, c := range all {
			_ = c.Close()
		}
		used, authorizer := a.envoy.peak(), a.authorizer.peak()
		if t.Logf("%d strangers with %s: Envoy %d MB, the authorizer %d MB", n, what, used, authorizer); used > envoyMemory(n, 0) || authorizer > 200 {
			t.Errorf("%d strangers with %s: Envoy %d MB, the authorizer %d MB", n, what, used, authorizer)
		}
	}
}

// envoyMemory is the rule of routing.md, in MB: what Envoy needs for connections, and for
// bodies of 4 MiB of known callers at once.
func envoyMemory(connections, bodies int) int { return 70 + connections/6 + 16*bodies }

// silence: connections that send nothing, or half a header, keep nobody out, and end. So do idle
// ones to providers, which have keep-alive.
func silence(t *testing.T, a *tenant) {
	a.envoy.restart(os.Kill) // it still has connections of the test before, and no tenant has one
	silent := open(t, 1100, func(i int) []byte { return map[bool][]byte{true: []byte("POST / HTTP/1.1\r\nHost: a\r\n")}[i == 0] })
	a.served(t, "silence")
	sockets, err := os.ReadFile("/proc/net/tcp")
	kit.Must(t, err)
	for line := range strings.Lines(string(sockets)) {
		if f := strings.Fields(line); strings.HasSuffix(f[2], ":01BB") && f[3] == "01" && strings.HasPrefix(f[5], "00:") { // established, without a timer
			t.Errorf("a connection to a provider has no keep-alive: %s", line)
		}
	}
	if !*isLong {
		return
	}
	hasEnded := func(c net.Conn, within time.Duration) {
		t.Helper()
		kit.Must(t, c.SetReadDeadline(time.Now().Add(within)))
		if text, err := io.ReadAll(c); err != nil {
			t.Errorf("a connection is open after %s: %q, %v", within, text, err)
		}
	}
	hasEnded(silent[0], 15*time.Second)
	hasEnded(silent[len(silent)-1], 80*time.Second)
	// A NAT forgets idle connections after 350 s or less: a request on one would move on.
	for began := time.Now(); a.providers.open.Load() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d idle connections to providers are open", a.providers.open.Load())
		}
	}
}

// large: whole bodies of 4 MiB, and answers that nobody reads, cost what routing.md says.
func large(t *testing.T, a *tenant) {
	a.envoy.restart(os.Kill)
	a.served(t, "nothing")
	const bodies = 24
	text := `{"model":"gpt-5.2","x":"` + strings.Repeat("A", maxBody-100) + `","messages":[{"content":"0"}]}`
	together(bodies, func(int) {
		g := a.send("POST", chat, a.token, strings.NewReader(text))
		if g.status != 200 && (g.status != 503 || !kit.Busy(t, g.text)) { // it may not be read in time
			t.Errorf("a body of 4 MiB: %d %s", g.status, g.text)
		}
	})
	used, authorizer := a.envoy.peak(), a.authorizer.peak()
	if t.Logf("%d bodies of 4 MiB: Envoy %d MB, the authorizer %d MB", bodies, used, authorizer); used > envoyMemory(bodies, bodies) || authorizer > 200 {
		t.Errorf("%d bodies of 4 MiB: Envoy %d MB, the authorizer %d MB", bodies, used, authorizer)
	}
	a.envoy.restart(os.Kill)
	const callers = 40
	last := a.numbers.Add(callers)
	open(t, callers, func(i int) []byte {
		body := bodyFor(model, fmt.Sprint(last-int64(i)), "flood")
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", chat, a.token, len(body), body)
	})
	for i := range callers {
		<-a.providers.channel(fmt.Sprint(last - int64(i)))
	}
	used = a.envoy.peak()
	if t.Logf("%d answers that nobody reads: Envoy %d MB", callers, used); used > envoyMemory(callers, 0)+2*callers {
		t.Errorf("%d answers that nobody reads: Envoy %d MB", callers, used)
	}
}

// brownOut: a DynamoDB that answers late serves 64 callers, each of an account of its own.
func brownOut(t *testing.T, a *tenant) {
	if !*isLong {
		return
	}
	engine, err := url.Parse(a.engines.Config.ConfigSources[0].(awsclients.Engines).DynamoDB)
	kit.Must(t, err)
	slow := httptest.NewServer(&httputil.ReverseProxy{Transport: a.client.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		time.Sleep(300*time.Millisecond + rand.N(400*time.Millisecond)) //nolint:gosec // a pause
		r.SetURL(engine)
		r.Out.Host = r.In.Host // the signature covers it
	}})
	defer slow.Close()
	env := a.authorizer.env
	defer func() { a.authorizer.env = env; a.authorizer.restart(syscall.SIGTERM) }()
	a.authorizer.env = append(slices.Clone(env), "AWS_ENDPOINT_URL_DYNAMODB="+slow.URL)
	a.authorizer.restart(syscall.SIGTERM)
	callers := make([]*tenant, 64)
	for i := range callers {
		callers[i] = a.tenant()
		callers[i].store(byok.Settings{})
	}
	together(len(callers), func(i int) {
		for range 20 {
			callers[i].call(model).is(t, "in a brown-out", 200, `{"answer":"200"}`, callers[i].plan(model)[0])
		}
	})
}

// outages: without KMS or an authorizer Envoy says so.
func outages(t *testing.T, a *tenant) {
	one := a.tenant()
	one.store(byok.Settings{})
	a.kmsIsDown.Store(true)
	one.call(model).is(t, "without KMS", 503, envelope(503, "Stored credentials are unavailable", "unavailable"))
	if !*isLong {
		return
	}
	a.authorizer.stop(os.Kill)
	a.call(model).is(t, "without an authorizer", 503, envelope(503, "Stored credentials are unavailable", "no_authorizer"))
}
