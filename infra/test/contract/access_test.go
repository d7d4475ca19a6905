package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/shared/syncjobs"
)

// TestHeaders sends headers that the gateway could join, split or change. The rules are
// tested in shared/auth, shared/api and the cases of each function.
func TestHeaders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	anonymous, create := get(n.job(t, syncjobs.Succeeded)), post(bodyWith("")).As(n.management)
	read, bearer := anonymous.As(n.management), "Bearer "+n.management
	tag := read.Do(t).Header.Get("Etag")
	for _, c := range []struct {
		request request
		header  string
		name    string
		values  []string
		status  int
	}{
		{anonymous, "Authorization", "none", nil, 401},
		{anonymous, "Authorization", "two", []string{bearer, bearer}, 401},
		{anonymous, "Authorization", "two, one empty", []string{bearer, ""}, 401},
		{anonymous, "Authorization", "tab for space", []string{"Bearer\t" + n.management}, 401},
		{anonymous, "Authorization", "not ASCII", []string{bearer + "é"}, 401},
		{anonymous, "aUTHORIZATION", "in another case", []string{"bearer   " + n.management}, 200},
		{read, "If-None-Match", "two", []string{`"a,b"`, tag}, 304},
		{read, "If-None-Match", "a list", []string{`"a,b", W/"c", ` + tag}, 304},
		{create, "Content-Type", "with its charset", []string{`application/json;charset="UTF-8"`}, 201},
		{create, "Content-Type", "none", nil, 400},
		{create, "Content-Type", "a list", []string{"application/json, text/plain"}, 400},
		{create, "Content-Type", "two", []string{"application/json", "application/json"}, 400},
		{create, "Content-Encoding", "identity", []string{"identity"}, 201},
		{create, "Content-Encoding", "another", []string{"gzip"}, 400},
		{create, "Idempotency-Key", "quoted, with a comma", []string{`"a,b"`}, 201},
		{create, "Idempotency-Key", "tab inside", []string{"a\tb"}, 400},
		{create, "Idempotency-Key", "not ASCII", []string{"clé"}, 400},
		{create, "Idempotency-Key", "two", []string{"a", "a"}, 400},
	} {
		t.Run(c.header+" "+c.name, func(t *testing.T) {
			c.request.With(c.header, c.values...).Do(t).Is(t, c.status)
		})
	}
}

// TestIDs: an id that the gateway could decode or split gets the same 404 as an unknown
// one.
func TestIDs(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	escaped := func(id string) string { return fmt.Sprintf("%%%02x%s", id[0], id[1:]) }
	changes := map[string]func(id string) string{
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
	}
	for _, o := range operations {
		if !o.hasID() {
			continue
		}
		valid, unknown := o.valid(t, n, n.workspace), o.unknown().As(n.management).Do(t)
		for name, change := range changes {
			t.Run(o.id+" "+name, func(t *testing.T) {
				indistinguishable(t, withID(valid, change).As(n.ManagementKey(t)).Do(t).Is(t, http.StatusNotFound), unknown)
			})
		}
		valid.As(n.ManagementKey(t)).Do(t).Is(t, o.success())
	}
}

// TestWorkspaceParameter sends queries that the gateway could join, split or lose.
// The cases of each function have the rules.
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
		for _, o := range operations {
			if !the.spec.Has(o.id, "workspace_id") {
				continue
			}
			t.Run(o.id+" "+query, func(t *testing.T) {
				o.valid(t, n, w).As(n.ManagementKey(t)).Query(query).Do(t).Is(t, status)
			})
		}
	}
}

// TestUnknownRoutes: an unknown path or method gets one 404 for every caller.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	var valid []request
	for _, o := range operations {
		valid = append(valid, o.valid(t, n, n.workspace).As(n.management))
	}
	want := unrouted(http.MethodGet, "/nothing").Do(t).Is(t, http.StatusNotFound)
	for _, r := range unknownRoutes(valid) {
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
	for i, o := range operations {
		valid[i].Do(t).Is(t, o.success())
	}
}

// unknownRoutes are routes near those of the valid requests.
func unknownRoutes(valid []request) (all []request) {
	for _, at := range []string{"", "/", "/scim", "/scim/sync-jobs", "/files/", "/byok/x"} {
		all = append(all, unrouted(http.MethodGet, at))
	}
	for _, r := range valid {
		for _, method := range []string{"HEAD", "PUT", "PATCH", "OPTIONS"} {
			all = append(all, unrouted(method, r.Path))
		}
		for _, at := range []string{"/" + r.Path, r.Path + "/", r.Path + "/x", strings.ToUpper(r.Path[:2]) + r.Path[2:]} {
			all = append(all, unrouted(r.Method, at))
		}
	}
	return all
}
