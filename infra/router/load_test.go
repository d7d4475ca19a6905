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

// All idle connections to AWS are kept, so callers reuse them.
func TestConnectionsAreReused(t *testing.T) {
	const callers = 64
	t.Setenv("AWS_REGION", "us-east-1")
	var opened atomic.Int64
	var all sync.WaitGroup // each caller has a connection once all their requests are here
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		all.Done()
		all.Wait()
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := configureAWS(t.Context(), config{MaxConnections: callers})
	kit.Must(t, err)
	for range 2 {
		all.Add(callers)
		together(callers, func(int) {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil) // it is legal
			if response, err := c.HTTPClient.Do(r); err != nil || response.Body.Close() != nil {
				t.Error(err)
			}
		})
	}
	if n := opened.Load(); n != callers {
		t.Errorf("%d connections for %d callers", n, callers)
	}
}

// dynamoDBOverTLS passes calls to the engine and repeats its answers: no row changes here,
// and the engine is slower than DynamoDB. slow is the least pause before an answer.
func dynamoDBOverTLS(t *testing.T, f *fixture, slow *atomic.Int64) *httptest.Server {
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
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of broken handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// As many callers as Envoy's breaker admits, each of an account of its own: while DynamoDB
// answers in 300 to 700 ms, all of them leave the authorizer within the memory of the examples
// in deploy.
func TestManyCallers(t *testing.T) {
	const callers, most = 512, 256 << 20
	// A binary older than its source would be tested in vain.
	if out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", ".build/router").CombinedOutput(); err != nil {
		t.Fatalf("building the authorizer: %v\n%s", err, out)
	}
	f := newFixture(t)
	var slow atomic.Int64
	server := dynamoDBOverTLS(t, f, &slow)
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
	var answered, served atomic.Int64
	for _, least := range []time.Duration{0, 300 * time.Millisecond} { // the second time the keys are known, so a request makes all its reads at once
		slow.Store(int64(least))
		served.Store(0)
		together(callers, func(i int) {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://router/plan", strings.NewReader(`{"model":"m"}`)) // it is legal
			r.Header.Set("Authorization", "Bearer "+tokens[i])
			response, err := client.Do(r)
			if err != nil { // on a busy machine a request's header may be too late
				return
			}
			_ = response.Body.Close()
			answered.Add(1)
			if response.StatusCode == http.StatusOK {
				served.Add(1)
			}
		})
	}
	if answered.Load() < callers/2 {
		t.Errorf("%d of %d requests have a response", answered.Load(), 2*callers)
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
	t.Logf("%d of %d requests in the brown-out; %.0f MB", served.Load(), callers, memory/1e6)
}
