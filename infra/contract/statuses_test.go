package contract_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
)

// bodyTooLarge is more than a REST API takes, in bytes.
const bodyTooLarge = 11 << 20

// TestEveryStatus reaches each status that the description allows an operation
// and finds that it is that status, with all that the description says of it.
// Those that come from a place of its own making are left to TestOtherParameters.
func TestEveryStatus(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	job, file := n.job(t, "succeeded"), n.file(t, n.workspace)
	spent := n.key(t, standardKey())
	exhaust(t, spent)
	reached := map[string]map[int]request{
		"getSyncJob": {
			200: get(job).as(n.management),
			304: get(job).as(n.management).with("If-None-Match", "*"),
			400: get(job).as(n.management).tooLarge(),
			401: get(job),
			404: get(unknownJob).as(n.management),
		},
		"createByokKey": {
			201: post(bodyWith("")).as(n.management),
			400: post("").as(n.management).tooLarge(),
			401: post(bodyWith("")),
			403: post(bodyWith("")).as(n.standard),
		},
		"deleteFile": {
			200: del(file).as(n.management),
			400: del(file).as(n.management).tooLarge(),
			401: del(file),
			404: del("file_unknown").as(n.management),
			429: del(file).as(spent),
		},
	}
	for operation, statuses := range reached {
		for status, r := range statuses {
			t.Run(operation+" "+http.StatusText(status), func(t *testing.T) { r.do(t).is(t, status) })
		}
		all := append(slices.Collect(maps.Keys(statuses)), unreached(operation)...)
		slices.Sort(all)
		if want := the.spec.Statuses(operation); !slices.Equal(all, want) {
			t.Errorf("%s: reached %v, the description has %v", operation, all, want)
		}
	}
}

// unreached are the statuses that a service in order does not answer: what
// TestOtherParameters reaches, and the firewall's 403, which only AWS can give.
func unreached(operation string) []int {
	switch operation {
	case "getSyncJob":
		return []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError}
	case "createByokKey":
		return []int{http.StatusTooManyRequests, http.StatusInternalServerError}
	default:
		return []int{http.StatusForbidden, http.StatusInternalServerError}
	}
}

// tooLarge gives the request a body that no gateway hands on to a function.
func (r request) tooLarge() request {
	r.body = strings.Repeat(" ", bodyTooLarge)
	return r
}

// TestOtherParameters starts a service with a versioned bucket and a gateway
// that lets almost nothing through, takes away what it stands on in the end, and
// finds its errors to be in the envelope.
func TestOtherParameters(t *testing.T) {
	t.Parallel()
	if the.local == nil {
		t.Log("NOT REACHED at SIGNALBOX_BASE_URL: versioned files, 500s, and the gateway's own 429")
		return
	}
	p := start(t, map[string]string{
		"FilesVersioning":        "Enabled",
		"GetSyncJobThrottleRate": "1", "GetSyncJobThrottleBurst": "1",
		"CreateByokKeyThrottleRate": "1", "CreateByokKeyThrottleBurst": "1",
	})
	t.Run("versions", func(t *testing.T) { deletesEveryVersion(t, p) })
	n := p.tenant(t)
	p.breakDown(t)
	for operation, r := range map[string]request{
		"getSyncJob":    get(unknownJob).as(n.management),
		"createByokKey": post(bodyWith("")).as(n.management),
		"deleteFile":    del("file_unknown").as(n.standard),
	} {
		t.Run(operation, func(t *testing.T) {
			r.at(p).do(t).is(t, http.StatusInternalServerError)
			if operation != "deleteFile" {
				r.at(p).throttled(t)
			}
		})
	}
}

// breakDown takes away what each operation stands on: the jobs, the sealing key
// and the limiter's table.
func (p place) breakDown(t *testing.T) {
	t.Helper()
	for _, table := range []string{p.names.Jobs, p.names.Control} {
		if _, err := p.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.kms.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &p.names.Sealing}); err != nil {
		t.Fatal(err)
	}
}

// throttled repeats the request until the gateway refuses it.
func (r request) throttled(t *testing.T) {
	t.Helper()
	for range 100 {
		if got := r.do(t); got.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("the gateway never refused")
}
