package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
)

// TestAuthorizationHeader sends headers that the gateway could join, split or
// change. shared/auth tests the rules.
func TestAuthorizationHeader(t *testing.T) {
	t.Parallel()
	token := testkit.Marker + "0123456789"
	for _, h := range []struct {
		name, reason string
		values       []string
	}{
		{"no header", "missing", nil},
		{"two headers", "malformed", []string{"Bearer " + token, "Bearer " + token}},
		{"two headers, one empty", "malformed", []string{"Bearer " + token, ""}},
		{"tab for space", "malformed", []string{"Bearer\t" + token}},
		{"not ASCII", "malformed", []string{"Bearer " + token + "é"}},
		{"longest", "unknown_key", []string{"Bearer " + strings.Repeat("k", 256)}},
	} {
		t.Run(h.name, func(t *testing.T) {
			for _, r := range []request{get(unknownJob), post("{"), del("file_unknown")} {
				r.With("Authorization", h.values...).Do(t).Because(t, h.reason)
			}
		})
	}
	n := newTenant(t)
	for name, scheme := range map[string]string{"Authorization": "bearer ", "aUTHORIZATION": "BEARER   "} {
		get(unknownJob).With(name, scheme+n.management).Do(t).Is(t, http.StatusNotFound)
	}
}

// TestReasons: a change of a key takes effect at the next request. TestSimulation of each
// function tries every kind of key.
func TestReasons(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	expired := n.ExpiredKey(t)
	del("file_unknown").As(expired).Do(t).Because(t, "expired")
	n.Disable(t, expired)
	del("file_unknown").As(expired).Do(t).Because(t, "disabled") // the first in the contract's order
	get(unknownJob).As(n.standard).Do(t).Because(t, "management_key_required")
	get(unknownJob).As(n.management).Do(t).Is(t, http.StatusNotFound)
	n.Disable(t, n.management)
	get(unknownJob).As(n.management).Do(t).Because(t, "disabled")
	n.Delete(t, n.management)
	get(unknownJob).As(n.management).Do(t).Because(t, "unknown_key")
}

// TestStrangersLearnNothing: another account's job, workspace, API key and file
// get the same bytes as unknown ones. TestSimulation of each function tries every
// kind of caller and resource.
func TestStrangersLearnNothing(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	job, file := other.job(t, "succeeded"), other.file(t, other.workspace)
	workspace := func(id string) request { return post(bodyWith(`,"workspace_id":"` + id + `"`)) }
	hash := func(token string) request {
		return post(bodyWith(`,"allowed_api_key_hashes":["` + hashOf(token) + `"]`))
	}
	for name, c := range map[string]struct {
		foreign, unknown request
		status           int
	}{
		"job":              {get(job), get(unknownJob), 404},
		"unchanged job":    {get(job).With("If-None-Match", "*"), get(unknownJob), 404},
		"workspace":        {workspace(other.workspace), workspace(unknownJob), 400},
		"API key":          {hash(other.standard), hash("unknown"), 400},
		"file":             {del(file), del("file_unknown"), 404},
		"file's workspace": {del(file).In(other.workspace), del(file).In(unknownJob), 404},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.foreign.As(n.management).Do(t).Is(t, c.status)
			indistinguishable(t, got, c.unknown.As(n.management).Do(t))
		})
	}
	del(file).As(other.management).Do(t).Is(t, http.StatusOK)
}

// TestIDs: an id that the gateway could decode or split gets the same 404 as an unknown
// one.
func TestIDs(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	job, file := n.job(t, "queued"), n.file(t, n.workspace)
	unknown := map[string]response{job: get(unknownJob).As(n.management).Do(t), file: del("file_unknown").As(n.management).Do(t)}
	escaped := func(id string) string { return fmt.Sprintf("%%%02x%s", id[0], id[1:]) }
	for name, changed := range map[string]func(id string) string{
		"far too long":      func(id string) string { return id + strings.Repeat("0", 4000) },
		"escaped letter":    escaped,
		"escaped twice":     func(id string) string { return "%25" + escaped(id)[1:] },
		"escaped slash":     func(id string) string { return id + "%2F" },
		"escaped path":      func(id string) string { return "file_x%2f..%2f" + id },
		"escaped dots":      func(id string) string { return "%2e%2e%2f" + id },
		"escaped backslash": func(id string) string { return id + "%5c" },
		"escaped NUL":       func(id string) string { return id + "%00" },
		"escaped line feed": func(id string) string { return id + "%0a" },
		"escaped space":     func(id string) string { return "%20" + id },
		"plus":              func(id string) string { return id + "+" },
		"not UTF-8":         func(id string) string { return id + "%ff" },
		"semicolon":         func(id string) string { return id + ";v=1" },
	} {
		t.Run(name, func(t *testing.T) {
			indistinguishable(t, get(changed(job)).As(n.management).Do(t).Is(t, http.StatusNotFound), unknown[job])
			indistinguishable(t, del(changed(file)).As(n.ManagementKey(t)).Do(t).Is(t, http.StatusNotFound), unknown[file])
		})
	}
	del(file).As(n.ManagementKey(t)).Do(t).Is(t, http.StatusOK)
}

// TestWorkspaceParameter sends queries that the gateway could join, split or lose.
// TestSimulation of delete-file tests the rules.
func TestWorkspaceParameter(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	w := n.second
	for query, status := range map[string]int{
		"workspace_id=" + w:                                200,
		"a=b&workspace_id=" + w + "&limit=1":               200,
		"workspace_id=" + w + "&WORKSPACE_ID=x":            200,
		"%ff=1&%fe=2&workspace_id=" + w + "&%zz=%&%=":      200,
		"workspace%5fid=" + w:                              200,
		"%ff=1&workspace_id=" + w + "&%fe&workspace%5fid=": 404,
		"Workspace_id=" + w:                                404, // the default workspace, which has no such file
		"workspace_id[]=" + w:                              404,
		"workspace_id":                                     404,
		"workspace_id=":                                    404,
		"workspace_id=" + w + "&workspace_id=" + w:         404,
		"workspace_id=" + w + "," + w:                      404,
		"workspace_id=" + w + "%00":                        404,
		"workspace_id=" + w[:35] + "%ff":                   404,
	} {
		t.Run(query, func(t *testing.T) {
			file := n.file(t, n.second)
			del(file).Query(query).As(n.ManagementKey(t)).Do(t).Is(t, status)
			if n.exists(t, n.second, file) == (status == http.StatusOK) {
				t.Errorf("the file does not agree with the %d", status)
			}
		})
	}
}

// TestUnknownRoutes: an unknown path or method gets one 404 for every caller.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	job, file := n.job(t, "queued"), n.file(t, n.workspace)
	want := unrouted(http.MethodGet, "/nothing").Do(t).Is(t, http.StatusNotFound)
	for _, r := range unknownRoutes(job, file) {
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			for _, q := range []request{r, r.As("unknown"), r.As(n.management)} {
				got := q.Do(t)
				if got.Status != http.StatusNotFound {
					t.Fatalf("%d, want 404: the service has a route that infra/openapi.yaml does not have", got.Status)
				}
				if r.Method != http.MethodHead {
					indistinguishable(t, got, want)
				}
			}
		})
	}
	del(file).As(n.management).Do(t).Is(t, http.StatusOK)
}

func unknownRoutes(job, file string) []request {
	var all []request
	known := map[string][]string{} // the methods of each path
	for _, route := range the.spec.Operations() {
		method, path, _ := strings.Cut(strings.NewReplacer("{id}", job, "{file_id}", file).Replace(route), " ")
		known[path] = append(known[path], method)
	}
	for path, methods := range known {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if !slices.Contains(methods, method) {
				all = append(all, unrouted(method, path))
			}
		}
	}
	for method, paths := range map[string][]string{
		"GET":    {"", "/", "/scim", "/scim/sync-jobs/", "/scim/sync-jobs/" + job + "/", "/scim/sync-jobs/" + job + "/x", "/SCIM/sync-jobs/" + job},
		"POST":   {"/byok/", "/byok/x", "//byok"},
		"DELETE": {"/files", "/files/", "/files/" + file + "/", "/files/x/" + file, "/files//" + file, "//files/" + file},
	} {
		for _, path := range paths {
			all = append(all, unrouted(method, path))
		}
	}
	return all
}
