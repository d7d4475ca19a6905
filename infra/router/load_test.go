package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/test/kit"
)

// slowDynamoDB passes calls to the engine and repeats its answers: no row changes here, and the
// engine is slower than DynamoDB. least is the least pause before an answer.
func slowDynamoDB(t *testing.T, a *tenant, least *atomic.Int64) *httptest.Server {
	t.Helper()
	engine, err := url.Parse(*dynamodb.NewFromConfig(a.engines.Config).Options().BaseEndpoint)
	kit.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(engine)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of calls that the authorizer did not wait for
	var answers sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, err := io.ReadAll(r.Body)
		kept, _ := answers.Load(string(call))
		answer, _ := kept.(*httptest.ResponseRecorder)
		if answer == nil {
			r.Body = io.NopCloser(bytes.NewReader(call))
			answer = httptest.NewRecorder()
			proxy.ServeHTTP(answer, r)
			if err == nil && r.Context().Err() == nil {
				answers.Store(string(call), answer)
			}
		}
		if pause := least.Load(); pause > 0 {
			time.Sleep(time.Duration(pause) + rand.N(400*time.Millisecond)) //nolint:gosec // no secret
		}
		maps.Copy(w.Header(), answer.Header())
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	return server
}

// brownout: with -long as many callers as Envoy's breaker admits, each of an account of its own.
// While DynamoDB answers in 300 to 700 ms, all of them leave the authorizer within the memory of
// the examples in deploy.
func brownout(t *testing.T, a *tenant) {
	const most = 256 // MB
	callers := map[bool]int{true: 512, false: 128}[*isLong]
	var slow atomic.Int64
	env, logFile := a.authorizer.env, a.authorizer.log
	defer func() { a.authorizer.env, a.authorizer.log = env, logFile; a.authorizer.restart(syscall.SIGTERM) }()
	a.authorizer.log = filepath.Join(t.TempDir(), "authorizer") // these requests have no id of Envoy's
	a.authorizer.env = append(slices.Clone(env), "GOMEMLIMIT=200MiB", "AWS_ENDPOINT_URL_DYNAMODB="+slowDynamoDB(t, a, &slow).URL)
	a.authorizer.restart(syscall.SIGTERM)
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", a.authorizer.running.Process.Pid))
	if kit.Must(t, err); !strings.Contains(string(limits), "Max core file size        0                    0 ") {
		t.Errorf("a core dump is possible: %s", limits)
	}
	tokens := make([]string, callers)
	together(16, func(first int) {
		for i := first; i < callers; i += 16 {
			tokens[i] = a.tenant().token
		}
	})
	plans := func() (answered, served int64) {
		var all, good atomic.Int64
		together(callers, func(i int) {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:9180/plan", strings.NewReader(`{"model":"gpt-5.2"}`)) // it is legal
			r.Header.Set("Authorization", "Bearer "+tokens[i])
			response, err := a.client.Do(r)
			if err != nil { // on a busy machine a request's header may be too late
				return
			}
			_ = response.Body.Close()
			all.Add(1)
			if response.StatusCode == http.StatusOK {
				good.Add(1)
			}
		})
		return all.Load(), good.Load()
	}
	plans() // from now on the keys are known, so a request makes all its reads at once
	slow.Store(int64(300 * time.Millisecond))
	answered, served := plans()
	// At half a second an answer, 64 at once, more than 200 fit into the time that requests wait.
	if (answered < int64(callers) || served < 100) && !kit.Busy(t, "a brown-out") {
		t.Errorf("%d of %d requests have a response, %d are served", answered, callers, served)
	}
	used := a.authorizer.peak()
	if t.Logf("%d of %d requests in the brown-out: the authorizer %d MB", served, callers, used); used > most {
		t.Errorf("%d callers in a brown-out: the authorizer %d MB", callers, used)
	}
}

// alone is a listener that only passes requests on.
const alone = `
  - address: {socket_address: {address: 127.0.0.1, port_value: 9101}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: alone
          route_config: {virtual_hosts: [{name: all, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: openai, host_rewrite_literal: api.openai.com}}]}]}
          http_filters: [{name: router, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`

// overhead prints what a routed request takes, as a multiple of the same request through Envoy
// alone. One caller sends both in turn.
func overhead(t *testing.T, a *tenant) {
	if !*isLong {
		return
	}
	a.envoy.changed(t, "\n  listeners:\n", "\n  listeners:"+alone)
	leaks := len(a.providers.leaks)
	defer func() { a.providers.leaks = a.providers.leaks[:leaks] }() // what Envoy alone lets through
	var took [2][]time.Duration
	for i := range 1000 {
		url, key := envoyURL, a.token
		if i%2 == 1 {
			url, key = "http://127.0.0.1:9101", a.plan(model)[0].key
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+chat, strings.NewReader(bodyFor(model, "0")))
		kit.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		began := time.Now()
		response, err := a.client.Do(r)
		kit.Must(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		took[i%2] = append(took[i%2], time.Since(began))
		if kit.Must(t, err); response.Body.Close() != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", url, response.StatusCode)
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	routed, direct := took[0][250], took[1][250]
	t.Logf("a routed request takes %.1f times one through Envoy alone: %s and %s (medians)", float64(routed)/float64(direct), routed, direct)
}
