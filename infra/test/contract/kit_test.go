package contract_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/client"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

type (
	request  = client.Request
	response = client.Response
)

func get(job string) request               { return the.client.Get(job) }
func post(body string) request             { return the.client.Post(body) }
func del(file string) request              { return the.client.Delete(file) }
func unrouted(method, path string) request { return the.client.Unrouted(method, path) }

// bodyWith returns a body with all required members and the ones given.
func bodyWith(members string) string {
	return `{"key":"` + providerKey + `","provider":"openai"` + members + `}`
}

// keyBody returns a body with the JSON text as its key.
func keyBody(text string) string { return `{"provider":"openai","key":` + text + `}` }

// checkEnvelope checks every response: the description allows it,
// its request id is new and the same in header and body, it contains no secret,
// and a request that was accepted agrees with the description.
func checkEnvelope(t testing.TB, q request, r response) {
	t.Helper()
	if q.Method == http.MethodHead {
		return // a response without a body
	}
	if err := the.spec.CheckResponse(q.Operation, r.Status, r.Header, r.Body); err != nil {
		t.Errorf("%s %s returned %d %s\n%v", q.Method, q.Path, r.Status, r.Body, err)
	}
	if r.Status >= http.StatusBadRequest {
		if _, err := r.Failure(); err != nil {
			t.Error(err)
		}
	}
	if _, seen := the.requestIDs.LoadOrStore(r.Header.Get("X-Request-Id"), true); seen {
		t.Errorf("request id %s is not new", r.Header.Get("X-Request-Id"))
	}
	for _, secret := range secrets(q) {
		if strings.Contains(fmt.Sprint(r.Header, string(r.Body)), secret) {
			t.Errorf("%s %s: the response contains the secret %s", q.Method, q.Path, secret)
		}
	}
	if r.Status == http.StatusCreated {
		if err := the.spec.CheckRequest(q.Operation, []byte(q.Body)); err != nil {
			t.Errorf("accepted against the description: %v", err)
		}
	}
}

// secrets are the values of the request that must not come back.
func secrets(r request) []string {
	secrets := []string{kit.Marker}
	for _, value := range slices.Concat(r.Header["Authorization"], r.Header["Idempotency-Key"]) {
		if _, token, found := strings.Cut(value, " "); found {
			value = strings.TrimSpace(token)
		}
		if len(value) > 8 { // a shorter one may be in a text by chance
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// atOnce sends n requests at the same instant and counts their statuses.
func atOnce(t *testing.T, n int, nth func(i int) request) map[int]int {
	t.Helper()
	requests, errs := make([]request, n), make([]error, n)
	responses, statuses := make([]response, n), map[int]int{}
	start := make(chan struct{})
	var done sync.WaitGroup
	for i := range n {
		requests[i] = nth(i)
		done.Go(func() {
			<-start
			responses[i], errs[i] = requests[i].Send(t.Context())
		})
	}
	close(start)
	done.Wait()
	for i, r := range responses {
		kit.Must(t, errs[i])
		checkEnvelope(t, requests[i], r)
		statuses[r.Status]++
	}
	return statuses
}

// indistinguishable fails the test unless the two responses are the same bytes,
// except for request ids, Date, AWS's name of the error and the limiter's headers.
func indistinguishable(t *testing.T, got, want response) {
	t.Helper()
	if diff := cmp.Diff(comparable(want), comparable(got)); diff != "" {
		t.Errorf("can be distinguished (-want +got):\n%s", diff)
	}
}

func comparable(r response) string {
	var lines []string
	for name, values := range r.Header {
		switch name {
		case "X-Request-Id", "X-Amz-Apigw-Id", "X-Amz-Request-Id", "X-Amzn-Requestid", "X-Amzn-Trace-Id", "Date",
			"X-Amzn-Errortype", // API Gateway takes a bearer token on an unknown route for a signature
			"Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset":
		default:
			lines = append(lines, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(lines)
	body := strings.ReplaceAll(string(r.Body), r.Header.Get("X-Request-Id"), "<request id>")
	return fmt.Sprintf("%d\n%s\n\n%s", r.Status, strings.Join(lines, "\n"), body)
}

// tenant is an account. Each test makes its own: it starts with idle limiters and empty
// workspaces.
type tenant struct {
	server
	kit.Tenant
	workspace, second    string // the default one and another
	management, standard string // API keys of the whole account
}

// newTenant makes an account at the suite's server.
func newTenant(t *testing.T) tenant {
	t.Helper()
	sources.Do(readSources)
	return the.tenant(t)
}

var sources sync.Once

// readSources makes go test forget a result if a source of the functions or the description
// has changed: its cache compares the packages that a test imports and what a test reads.
func readSources() {
	sources, _ := filepath.Glob(root + "/*/*")
	for _, source := range sources {
		_, _ = os.ReadDir(source)
	}
}

func (s server) tenant(t *testing.T) tenant {
	t.Helper()
	n := kit.NewTenant(t, auth.NewRegistry(s.DynamoDB, s.Access))
	note(t, "account", string(n.ID))
	return tenant{s, n, string(n.Workspace), string(n.NewWorkspace(t)), n.Management, n.StandardKey(t, "")}
}

// If SIGNALBOX_MADE names a file, note appends a line to it for what was made:
// `make verify` removes it.
func note(t *testing.T, kind, id string) {
	t.Helper()
	path := os.Getenv("SIGNALBOX_MADE")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the caller's own path
	kit.Must(t, err)
	_, err = fmt.Fprintln(file, kind, id)
	kit.Must(t, errors.Join(err, file.Close()))
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// job makes a sync job: queued, running or succeeded.
func (n tenant) job(t *testing.T, status syncjobs.Status) string {
	t.Helper()
	jobs := syncjobs.NewWriter(n.DynamoDB, n.Jobs)
	id, err := jobs.Create(t.Context(), n.ID)
	kit.Must(t, err)
	note(t, "job", string(id))
	if status != syncjobs.Queued {
		kit.Must(t, jobs.Start(t.Context(), n.ID, id))
	}
	if status == syncjobs.Succeeded {
		kit.Must(t, jobs.Succeed(t.Context(), n.ID, id, 12, 0))
	}
	return string(id)
}

// file uploads a file to the workspace.
func (n tenant) file(t *testing.T, workspace string) string {
	t.Helper()
	id := ids.NewFile()
	n.Bucket().Put(t, files.Key(ids.Workspace(workspace), id), "the file's content")
	return string(id)
}
