package contract_test

import (
	"net/http"
	"testing"
)

// TestUnknownRoutes: an unknown path or method is one 404, whoever calls.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	job, file := n.job(t, "queued"), n.file(t, n.workspace)
	want := unrouted(http.MethodGet, "/nothing").do(t).is(t, http.StatusNotFound)
	for _, r := range append(unknownMethods(job, file), unknownPaths(job, file)...) {
		t.Run(r.method+" "+r.path, func(t *testing.T) {
			for _, q := range []request{r, r.as("unknown"), r.as(n.management)} {
				got := q.do(t).is(t, http.StatusNotFound)
				if r.method != http.MethodHead {
					indistinguishable(t, got, want)
				}
			}
		})
	}
	del(file).as(n.management).do(t).is(t, http.StatusOK)
}

func unknownMethods(job, file string) []request {
	var all []request
	for path, known := range map[string]string{
		"/scim/sync-jobs/" + job: http.MethodGet, "/byok": http.MethodPost, "/files/" + file: http.MethodDelete,
	} {
		for _, method := range []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		} {
			if method != known {
				all = append(all, unrouted(method, path))
			}
		}
	}
	return all
}

func unknownPaths(job, file string) []request {
	var all []request
	for method, paths := range map[string][]string{
		http.MethodGet: {
			"", "/", "/scim", "/scim/sync-jobs", "/scim/sync-jobs/", "/scim/sync-jobs/" + job + "/",
			"/scim/sync-jobs/" + job + "/x", "/SCIM/sync-jobs/" + job,
		},
		http.MethodPost: {"/byok/", "/byok/x", "/Byok", "//byok", "/byok//"},
		http.MethodDelete: {
			"/files", "/files/", "/files/" + file + "/", "/files/a/b", "/files/x/" + file, "/files//" + file,
			"//files/" + file, "/Files/" + file,
		},
	} {
		for _, path := range paths {
			all = append(all, unrouted(method, path))
		}
	}
	return all
}
