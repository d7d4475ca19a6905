package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	http200 = http.StatusOK
	http403 = http.StatusForbidden
	http503 = http.StatusServiceUnavailable
)

var models = map[string][]string{"small": {"openai"}, "large": {"openai", "anthropic"}, "other": {"anthropic", "azure", "openai"}}

// tenant is an account with its keys and credentials.
type tenant struct {
	*bench
	account, management, key, hash, otherHash string
	credentials                               []credential
}

func (b *bench) tenant(name string) *tenant {
	t := &tenant{bench: b}
	var account struct{ ID string }
	b.admin(&account, "account", "create", name)
	t.account = account.ID
	var made struct{ Key, Hash string }
	b.admin(&made, "key", "create", "m", "--kind", "management", "--account", t.account)
	t.management, t.otherHash = made.Key, made.Hash
	b.admin(&made, "key", "create", "s", "--account", t.account)
	t.key, t.hash = made.Key, made.Hash
	b.providers.mu.Lock()
	b.providers.secrets = append(b.providers.secrets, t.key, t.management)
	b.providers.mu.Unlock()
	return t
}

// store stores a credential through the API.
func (t *tenant) store(settings map[string]any) credential {
	text := strconv.FormatInt(t.numbers.Add(1), 36)
	key := "sk-" + text + strings.Repeat("k", 20)
	if len(t.credentials)%5 == 1 {
		key = "Bearer " + key // no prefix of the header: it belongs to the key
	}
	return t.storeKey(key, settings)
}

func (t *tenant) storeKey(key string, settings map[string]any) credential {
	body := map[string]any{"key": key, "provider": "openai"}
	for name, value := range settings {
		body[name] = value
	}
	text, err := json.Marshal(body)
	must(err)
	r, err := http.NewRequest(http.MethodPost, t.api+"/byok", bytes.NewReader(text)) //nolint:noctx // it ends with the local server
	must(err)
	r.Header.Set("Authorization", "Bearer "+t.management)
	r.Header.Set("Content-Type", "application/json")
	response, err := t.client.Do(r)
	must(err)
	defer func() { _ = response.Body.Close() }()
	var stored struct{ Data credential }
	must(json.NewDecoder(response.Body).Decode(&stored))
	check(response.StatusCode == http.StatusCreated, "a credential is stored", response.Status)
	stored.Data.key = key
	t.credentials = append(t.credentials, stored.Data)
	return stored.Data
}

// plan is the plan for the tenant's key as the keys that the providers receive.
func (t *tenant) plan(model string) (all []received) {
	for _, s := range plan(t.credentials, asked{Model: model, Hash: t.hash, Providers: models[model]}) {
		r := received{s.provider, "sk-platform-" + s.provider}
		if i := slices.IndexFunc(t.credentials, func(c credential) bool { return c.ID == s.credential }); i >= 0 {
			r.key = t.credentials[i].key
		}
		all = append(all, r)
	}
	return all
}

func isPlatform(r received) bool { return strings.HasPrefix(r.key, "sk-platform-") }

func (b *bench) checks() {
	var v vectors
	readJSON("plans.json", &v)
	v.judgeTheOracle()
	fmt.Printf("plans.json: %d cases\n", len(v.Cases))
	plain := b.tenant("plain")
	posted := plain.store(nil)
	g := b.call(plain.key)
	check(g.status == http200 && slices.Equal(g.received, []received{{"openai", posted.key}}), "the provider receives the key that was posted", g)
	for _, c := range []struct {
		name string
		make func() string
	}{
		{"refusals", func() string { return b.refusals(plain) }},
		{"random", func() string { return b.exactly(v) }},
		{"streams", func() string { return b.streams(plain) }},
		{"timeouts", func() string { return b.timeouts(plain) }},
		{"changes", b.changes},
		{"succession", b.succession},
		{"reload", func() string { return b.reload(plain) }},
		{"restarts", func() string { return b.restarts(plain) }},
		{"faults", b.faults},
		{"memory", func() string { return b.memory(plain) }},
		{"kill", func() string { return b.kill(plain) }},
	} {
		if *b.only == "" || *b.only == c.name {
			began := time.Now()
			fmt.Printf("%s: %s (%.0f s)\n", c.name, c.make(), time.Since(began).Seconds())
		}
	}
	b.logs()
	check(len(b.providers.leaks) == 0, "a provider receives one key, and nothing of the caller's", b.providers.leaks)
}

// refusals: a caller without the right is refused in our envelope, and no provider is called.
func (b *bench) refusals(t *tenant) string {
	model := func(name string) string { return fmt.Sprintf(`{"model":%q}`, name) }
	documents := b.tenant("documents")
	documents.storeKey(`{"accessKeyId":"AKIA","secretAccessKey":"s"}`, nil)
	closed := b.tenant("closed")
	closed.store(map[string]any{"is_byok_only": true, "allowed_models": []string{}})
	const most = 4 << 20
	large := `{"model":"small","x":"` + strings.Repeat("A", most) + `"}`
	cases := []struct {
		key    string
		body   io.Reader
		status int
		reason string
	}{
		{"", strings.NewReader(model("small")), 401, "missing"},
		{t.key + "x", strings.NewReader(model("small")), 401, "unknown_key"},
		{t.key + "x", strings.NewReader("{"), 401, "unknown_key"},
		{t.management, strings.NewReader(model("small")), 403, "management_key"},
		{t.key, strings.NewReader(model("unknown")), 404, "unknown_model"},
		{t.key, strings.NewReader(`{"model":"small","model":"large"}`), 400, "malformed_body"},
		{documents.key, strings.NewReader(model("small")), 422, "key_is_document"},
		{closed.key, strings.NewReader(model("small")), 403, "no_step"},
		{t.key, strings.NewReader(large), 413, "body_too_large"},
	}
	for i := range 20 { // chunked, a little or much too large
		body := io.MultiReader(strings.NewReader(large[:most]+strings.Repeat("A", 1<<i)), strings.NewReader(`"}`))
		cases = append(cases, cases[0])
		cases[len(cases)-1].key, cases[len(cases)-1].body = t.key, body
		cases[len(cases)-1].status, cases[len(cases)-1].reason = 413, "body_too_large"
	}
	for _, c := range cases {
		_, isSized := c.body.(*strings.Reader)
		g, err := b.post(c.key, "/v1/chat/completions", c.body, nil)
		check(err == nil && g.status == c.status && g.reason() == c.reason, "a refusal", c.status, c.reason, isSized, err, g.status, g.reason(), g.header)
		check(c.status != 401 || g.header.Get("WWW-Authenticate") == "Bearer", "a 401 asks for a key", g.header)
	}
	g, err := b.post(t.key, "/v1/models", strings.NewReader("{}"), nil)
	check(err == nil && g.status == 404 && g.reason() == "route_not_found", "an unknown route", err, g)
	g = b.send(t.key, "small", forged, "?key=sk-forged&k%65y=sk-forged")
	check(g.status == http200 && slices.Equal(g.received, t.plan("small")[:1]), "a client's own headers and query have no effect", g)
	check(slices.Equal(g.header.Values("X-Signalbox-Served-By"), []string{"own"}), "served by the tenant's own key", g.header)
	g = b.call(t.key, "500")
	check(g.status == http200 && slices.Equal(g.header.Values("X-Signalbox-Served-By"), []string{"platform"}), "served by the platform's key", g.status, g.header)
	g = b.call(t.key, "500", "402")
	check(g.status == 502 && g.reason() == "platform_key_refused" && g.header.Get("X-Signalbox-Served-By") == "platform", "a refused platform key", g.status, g.text, g.header)
	return fmt.Sprintf("%d, each with its reason in the envelope", len(cases)+1)
}

// exactly: for random requests, each provider receives exactly the keys of the plan.
func (b *bench) exactly(v vectors) string {
	tenants := []*tenant{b.tenant("anna"), b.tenant("berta")}
	pick := func(all ...any) any { return all[b.random.IntN(len(all))] }
	for _, t := range tenants {
		for range 10 {
			t.store(map[string]any{
				"provider": pick("openai", "azure", "anthropic"), "is_fallback": b.random.Float64() < 0.4, "is_required": b.random.Float64() < 0.2,
				"allowed_models":         pick(nil, nil, nil, []string{"large"}, []string{"small", "other"}),
				"allowed_api_key_hashes": pick(nil, nil, nil, []string{t.hash}, []string{t.otherHash}), "allowed_user_ids": pick(nil, nil, nil, []string{"u"}),
			})
		}
	}
	type asking struct {
		t       *tenant
		model   string
		answers []string
		header  map[string]string
	}
	requests := make([]asking, *b.requests)
	for i := range requests {
		r := asking{tenants[b.random.IntN(2)], []string{"small", "large", "other"}[b.random.IntN(3)], nil, []map[string]string{forged, nil}[b.random.IntN(2)]}
		for range 8 {
			r.answers = append(r.answers, []string{"200", "200", "200", "200", "0", "401", "402", "403", "408", "409", "429", strconv.Itoa(400 + b.random.IntN(200))}[b.random.IntN(12)])
		}
		requests[i] = r
	}
	var next, attempts, ended atomic.Int64
	together(20, func(int) {
		for i := int(next.Add(1)) - 1; i < len(requests); i = int(next.Add(1)) - 1 {
			r := requests[i]
			g := b.send(r.t.key, r.model, r.header, "", r.answers...)
			status, keys := v.expected(r.t.plan(r.model), r.answers, func(s string) int { n, _ := strconv.Atoi(s); return n })
			attempts.Add(int64(len(g.received)))
			if g.status == status && slices.Equal(g.received, keys) {
				continue
			}
			// DynamoDB's time-out may end a request on a busy machine.
			isEnded := g.status == http503 && g.reason() == "unavailable" && len(g.received) <= len(keys) && slices.Equal(g.received, keys[:len(g.received)])
			check(isEnded, "a request follows its plan", r.model, r.answers, g, status, keys)
			ended.Add(1)
		}
	})
	check(ended.Load() <= int64(*b.requests/10), "most requests are served", ended.Load())
	return fmt.Sprintf("%d requests, %d attempts, no wrong key, %d ended by a time-out", *b.requests, attempts.Load(), ended.Load())
}

// streams: the parts of a stream arrive while it is sent, also after a failed attempt. No
// attempt follows an answer that breaks off.
func (b *bench) streams(t *tenant) string {
	for _, answers := range [][]string{{"stream"}, {"429", "stream"}, {"cut"}, {"429", "cut"}} {
		number := fmt.Sprint(b.numbers.Add(1))
		body := fmt.Sprintf(`{"model":"small","messages":[{"role":"user","content":%q}]}`, number+" "+strings.Join(answers, " "))
		r, err := http.NewRequest(http.MethodPost, b.url+"/v1/chat/completions", strings.NewReader(body)) //nolint:noctx // it ends with Envoy
		must(err)
		r.Header.Set("Authorization", "Bearer "+t.key)
		response, err := b.client.Do(r)
		must(err)
		parts := 0
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") {
				parts++
				b.providers.channel(b.providers.parts, number) <- struct{}{} // else the provider sends no other part
			}
		}
		_ = response.Body.Close()
		want := map[bool]int{true: 1, false: 3}[slices.Contains(answers, "cut")]
		keys := b.providers.take(number)
		check(parts == want && slices.Equal(keys, t.plan("small")[:len(answers)]), "a stream", answers, parts, keys)
	}
	return "each part arrives before the next one is sent; nothing follows one that breaks off"
}

// timeouts: the provider may have done the work, so no other attempt follows.
func (b *bench) timeouts(t *tenant) string {
	g := b.call(t.key, "hang")
	check(g.status == 504 && slices.Equal(g.received, t.plan("small")[:1]), "a time-out", g.status, g.received)
	return "one attempt, 504"
}

// changes: a revoked or superseded key is not used by a request that begins after the
// change, and no request fails.
func (b *bench) changes() string {
	t := b.tenant("changes")
	current := t.store(nil)
	type call struct {
		began, ended time.Time
		keys         []received
	}
	var mu sync.Mutex
	var calls []call
	var stop atomic.Bool
	type off struct {
		key         string
		from, until time.Time
	}
	var offs []off
	turns := max(3, *b.requests/1000)
	together(5, func(i int) {
		if i == 0 {
			defer stop.Store(true)
			for range turns {
				b.admin(nil, "credential", "disable", current.ID, "--account", t.account)
				from := time.Now()
				b.wait(&mu, func() bool { return len(calls) > 0 && calls[len(calls)-1].began.After(from) })
				until := time.Now()
				b.admin(nil, "credential", "enable", current.ID, "--account", t.account)
				offs = append(offs, off{current.key, from, until})
				next := t.store(nil)
				b.admin(nil, "credential", "supersede", current.ID, next.ID, "--account", t.account)
				offs = append(offs, off{current.key, time.Now(), time.Now().Add(time.Hour)})
				current = next
			}
			from := time.Now()
			b.wait(&mu, func() bool { return calls[len(calls)-1].began.After(from) })
			return
		}
		for !stop.Load() {
			began := time.Now()
			g := b.call(t.key)
			check(g.status == http200 && len(g.received) == 1, "no request fails beside a change", g.status, g.text)
			mu.Lock()
			calls = append(calls, call{began, time.Now(), g.received})
			mu.Unlock()
		}
	})
	after := 0
	for _, c := range calls {
		for _, o := range offs {
			if c.began.After(o.from) && c.ended.Before(o.until) {
				after++
				check(c.keys[0].key != o.key, "a request after a change does not use the old key", c)
			}
		}
	}
	check(after > 0, "requests come after a change")
	return fmt.Sprintf("%d revocations and %d rotations beside %d requests: none failed, none used an old key", turns, turns, len(calls))
}

// wait waits until a check under the lock holds.
func (b *bench) wait(mu *sync.Mutex, holds func() bool) {
	for {
		mu.Lock()
		ok := holds()
		mu.Unlock()
		if ok {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// succession: for a request under way, a successor serves in its predecessor's place, and a
// revoked key serves no later attempt.
func (b *bench) succession() string {
	for name, change := range map[string]func(t *tenant, second credential) received{
		"superseded": func(t *tenant, second credential) received {
			next := t.store(nil)
			b.admin(nil, "credential", "supersede", second.ID, next.ID, "--account", t.account)
			return received{"openai", next.key}
		},
		"disabled": func(t *tenant, second credential) received {
			b.admin(nil, "credential", "disable", second.ID, "--account", t.account)
			return received{"openai", "sk-platform-openai"}
		},
	} {
		t := b.tenant(name)
		first, second := t.store(nil), t.store(nil)
		number := strconv.FormatInt(b.numbers.Load()+1, 10)
		var g got
		together(2, func(i int) {
			if i == 0 {
				g = b.call(t.key, "held,429")
				return
			}
			b.wait(&b.providers.mu, func() bool { return len(b.providers.received[number]) == 1 })
			defer close(b.providers.channel(b.providers.held, number))
			want := change(t, second)
			b.providers.mu.Lock()
			defer b.providers.mu.Unlock()
			b.providers.received["want"+number] = []received{{"openai", first.key}, want}
		})
		want := b.providers.take("want" + number)
		check(g.status == http200 && slices.Equal(g.received, want), "an attempt after its step was "+name, g.status, g.received, want)
	}
	return "a successor serves a request under way; a revoked key does not"
}

// reload: after SIGHUP, whole files count and others do not, and no request fails.
func (b *bench) reload(t *tenant) string {
	file, key := filepath.Join(b.work, "router-0.yaml"), filepath.Join(b.work, "openai")
	whole, err := os.ReadFile(file) //nolint:gosec // our own
	must(err)
	platform, err := os.ReadFile(key) //nolint:gosec // our own
	must(err)
	b.useAuthorizers(1)
	defer b.useAuthorizers(len(b.authorizers))
	hangUp := func(outcome string, count int) {
		must(b.authorizers[0].running.Process.Signal(syscall.SIGHUP))
		line := fmt.Sprintf("signalbox_router_reloads_total{outcome=%q} %d\n", outcome, count)
		for {
			r, err := http.Get(b.authorizers[0].url + "/metrics") //nolint:noctx // our own
			must(err)
			text, err := io.ReadAll(r.Body)
			must(err)
			if strings.Contains(string(text), line) {
				return
			}
		}
	}
	var stop atomic.Bool
	var served atomic.Int64
	together(5, func(i int) {
		if i > 0 {
			for !stop.Load() {
				g := b.call(t.key, "429")
				check(g.status == http200 && len(g.received) == 2 && strings.HasPrefix(g.received[1].key, "sk-platform-"), "a request beside a SIGHUP", g.status, g.text, g.received)
				served.Add(1)
			}
			return
		}
		defer stop.Store(true)
		for n := range 5 {
			must(os.WriteFile(file, whole[:len(whole)/2], 0o600)) //nolint:gosec // our own
			hangUp("refused", 2*n+1)
			must(os.WriteFile(file, whole, 0o600)) //nolint:gosec // our own
			must(os.WriteFile(key, nil, 0o600))
			hangUp("refused", 2*n+2)
			must(os.WriteFile(key, fmt.Appendf(nil, "sk-platform-openai-%d", n), 0o600))
			hangUp("ok", n+1)
			check(b.call(t.key, "429").received[1].key == fmt.Sprintf("sk-platform-openai-%d", n), "the new platform key is used")
		}
		must(os.WriteFile(key, platform, 0o600)) //nolint:gosec // our own
		hangUp("ok", 6)
	})
	return fmt.Sprintf("16 SIGHUP, 10 of them with damaged files: 0 of %d requests failed", served.Load())
}

// restarts: with one authorizer or two, no request fails while each is ended five times,
// however it is ended and however long first attempts take.
func (b *bench) restarts(t *tenant) string {
	var told []string
	for _, count := range []int{2, 1} {
		if count == 1 {
			b.authorizers[1].stop(os.Kill)
			b.useAuthorizers(1)
			defer b.useAuthorizers(2)
			defer b.authorizers[1].start()
		}
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			for _, answers := range [][]string{{"429"}, {"slow,429"}} {
				served := b.restart(t, count, signal, answers)
				told = append(told, fmt.Sprintf("%d by %v, %s: 0 of %d failed", count, signal, answers[0], served))
			}
		}
	}
	return strings.Join(told, "; ")
}

func (b *bench) restart(t *tenant, count int, signal syscall.Signal, answers []string) (served int64) {
	var stop atomic.Bool
	var all atomic.Int64
	tick := time.NewTicker(10 * time.Millisecond) // 100 requests a second
	defer tick.Stop()
	together(101, func(i int) {
		if i == 0 {
			defer stop.Store(true)
			for n := range 5 {
				for before := all.Load(); all.Load() < before+40; {
					time.Sleep(time.Millisecond)
				}
				b.authorizers[n%count].stop(signal)
				b.authorizers[n%count].start()
			}
			for before := all.Load(); all.Load() < before+10; {
				time.Sleep(time.Millisecond)
			}
			return
		}
		for !stop.Load() {
			<-tick.C
			g := b.call(t.key, answers...)
			check(g.status == http200 && slices.Equal(g.received, t.plan("small")[:2]), "a request during a restart", g.status, g.text, g.received)
			all.Add(1)
		}
	})
	return all.Load()
}

// faults: an outage ends the request with 503 and its reason, and no provider is called.
func (b *bench) faults() string {
	for _, engine := range []*proxy{b.dynamodb, b.kms} {
		for _, mode := range []string{"down", "silent"} {
			t := b.tenant("fault")
			key := t.store(nil).key
			engine.set(mode)
			g := b.call(t.key)
			engine.set("up")
			check(g.status == http503 && len(g.received) == 0 && g.reason() == "unavailable", "an engine that is "+mode, g.status, g.text, g.received)
			for g = b.call(t.key, "401"); g.status == http503; { // its connections are made again
				g = b.call(t.key, "401")
			}
			check(g.status == http200 && slices.Equal(g.received, []received{{"openai", key}, {"openai", "sk-platform-openai"}}), "requests are served again", g)
		}
	}
	return "DynamoDB or KMS down or silent: 503 with its reason, and no provider was called"
}

// memory: unfinished and whole bodies of callers without a key cost little, and a tenant is
// served beside them.
func (b *bench) memory(t *tenant) string {
	const most = 4 << 20
	for range 20 {
		b.call(t.key)
	}
	start, body := []int{b.envoy.memory(), b.authorizers[0].memory()}, `{"model":"small","x":"`+strings.Repeat("A", most-100)
	var attackers []net.Conn
	peak := slices.Clone(start)
	look := func() {
		peak[0], peak[1] = max(peak[0], b.envoy.memory()), max(peak[1], b.authorizers[0].memory())
	}
	for i := range 84 {
		authorization := map[bool]string{true: "", false: "Authorization: Bearer sbx_made_up\r\n"}[i < 24]
		c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://")) //nolint:noctx // at once
		must(err)
		attackers = append(attackers, c)
		go func() { // until Envoy stops reading
			_, _ = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", most, authorization, body)
		}()
	}
	for range 100 {
		g := b.call(t.key)
		check(g.status == http200, "a tenant is served beside the attack", g.status, g.text)
		look()
	}
	attacked := slices.Clone(peak)
	refused := 0
	for _, c := range attackers {
		line, err := bufio.NewReader(c).ReadString('\n')
		if err == nil && strings.Contains(line, " 401 ") {
			refused++
		}
		_ = c.Close()
	}
	check(refused == len(attackers), "every attacker gets 401", refused)
	// Whole bodies, of a caller with a key.
	together(24, func(int) {
		g, err := b.post(t.key, "/v1/chat/completions", strings.NewReader(body+`","messages":[{"content":"0"}]}`), nil)
		check(err == nil && g.status == http200, "a whole body", err, g.status, g.text)
		look()
	})
	look()
	check(attacked[0] < start[0]+100 && attacked[1] < start[1]+30, "memory in MB beside the attack", start, attacked)
	check(peak[0] < attacked[0]+24*most*4>>20 && peak[1] < start[1]+60, "memory in MB for whole bodies", start, attacked, peak)
	return fmt.Sprintf("Envoy and the authorizer from %v MB to %v beside 84 bodies without a key, to %v with 24 whole ones of 4 MiB", start, attacked, peak)
}

// kill: after a kill -9 of Envoy, requests follow their plan again.
func (b *bench) kill(t *tenant) string {
	b.envoy.stop(os.Kill)
	b.envoy.start()
	g := b.call(t.key, "429")
	check(g.status == http200 && slices.Equal(g.received, t.plan("small")[:2]), "after a kill of Envoy", g)
	b.authorizers[0].stop(os.Kill)
	b.authorizers[1].stop(os.Kill)
	g = b.call(t.key)
	check(g.status == http503 && len(g.received) == 0 && g.reason() == "no_authorizer", "without an authorizer", g.status, g.text)
	return "Envoy serves again; without an authorizer it answers 503"
}

// logs: no key is in a log, and each line of Envoy names whose request it was.
func (b *bench) logs() {
	b.envoy.stop(syscall.SIGTERM) // it writes what it has kept
	files, err := filepath.Glob(filepath.Join(b.work, "[ae][un]*.log"))
	must(err)
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // our own
		must(err)
		check(!bytes.Contains(text, []byte("sk-")) && !b.providers.isSecret(string(text)), "no key is in a log", file)
	}
	text, err := os.ReadFile(filepath.Join(b.work, "envoy.log"))
	must(err)
	lines, named := 0, 0
	for line := range strings.Lines(string(text)) {
		var entry struct {
			Account, Workspace, Key, Refused, Attempt *string
			Details                                   string
			Status                                    int
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		lines++
		switch entry.Details {
		case "via_upstream":
			check(entry.Account != nil && entry.Workspace != nil && entry.Key != nil, "an attempt's line names the account, the workspace and the key", line)
			named++
		case "ext_authz_denied":
			isNamed := entry.Refused != nil && (entry.Key != nil || *entry.Refused == "missing")
			check(isNamed, "a refusal's line names the key and the reason", line)
			named++
		}
	}
	fmt.Printf("logs: %d lines, %d of them checked, no key\n", lines, named)
}
