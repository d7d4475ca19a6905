package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
)

// dynamoDBOverTLS passes calls to the engine and repeats its answers: no row changes here,
// and the engine is slower than DynamoDB. slow is the least pause before an answer.
func dynamoDBOverTLS(t *testing.T, f *fixture, connections, slow *atomic.Int64) *httptest.Server {
	t.Helper()
	engine, err := url.Parse(*dynamodb.NewFromConfig(f.engines.Config).Options().BaseEndpoint)
	kit.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(engine)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of calls that the authorizer did not wait for
	var mu sync.Mutex
	answers := map[string]*httptest.ResponseRecorder{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, err := io.ReadAll(r.Body)
		mu.Lock()
		answer := answers[string(call)]
		mu.Unlock()
		if answer == nil {
			r.Body = io.NopCloser(bytes.NewReader(call))
			answer = httptest.NewRecorder()
			proxy.ServeHTTP(answer, r)
			mu.Lock()
			if err == nil && r.Context().Err() == nil {
				answers[string(call)] = answer
			}
			mu.Unlock()
		}
		if least := slow.Load(); least > 0 {
			time.Sleep(time.Duration(least) + rand.N(400*time.Millisecond)) //nolint:gosec // no secret
		}
		maps.Copy(w.Header(), answer.Header())
		_, _ = w.Write(answer.Body.Bytes())
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of broken handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// As many callers as Envoy's breaker admits, each of an account of its own: 64 of them are
// served, and reuse their connections to DynamoDB. While it answers in 300 to 700 ms, all of
// them leave the authorizer within the memory of the examples in deploy.
func TestManyCallers(t *testing.T) {
	buildRouter(t)
	t.Parallel()
	const callers, most = 512, 256 << 20
	f := newFixture(t)
	var connections, slow atomic.Int64
	server := dynamoDBOverTLS(t, f, &connections, &slow)
	tokens := make([]string, callers)
	together(16, func(first int) {
		registry := auth.NewRegistry(dynamodb.NewFromConfig(f.engines.Config), f.engines.Tables.Access)
		for i := first; i < callers; i += 16 {
			tokens[i] = kit.NewTenant(t, registry).StandardKey(t, "")
		}
	})
	folder := filepath.Dir(f.file)
	text, err := os.ReadFile(f.file)
	kit.Must(t, err)
	write(t, f.file, strings.Replace(string(text), "127.0.0.1:0", "unix:"+folder+"/socket", 1))
	write(t, folder+"/roots", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	access, err := f.engines.Config.Credentials.Retrieve(t.Context())
	kit.Must(t, err)
	router := exec.CommandContext(t.Context(), routerBinary, "-config", f.file) //nolint:gosec // our own
	router.Env = append(os.Environ(), "GOMEMLIMIT=200MiB", "AWS_REGION=us-east-1", "AWS_ENDPOINT_URL="+server.URL,
		"AWS_CA_BUNDLE="+folder+"/roots", "AWS_ACCESS_KEY_ID="+access.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+access.SecretAccessKey)
	kit.Must(t, router.Start())
	kit.Must(t, askReady(t.Context(), f.file, time.Minute))
	// The system shows this limit on Linux only.
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", router.Process.Pid)); err == nil && !strings.Contains(string(limits), "Max core file size        0                    0 ") {
		t.Errorf("a core dump is possible: %s", limits)
	}
	client := onSocket(folder + "/socket")
	plans := func(callers, requests int) (answered, served int64) {
		var all, good atomic.Int64
		together(callers, func(i int) {
			for range requests {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://router/plan", strings.NewReader(`{"model":"m"}`)) // it is legal
				r.Header.Set("Authorization", "Bearer "+tokens[i])
				response, err := client.Do(r)
				if err != nil { // on a busy machine a request's header may be too late
					continue
				}
				_ = response.Body.Close()
				all.Add(1)
				if response.StatusCode == http.StatusOK {
					good.Add(1)
				}
			}
		})
		return all.Load(), good.Load()
	}
	// On a busy machine some reads are late. In one calm round there are none; with the SDK's ten
	// idle connections every round has about 750 new ones.
	const some, requests = 64, 4
	for round := 1; ; round++ {
		before := connections.Load()
		_, served := plans(some, requests)
		opened := connections.Load() - before
		if served == some*requests && opened <= some {
			break
		}
		if round == 20 || round >= 5 && !kit.Busy(t, "calls of many callers") {
			t.Fatalf("round %d: %d of %d requests are served, with %d new connections", round, served, some*requests, opened)
		}
	}
	plans(callers, 1) // from now on the keys are known, so a request makes all its reads at once
	slow.Store(int64(300 * time.Millisecond))
	answered, served := plans(callers, 1)
	// At half a second an answer, 64 at once, more than 200 fit into the time that requests wait.
	if (answered < callers || served < 100) && !kit.Busy(t, "a brown-out") {
		t.Errorf("%d of %d requests have a response, %d are served", answered, callers, served)
	}
	response, err := client.Get("http://router/metrics")
	kit.Must(t, err)
	metrics, err := io.ReadAll(response.Body)
	kit.Must(t, err)
	_, after, _ := strings.Cut(string(metrics), "\ngo_memstats_sys_bytes ")
	var memory float64
	if _, err := fmt.Sscan(after, &memory); err != nil || memory > most {
		t.Errorf("%.0f bytes of memory, %v", memory, err)
	}
	t.Logf("%d of %d requests in the brown-out; %.0f MB", served, callers, memory/1e6)
}
