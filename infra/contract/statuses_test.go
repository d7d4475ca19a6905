package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/syncjobs"
)

// tooLarge gives the request a body that no gateway passes on to a function.
func tooLarge(r request) request {
	r.Body = strings.Repeat(" ", 11<<20)
	return r
}

// TestEveryStatus reaches each status of each operation in the description. Those
// of a server in trouble are left to TestOtherParameters, the firewall's 403 to
// AWS.
func TestEveryStatus(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	job, file := n.job(t, "succeeded"), n.file(t, n.workspace)
	spent := n.StandardKey(t, "")
	reached := map[string]map[int]request{
		"getSyncJob": {
			200: get(job).As(n.management),
			304: get(job).As(n.management).With("If-None-Match", "*"),
			400: tooLarge(get(job).As(n.management)),
			401: get(job),
			404: get(unknownJob).As(n.management),
		},
		"createByokKey": {
			201: post(bodyWith("")).As(n.management),
			400: tooLarge(post("").As(n.management)),
			401: post(bodyWith("")),
			403: post(bodyWith("")).As(n.standard),
		},
		"deleteFile": {
			200: del(file).As(n.management),
			400: tooLarge(del(file).As(n.management)),
			401: del(file),
			404: del("file_unknown").As(n.management),
			429: del("file_unknown").As(spent),
		},
	}
	unreached := map[string][]int{"getSyncJob": {403, 429, 500}, "createByokKey": {429, 500}, "deleteFile": {403, 500}}
	for operation, route := range the.spec.Operations() {
		for status, r := range reached[operation] {
			if declared, _, _ := strings.Cut(route, "{"); !strings.HasPrefix(r.Method+" "+r.Path, declared) {
				t.Errorf("%s is %s in the description, not %s %s", operation, route, r.Method, r.Path)
			}
			t.Run(operation+" "+http.StatusText(status), func(t *testing.T) {
				if status == http.StatusTooManyRequests {
					beyondLimit(t, func(int) request { return r })
					return
				}
				r.Do(t).Is(t, status)
			})
		}
		all := append(slices.Collect(maps.Keys(reached[operation])), unreached[operation]...)
		slices.Sort(all)
		if want := the.spec.Statuses(operation); !slices.Equal(all, want) {
			t.Errorf("%s: reached %v, the description has %v", operation, all, want)
		}
	}
}

// varying parts differ from run to run: times, ids, hashes and numbers
// that are no status.
var varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|file_[0-9a-f]+|"key":"[0-9a-f]+"|key [0-9a-f]{12}|"(duration_ms|aws_calls)":[0-9.]+|"(aws_request_id)":"[^"]*"`)

// TestOtherParameters starts an edition with a versioned bucket and a low throughput. It
// provokes each kind of answer, the last ones without tables and without the key, and
// compares the functions' log lines with infra/log-lines.json, on which infra/lint tries
// every metric filter and alarm. SIGNALBOX_LINES=record writes the file.
func TestOtherParameters(t *testing.T) {
	t.Parallel()
	if the.state == "" {
		t.Log("NOT REACHED at SIGNALBOX_BASE_URL: versioned files, 500s, and the gateway's own 429")
		return
	}
	state := t.TempDir()
	s, stop, err := start(state, map[string]string{"FilesVersioning": "Enabled", "ReadsPerSecond": "20"})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, stop()) })
	t.Run("versions", func(t *testing.T) { deletesEveryVersion(t, s) })
	n, spent, bad := s.tenant(t), s.tenant(t), s.tenant(t)
	jobs, access := testkit.Rows{DB: s.DynamoDB, Table: s.Jobs}, testkit.Rows{DB: s.DynamoDB, Table: s.Access}
	job, damaged := n.job(t, syncjobs.Succeeded), n.job(t, syncjobs.Succeeded)
	jobs.Set(t, testkit.Key("job#"+damaged), "status", testkit.Text("nonsense"))
	access.Set(t, testkit.Key("key#"+hashOf(bad.management), "key"), "kind", testkit.Text("nonsense"))
	tag := get(job).At(s.client).As(n.management).Do(t).Header.Get("ETag")
	lines := map[string]json.RawMessage{}
	ask := func(name string, r request, status int) {
		t.Helper()
		answer := r.At(s.client).Do(t).Is(t, status)
		lines[name] = logLine(t, state, answer.Header.Get("X-Request-Id"))
	}
	ask("get 200", get(job).As(n.management), 200)
	ask("get 304", get(job).As(n.management).With("If-None-Match", tag), 304)
	ask("get 401", get(job).As("unknown"), 401)
	ask("get 401 damaged key", get(job).As(bad.management), 401)
	ask("get 404", get(unknownJob).As(n.management), 404)
	ask("get 404 damaged job of another", get(damaged).As(spent.management), 404)
	ask("get 500 damaged job", get(damaged).As(n.management), 500)
	ask("create 201", post(bodyWith("")).As(n.management), 201)
	ask("create 400", post("{}").As(n.management), 400)
	ask("create 401", post("").As("unknown"), 401)
	ask("create 401 damaged key", post("").As(bad.management), 401)
	ask("create 403", post("").As(n.standard), 403)
	ask("delete 200", del(n.file(t, n.workspace)).As(n.standard), 200)
	ask("delete 401", del("file_unknown").As("unknown"), 401)
	ask("delete 401 damaged key", del("file_unknown").As(bad.management), 401)
	ask("delete 404", del("file_unknown").As(n.standard), 404)
	var refused response
	for tries := 0; refused.Status != http.StatusTooManyRequests && tries < 5*burst; tries++ {
		refused = del("file_unknown").At(s.client).As(spent.standard).Do(t)
	}
	lines["delete 429"] = logLine(t, state, refused.Is(t, http.StatusTooManyRequests).Header.Get("X-Request-Id"))
	for _, table := range []string{s.Jobs, s.Control} {
		_, err := s.DynamoDB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table})
		testkit.Must(t, err)
	}
	_, err = s.KMS.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &s.SealingKey}, func(o *kms.Options) { o.RetryMaxAttempts = 1 })
	testkit.Must(t, err)
	ask("get 500", get(job).As(n.management), 500)
	ask("create 500", post(bodyWith("")).As(n.management).Idempotent(idempotencyKey), 500)
	ask("create 500 KMS", post(bodyWith("")).As(n.management), 500)
	ask("delete 500", del("file_unknown").As(n.standard), 500)
	// Far more at once than twenty a second.
	_, statuses := atOnce(t, 200, func(int) request { return get(unknownJob).As(n.management).At(s.client) })
	if statuses[http.StatusTooManyRequests] == 0 {
		t.Errorf("the gateway never refused: %v", statuses)
	}
	if os.Getenv("SIGNALBOX_LINES") == "record" {
		var text []string
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			text = append(text, fmt.Sprintf("  %q: %s", name, lines[name]))
		}
		testkit.Must(t, os.WriteFile("../log-lines.json", []byte("{\n"+strings.Join(text, ",\n")+"\n}\n"), 0o600))
	}
	text, err := os.ReadFile("../log-lines.json")
	testkit.Must(t, err)
	var expected map[string]json.RawMessage
	testkit.Must(t, json.Unmarshal(text, &expected))
	if diff := cmp.Diff(alike(t, expected), alike(t, lines)); diff != "" {
		t.Errorf("infra/log-lines.json is another (-), see SIGNALBOX_LINES:\n%s", diff)
	}
}

// alike returns the lines without varying parts.
func alike(t *testing.T, lines map[string]json.RawMessage) map[string]string {
	t.Helper()
	same := map[string]string{}
	for name, line := range lines {
		var fields map[string]any
		testkit.Must(t, json.Unmarshal(line, &fields))
		sorted, err := json.Marshal(fields)
		testkit.Must(t, err)
		same[name] = varying.ReplaceAllString(string(sorted), "…")
	}
	return same
}

// logLine returns the request's line in the function's log, once it is there.
func logLine(t *testing.T, state, requestID string) json.RawMessage {
	t.Helper()
	for timeout := time.Now().Add(time.Minute); time.Now().Before(timeout); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(state, "logs", "*Function.log"))
		testkit.Must(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file) //nolint:gosec // the suite's own state folder
			testkit.Must(t, err)
			for line := range strings.Lines(string(content)) {
				if strings.Contains(line, requestID) && strings.Contains(line, `"message":"request"`) && strings.HasSuffix(line, "\n") {
					return json.RawMessage(strings.TrimSuffix(line, "\n"))
				}
			}
		}
	}
	t.Fatalf("request %s has no line in the log", requestID)
	return nil
}
