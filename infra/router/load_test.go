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

// slowDynamoDB passes calls to the engine and repeats its answers: no row changes here, and the
// engine is slower than DynamoDB. least is the least pause before an answer.
func slowDynamoDB(t *testing.T, f *fixture, least *atomic.Int64) *httptest.Server {
	t.Helper()
	engine, err := url.Parse(*dynamodb.NewFromConfig(f.engines.Config).Options().BaseEndpoint)
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

// As many callers as Envoy's breaker admits, each of an account of its own. While DynamoDB answers
// in 300 to 700 ms, all of them leave the authorizer within the memory of the examples in deploy.
func TestManyCallers(t *testing.T) {
	buildRouter(t)
	t.Parallel()
	const callers, most = 512, 256 << 20
	f := newFixture(t)
	var slow atomic.Int64
	server := slowDynamoDB(t, f, &slow)
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
	access, err := f.engines.Config.Credentials.Retrieve(t.Context())
	kit.Must(t, err)
	router := exec.CommandContext(t.Context(), routerBinary, "-config", f.file) //nolint:gosec // our own
	router.Env = append(os.Environ(), "GOMEMLIMIT=200MiB", "AWS_REGION=us-east-1", "AWS_ENDPOINT_URL="+server.URL,
		"AWS_ACCESS_KEY_ID="+access.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+access.SecretAccessKey)
	kit.Must(t, router.Start())
	kit.Must(t, askReady(t.Context(), f.file, time.Minute))
	// The system shows this limit on Linux only.
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", router.Process.Pid)); err == nil && !strings.Contains(string(limits), "Max core file size        0                    0 ") {
		t.Errorf("a core dump is possible: %s", limits)
	}
	client := onSocket(folder + "/socket")
	plans := func() (answered, served int64) {
		var all, good atomic.Int64
		together(callers, func(i int) {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://router/plan", strings.NewReader(`{"model":"m"}`)) // it is legal
			r.Header.Set("Authorization", "Bearer "+tokens[i])
			response, err := client.Do(r)
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
