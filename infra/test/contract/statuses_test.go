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

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/syncjobs"
)

// TestEveryStatus reaches each status of each operation in the description. Those
// of a server in trouble are left to TestOtherParameters, the firewall's 403 to
// AWS.
func TestEveryStatus(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, o := range operations {
		route := the.spec.Operations()[o.id]
		// Every operation can get these, some of them from the firewall or the gateway alone.
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError} {
			if the.spec.Statuses(o.id)[status] == "" {
				t.Errorf("%s: infra/openapi.yaml lacks the %d", o.id, status)
			}
		}
		for status, r := range o.statuses(t, n) {
			if declared, _, _ := strings.Cut(route, "{"); !strings.HasPrefix(r.Method+" "+r.Path, declared) {
				t.Errorf("%s is %s in the description, not %s %s", o.id, route, r.Method, r.Path)
			}
			t.Run(o.id+" "+http.StatusText(status), func(t *testing.T) {
				if status == http.StatusTooManyRequests {
					if the.burst > 200 {
						t.Skipf("DeleteBurst is %d: too many requests would be needed", the.burst)
					}
					if statuses := atOnce(t, the.burst+20, func(int) request { return r }); statuses[status] == 0 {
						t.Errorf("none of %v was refused", statuses)
					}
					return
				}
				seesPlanted(t, r.Operation, r.Do(t).Is(t, status))
			})
		}
	}
}

// listed are the texts of a response whose values the description lists.
var listed = regexp.MustCompile(`"(reason|provider|message)":"([a-z_]+|Only [^"]+)"`)

// instant is a time: its year and its time of day.
var instant = regexp.MustCompile(`(\d{4})-\d\d-\d\dT([0-9:]+)Z`)

// seesPlanted fails the test unless the suite sees another member at each level of the
// response, another value of each listed text, a time of another form, a job of another
// status, a second JSON value or none, a status that is not declared, and each header that is
// missing, repeated or not declared, or has a wrong value.
func seesPlanted(t *testing.T, operation string, r response) {
	t.Helper()
	body := string(r.Body)
	planted := []string{listed.ReplaceAllString(body, `"$1":"planted"`), "", body + "{}", strings.Replace(body, `"succeeded"`, `"queued"`, 1)}
	for _, wrong := range []string{"$1-02-30T$2Z", "$1-01-02T$2.5Z", "$1-01-02T$2+00:00"} {
		planted = append(planted, instant.ReplaceAllString(body, wrong))
	}
	for at, letter := range body {
		if letter == '{' {
			planted = append(planted, body[:at+1]+`"planted":1,`+body[at+1:])
		}
	}
	if the.spec.CheckResponse(operation, http.StatusNoContent, r.Header, r.Body) == nil {
		t.Error("the suite accepts a 204")
	}
	for _, other := range planted {
		if other != body && the.spec.CheckResponse(operation, r.Status, r.Header, []byte(other)) == nil {
			t.Errorf("the suite accepts %s", other)
		}
	}
	for name, wrong := range map[string][]string{
		"X-Planted": {"1"}, "X-Request-Id": nil, "Cache-Control": {"", ""}, "Content-Type": {"application/json; charset=utf-8"},
		"Retry-After": {"05"}, "X-Content-Type-Options": {"sniff"}, "X-Ratelimit-Limit": {"soon"}, "X-Ratelimit-Remaining": {"-1"}, "Www-Authenticate": {""},
	} {
		if name == "Content-Type" && body == "" {
			continue // without a body it is only HTTP's
		}
		header := r.Header.Clone()
		header[name] = wrong
		if the.spec.CheckResponse(operation, r.Status, header, r.Body) == nil {
			t.Errorf("the suite accepts the header %s: %q with status %d", name, wrong, r.Status)
		}
	}
}

// Parts of a line that differ from run to run: times, ids, hashes and numbers that are no status.
var (
	varyingText   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|(file_)[0-9a-f]+|(key |"key":")[0-9a-f]{12}|("aws_request_id":")[^"]*`)
	varyingNumber = regexp.MustCompile(`("(?:duration_ms|aws_calls)":)[0-9.]+`)
)

// TestOtherParameters starts a local server with a versioned bucket and low limits. It
// provokes each kind of answer, the last ones without tables and without the key, looks for
// the audit lines, and compares the functions' log lines with
// infra/test/contract/log-lines.json, on which infra/test/cloud tries every metric filter and
// alarm. SIGNALBOX_LINES=record writes them.
func TestOtherParameters(t *testing.T) {
	t.Parallel()
	if the.state == "" {
		t.Log("NOT REACHED at SIGNALBOX_BASE_URL: versioned files, 500s, and the gateway's own 429")
		return
	}
	state := t.TempDir()
	s, stop, err := start(state, map[string]string{"FilesVersioning": "Enabled", "ReadsPerSecond": "20", "DeleteRatePerMinute": "1"})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, stop()) })
	n, other, bad := s.tenant(t), s.tenant(t), s.tenant(t)
	jobs, access := kit.Rows{DB: s.DynamoDB, Table: s.Jobs}, kit.Rows{DB: s.DynamoDB, Table: s.Access}
	damaged := n.job(t, syncjobs.Succeeded)
	jobs.Set(t, kit.Key("job#"+damaged), "created_at", kit.Number("1760000000000")) // milliseconds
	access.Set(t, kit.Key("key#"+hashOf(bad.management), "key"), "kind", kit.Text("nonsense"))
	lines := map[string]string{}
	ask := func(name string, r request, status int) {
		t.Helper()
		r.Fails = status == http.StatusInternalServerError
		answer := r.At(s.client).Do(t)
		for tries := 0; status == http.StatusTooManyRequests && answer.Status != status && tries < 5*the.burst; tries++ {
			answer = r.At(s.client).Do(t)
		}
		id := answer.Is(t, status).Header.Get("X-Request-Id")
		line := logLine(t, state, id, "request")
		lines[name] = withoutVarying(t, line)
		if r.Method != http.MethodGet {
			isAudited(t, state, id, line)
		}
	}
	for _, o := range operations {
		for status, r := range o.statuses(t, n) {
			if status != http.StatusBadRequest { // the gateway's, which reaches no function
				ask(fmt.Sprintf("%s %d", o.id, status), r, status)
			}
		}
		ask(o.id+" 401 damaged key", o.unknown().As(bad.management), 401)
	}
	kit.Rows{DB: s.DynamoDB, Table: s.Control}.Put(t, kit.Row{
		"pk": kit.Text("limit#delete-file#" + hashOf(n.management)), "tat": kit.Text("soon"), "exp": kit.Number("4000000000"),
	})
	ask("deleteFile 500 damaged limiter item", del("file_unknown").As(n.management), 500)
	ask("createByokKey 400", post("{}").As(n.management), 400)
	ask("getSyncJob 404 damaged job of another", get(damaged).As(other.management), 404)
	ask("getSyncJob 500 damaged job", get(damaged).As(n.management), 500)
	_, err = s.DynamoDB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &s.Credentials})
	kit.Must(t, err)
	ask("createByokKey 500 stored or not", post(bodyWith("")).As(n.management), 500)
	_, err = s.KMS.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &s.SealingKey}, func(o *kms.Options) { o.RetryMaxAttempts = 1 })
	kit.Must(t, err)
	ask("createByokKey 500 KMS", post(bodyWith("")).As(n.management), 500)
	_, err = s.DynamoDB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &s.Access})
	kit.Must(t, err)
	for _, o := range operations {
		ask(o.id+" 500", o.unknown().As(n.management), 500)
	}
	// Far more at once than twenty a second.
	statuses := atOnce(t, 200, func(int) request { return get(unknownJob).As(n.management).At(s.client) })
	if statuses[http.StatusTooManyRequests] == 0 {
		t.Errorf("the gateway never refused: %v", statuses)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		all = append(all, fmt.Sprintf("  %q: %s", name, lines[name]))
	}
	got := "{\n" + strings.Join(all, ",\n") + "\n}\n"
	if os.Getenv("SIGNALBOX_LINES") == "record" {
		kit.Must(t, os.WriteFile("log-lines.json", []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile("log-lines.json")
	kit.Must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("infra/test/contract/log-lines.json (-) is out of date; record it: SIGNALBOX_LINES=record go test -run TestOtherParameters .\n%s", diff)
	}
}

// withoutVarying returns the line without its varying parts, its fields in the order of their names.
func withoutVarying(t *testing.T, line json.RawMessage) string {
	t.Helper()
	var fields map[string]any
	kit.Must(t, json.Unmarshal(line, &fields))
	sorted, err := json.Marshal(fields)
	kit.Must(t, err)
	return varyingNumber.ReplaceAllString(varyingText.ReplaceAllString(string(sorted), "$1$2$3…"), "${1}0")
}

// isAudited fails the test unless a write of a known caller has an audit line with the
// values of the request's line.
func isAudited(t *testing.T, state, requestID string, request json.RawMessage) {
	t.Helper()
	var line, audit map[string]any
	kit.Must(t, json.Unmarshal(request, &line))
	if line["account"] == nil {
		return
	}
	kit.Must(t, json.Unmarshal(logLine(t, state, requestID, "audit"), &audit))
	for _, field := range []string{"operation", "status", "key", "account", "workspace", "credential", "file"} {
		if audit[field] != line[field] {
			t.Errorf("%s %v: the audit line's %s is %v, the log line's %v", line["operation"], line["status"], field, audit[field], line[field])
		}
	}
}

// logLine returns the request's line with the message in the function's log, once it is there.
func logLine(t *testing.T, state, requestID, message string) json.RawMessage {
	t.Helper()
	for timeout := time.Now().Add(time.Minute); time.Now().Before(timeout); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(state, "logs", "*Function.log"))
		kit.Must(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file) //nolint:gosec // the suite's own state folder
			kit.Must(t, err)
			for line := range strings.Lines(string(content)) {
				if strings.Contains(line, requestID) && strings.Contains(line, `"message":"`+message+`"`) && strings.HasSuffix(line, "\n") {
					return json.RawMessage(strings.TrimSuffix(line, "\n"))
				}
			}
		}
	}
	t.Fatalf("request %s has no line in the log", requestID)
	return nil
}
