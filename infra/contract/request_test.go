package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
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
	secrets := []string{testkit.Marker}
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
func atOnce(t *testing.T, n int, nth func(i int) request) (responses []response, statuses map[int]int) {
	t.Helper()
	requests, errs := make([]request, n), make([]error, n)
	responses, statuses = make([]response, n), map[int]int{}
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
		testkit.Must(t, errs[i])
		checkEnvelope(t, requests[i], r)
		statuses[r.Status]++
	}
	return responses, statuses
}

// indistinguishable fails the test unless the two responses are the same bytes,
// except for request ids, Date and the limiter's headers.
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
		case "X-Request-Id", "X-Amzn-Requestid", "X-Amz-Apigw-Id", "X-Amzn-Trace-Id", "Date",
			"Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset":
		default:
			lines = append(lines, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(lines)
	body := strings.ReplaceAll(string(r.Body), r.Header.Get("X-Request-Id"), "<request id>")
	return fmt.Sprintf("%d\n%s\n\n%s", r.Status, strings.Join(lines, "\n"), body)
}
