package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/syncjobs"
)

// operations are those of infra/openapi.yaml. A test of every operation sends these
// requests. They have no API key.
var operations = []operation{
	{
		id:      "getSyncJob",
		valid:   func(t *testing.T, n tenant, _ string) request { return get(n.job(t, syncjobs.Succeeded)) },
		unknown: func() request { return get(unknownJob) },
	},
	{
		id:      "createByokKey",
		valid:   func(*testing.T, tenant, string) request { return post(bodyWith("")) },
		unknown: func() request { return post("{") },
	},
	{
		id:      "deleteFile",
		valid:   func(t *testing.T, n tenant, workspace string) request { return del(n.file(t, workspace)) },
		unknown: func() request { return del("file_unknown") },
	},
}

// everyOperation returns an error unless the operations are those of the description.
func everyOperation() error {
	var listed []string
	for _, o := range operations {
		listed = append(listed, o.id)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(the.spec.Operations())), slices.Sorted(slices.Values(listed))); diff != "" {
		return fmt.Errorf("list the operations of infra/openapi.yaml (-) in infra/test/contract/operations_test.go (+):\n%s", diff)
	}
	// Tests of these parameters would otherwise try nothing, and pass.
	for _, parameter := range []string{"workspace_id", "If-None-Match"} {
		if !slices.ContainsFunc(operations, func(o operation) bool { return the.spec.Has(o.id, parameter) }) {
			return fmt.Errorf("no operation of infra/openapi.yaml has the parameter %s", parameter)
		}
	}
	return nil
}

// operation is one of them. What else the tests need is in the description.
type operation struct {
	id string // operationId
	// valid makes a resource of the tenant, in the workspace if a workspace owns it, and
	// returns a request for it that succeeds.
	valid func(t *testing.T, n tenant, workspace string) request
	// unknown is a request for a resource that does not exist. If the path has no id, the
	// body is not JSON.
	unknown func() request
}

// hasID reports whether the path ends with an id.
func (o operation) hasID() bool { return strings.HasSuffix(the.spec.Operations()[o.id], "}") }

func (o operation) success() int {
	return slices.Min(slices.Collect(maps.Keys(the.spec.Statuses(o.id))))
}

// statuses has a request for each status that a test can reach while functions and tables
// work. The gateway itself answers the 400s.
func (o operation) statuses(t *testing.T, n tenant) map[int]request {
	t.Helper()
	valid, reached := o.valid(t, n, n.workspace), map[int]request{}
	for status, response := range the.spec.Statuses(o.id) {
		switch {
		case status == http.StatusInternalServerError, response == "Throttled": // see TestOtherParameters
		case response == "RefusedByFirewall": // on AWS alone
		case status == http.StatusNotModified:
			tag := valid.As(n.management).At(n.client).Do(t).Header.Get("Etag")
			reached[status] = valid.As(n.management).With("If-None-Match", tag)
		case status == http.StatusBadRequest:
			large := valid.As(n.management)
			large.Body = strings.Repeat(" ", 11<<20) // no gateway passes it on to a function
			reached[status] = large
		case status == http.StatusUnauthorized:
			reached[status] = o.unknown()
		case status == http.StatusForbidden:
			reached[status] = valid.As(n.standard)
		case status == http.StatusNotFound:
			reached[status] = o.unknown().As(n.management)
		case status == http.StatusTooManyRequests:
			reached[status] = o.unknown().As(n.StandardKey(t, ""))
		default:
			reached[status] = valid.As(n.management)
		}
	}
	return reached
}

// withID changes the id at the end of the path.
func withID(r request, change func(id string) string) request {
	folder, id := path.Split(r.Path)
	r.Path = folder + change(id)
	return r
}
