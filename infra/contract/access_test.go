package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// TestAuthorizationHeader sends headers that the gateway could join, split or
// change. shared/auth tests the rules.
func TestAuthorizationHeader(t *testing.T) {
	t.Parallel()
	token, long := testkit.Marker+"0123456789", strings.Repeat("k", 256)
	for _, h := range []struct {
		name, reason string
		values       []string
	}{
		{"no header", "missing", nil},
		{"two headers", "malformed", []string{"Bearer " + token, "Bearer " + token}},
		{"two headers, one empty", "malformed", []string{"Bearer " + token, ""}},
		{"empty", "malformed", []string{""}},
		{"tab for space", "malformed", []string{"Bearer\t" + token}},
		{"two tokens", "malformed", []string{"Bearer " + token + " " + token}},
		{"comma list", "malformed", []string{"Bearer " + token + ",Bearer " + token}},
		{"quoted", "malformed", []string{`Bearer "` + token + `"`}},
		{"not ASCII", "malformed", []string{"Bearer " + token + "é"}},
		{"longest", "unknown_key", []string{"Bearer " + long}},
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

// TestReasons: a 401 gives the first reason in the order of the contract, and a
// change of a key takes effect at the next request.
func TestReasons(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	expired, both := n.NewKey(t, auth.NewKey{Kind: auth.Standard, ExpiresAt: time.Now().Add(-time.Minute)}), n.ExpiredKey(t)
	n.Disable(t, both)
	get(unknownJob).As(expired).Do(t).Because(t, "expired")
	del("file_unknown").As(expired).Do(t).Because(t, "expired")
	get(unknownJob).As(both).Do(t).Because(t, "disabled")
	post("{").As(both).Do(t).Because(t, "disabled")
	get(unknownJob).As(n.standard).Do(t).Because(t, "management_key_required")
	forbidden, err := post("{").As(n.standard).Do(t).Is(t, http.StatusForbidden).Failure()
	if want := "Only management keys can perform this operation"; err != nil || forbidden.Error.Message != want {
		t.Errorf("got %q, %v, want %q", forbidden.Error.Message, err, want)
	}

	get(unknownJob).As(n.management).Do(t).Is(t, http.StatusNotFound)
	n.Disable(t, n.management)
	get(unknownJob).As(n.management).Do(t).Because(t, "disabled")
	n.Delete(t, n.management)
	get(unknownJob).As(n.management).Do(t).Because(t, "unknown_key")
}

// TestStrangersLearnNothing: another account's job, workspace, API key and file
// get the same bytes as unknown ones. TestTenants of each function tests every
// kind of caller and resource.
func TestStrangersLearnNothing(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	file := other.file(t, other.workspace)
	workspace := func(id string) request { return post(bodyWith(`,"workspace_id":"` + id + `"`)) }
	hash := func(token string) request {
		return post(bodyWith(`,"allowed_api_key_hashes":["` + hashOf(token) + `"]`))
	}
	for name, c := range map[string]struct{ foreign, unknown request }{
		"job":              {get(other.job(t, "running")), get(unknownJob)},
		"workspace":        {workspace(other.workspace), workspace(unknownJob)},
		"API key":          {hash(other.standard), hash("unknown")},
		"file":             {del(file), del("file_unknown")},
		"file's workspace": {del(file).In(other.workspace), del(file).In(unknownJob)},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.foreign.As(n.management).Do(t)
			indistinguishable(t, got, c.unknown.As(n.management).Do(t))
			if got.Status < http.StatusBadRequest {
				t.Errorf("got %d", got.Status)
			}
		})
	}
	del(file).As(other.StandardKey(t, ids.Workspace(other.second))).Do(t).Is(t, http.StatusNotFound)
	del(file).As(other.management).Do(t).Is(t, http.StatusOK)
}

// escaped returns the id with its first character percent-encoded.
func escaped(id string) string { return fmt.Sprintf("%%%02x%s", id[0], id[1:]) }

// TestFileIDs: a malformed file id gets the same 404 as an unknown one, in any
// encoding, and counts like one.
func TestFileIDs(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	unknown := del("file_unknown").As(n.ManagementKey(t)).Do(t).Is(t, http.StatusNotFound)
	file := n.file(t, n.workspace)
	for name, id := range map[string]string{
		"far too long":      "file_" + strings.Repeat("x", 4000),
		"escaped letter":    escaped(file),
		"escaped underline": strings.Replace(file, "_", "%5f", 1),
		"escaped twice":     "%25" + escaped(file)[1:],
		"escaped slash":     file + "%2F",
		"escaped path":      "file_x%2f..%2f" + file,
		"escaped dots":      "%2e%2e%2f" + file,
		"escaped backslash": file + "%5c",
		"escaped NUL":       file + "%00",
		"escaped line feed": file + "%0a",
		"escaped space":     "%20" + file,
		"plus":              file + "+",
		"not UTF-8":         file + "%ff",
		"U+FFFD":            file + "%ef%bf%bd",
		"semicolon":         file + ";v=1",
		"colon":             file + ":delete",
	} {
		t.Run(name, func(t *testing.T) {
			got := del(id).As(n.ManagementKey(t)).Do(t)
			indistinguishable(t, got, unknown)
			if remaining := limitsOf(t, got).remaining; remaining != the.burst-1 {
				t.Errorf("%d deletes remain, want %d", remaining, the.burst-1)
			}
		})
	}
	for _, id := range []string{file, "file_x", "file_" + strings.Repeat("x", 200), "file_-_AZaz09", "file_file_"} {
		n.upload(t, n.workspace, id)
		del(id+"x").As(n.management).Do(t).Is(t, http.StatusNotFound)
		del(id).As(n.management).Do(t).Is(t, http.StatusOK)
		if n.exists(t, n.workspace, id) {
			t.Errorf("%s is still there", id)
		}
	}
}

// TestJobIDs: a malformed job id gets the same 404 as an unknown one.
func TestJobIDs(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	unknown := get(unknownJob).As(n.management).Do(t).Is(t, http.StatusNotFound)
	id := n.job(t, "queued")
	for name, id := range map[string]string{
		"in braces":       "%7b" + id + "%7d",
		"one long":        id + "0",
		"escaped digit":   escaped(id),
		"trailing space":  id + "%20",
		"wide digits":     "%ef%bc%90" + id[1:],
		"far too long":    strings.Repeat("0", 4000),
		"escaped slash":   id + "%2f",
		"escaped newline": id + "%0a",
	} {
		t.Run(name, func(t *testing.T) {
			indistinguishable(t, get(id).As(n.management).Do(t), unknown)
		})
	}
}

// TestWorkspaceParameter: exactly one workspace_id with a UUID; anything else is
// 404. Other parameters are ignored.
func TestWorkspaceParameter(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	w := n.second
	for query, status := range map[string]int{
		"workspace_id=" + w:                                200,
		"workspace_id=" + strings.ToUpper(w):               200,
		"a=b&workspace_id=" + w + "&limit=1":               200,
		"workspace_id=" + w + "&WORKSPACE_ID=x":            200,
		"%ff=1&%fe=2&workspace_id=" + w + "&%zz=%&%=":      200,
		"workspace%5fid=" + w:                              200,
		"%ff=1&workspace_id=" + w + "&%fe&workspace%5fid=": 404,
		"":                    404, // the default workspace, which has no such file
		"Workspace_id=" + w:   404,
		"workspace_id[]=" + w: 404,
		"workspace_id":        404,
		"workspace_id=":       404,
		"workspace_id=" + w + "&workspace_id=" + w:           404,
		"workspace_id=" + w + "&workspace_id=":               404,
		"workspace_id=" + w + "," + w:                        404,
		"workspace_id=%20" + w:                               404,
		"workspace_id=" + w + "%00":                          404,
		"workspace_id=urn:uuid:" + w:                         404,
		"workspace_id=" + strings.Repeat("0", 4000):          404,
		"workspace_id=" + w[:35] + "%ff":                     404,
		"workspace_id=" + w + "&workspace_id=" + n.workspace: 404,
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
				got := q.Do(t).Is(t, http.StatusNotFound)
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
	for path, known := range map[string]string{"/scim/sync-jobs/" + job: "GET", "/byok": "POST", "/files/" + file: "DELETE"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if method != known {
				all = append(all, unrouted(method, path))
			}
		}
	}
	for method, paths := range map[string][]string{
		"GET": {"", "/", "/scim", "/scim/sync-jobs", "/scim/sync-jobs/", "/scim/sync-jobs/" + job + "/",
			"/scim/sync-jobs/" + job + "/x", "/SCIM/sync-jobs/" + job},
		"POST": {"/byok/", "/byok/x", "/Byok", "//byok", "/byok//"},
		"DELETE": {"/files", "/files/", "/files/" + file + "/", "/files/x/" + file, "/files//" + file,
			"//files/" + file, "/Files/" + file},
	} {
		for _, path := range paths {
			all = append(all, unrouted(method, path))
		}
	}
	return all
}
