package contract_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/testkit"
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
					refusedAtOnce(t, r)
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

// TestOrderOfChecks sends requests that are wrong in several ways and expects
// the status that comes first in the contract's order.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	spent, revoked := n.ManagementKey(t), n.ManagementKey(t)
	refusedAtOnce(t, del("file_unknown").As(revoked))
	n.Disable(t, revoked)
	const badKey = "a key with spaces"
	for name, c := range map[string]struct {
		request
		status int
	}{
		"get: 401 before 404":                     {get("no-uuid").As("unknown"), 401},
		"get: 401 of a standard key before 404":   {get("no-uuid").As(n.standard), 401},
		"get: 404":                                {get("no-uuid").As(n.management), 404},
		"post: 401 before 400":                    {post("").As("unknown"), 401},
		"post: 401 before an idempotency key":     {post("").As("unknown").Idempotent(badKey), 401},
		"post: 401 before a content type":         {post("").As("unknown").With("Content-Type", "text/plain"), 401},
		"post: 403 before 400":                    {post("").As(n.standard), 403},
		"post: 403 before an idempotency key":     {post("").As(n.standard).Idempotent(badKey), 403},
		"post: 400":                               {post("").As(n.management), 400},
		"delete: 401 before 429":                  {del("file_x").As(revoked), 401},
		"delete: 401 before 404":                  {del("no-file").As("unknown").In("no-uuid"), 401},
		"delete: 429 before 404 of the id":        {del("no-file").As(spent), 429},
		"delete: 429 before 404 of the workspace": {del("file_x").As(spent).In("no-uuid"), 429},
		"delete: 404":                             {del("no-file").As(n.management), 404},
	} {
		t.Run(name, func(t *testing.T) {
			if c.status == http.StatusTooManyRequests {
				refusedAtOnce(t, c.request)
				return
			}
			c.Do(t).Is(t, c.status)
		})
	}
}

// TestOtherParameters starts an edition with a versioned bucket and almost no
// throughput, later removes tables, disables the key, and expects 500 and the
// gateway's 429 in the envelope.
func TestOtherParameters(t *testing.T) {
	t.Parallel()
	if the.state == "" {
		t.Log("NOT REACHED at SIGNALBOX_BASE_URL: versioned files, 500s, and the gateway's own 429")
		return
	}
	s, stop, err := start(t.TempDir(), map[string]string{
		"FilesVersioning": "Enabled",
		"ReadsPerSecond":  "1",
	})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, stop()) })
	t.Run("versions", func(t *testing.T) { deletesEveryVersion(t, s) })
	n := s.tenant(t)
	for _, table := range []string{s.Jobs, s.Control} {
		_, err := s.DynamoDB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table})
		testkit.Must(t, err)
	}
	_, err = s.KMS.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &s.SealingKey}, func(o *kms.Options) { o.RetryMaxAttempts = 1 })
	testkit.Must(t, err)
	for _, r := range []request{get(unknownJob).As(n.management), post(bodyWith("")).As(n.management), del("file_unknown").As(n.standard)} {
		t.Run(r.Operation, func(t *testing.T) {
			r.At(s.client).Do(t).Is(t, http.StatusInternalServerError)
		})
	}
	// Far more at once than one a second.
	_, statuses := atOnce(t, 50, func(int) request { return get(unknownJob).As(n.management).At(s.client) })
	if statuses[http.StatusTooManyRequests] == 0 {
		t.Errorf("the gateway never refused: %v", statuses)
	}
}
