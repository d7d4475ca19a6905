package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// TestJob follows a job as a client does that polls: with the ETag of the last response,
// also in headers that the gateway could join or split. TestSimulation of get-sync-job has
// the bytes of each state and the rules of the header.
func TestJob(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	id := n.job(t, "queued")
	job := get(id).As(n.management)
	jobs := syncjobs.NewWriter(n.DynamoDB, n.Jobs)
	tag := `"none"`
	for _, state := range []struct {
		name    string
		change  func() error
		polling bool // the response says when to ask again
	}{
		{"queued", func() error { return nil }, true},
		{"running", func() error { return jobs.Start(t.Context(), n.ID, ids.Job(id)) }, true},
		{"failed", func() error { return jobs.Fail(t.Context(), n.ID, ids.Job(id), "no answer") }, false},
	} {
		testkit.Must(t, state.change())
		got := job.With("If-None-Match", tag).Do(t).Is(t, http.StatusOK)
		if start := `{"data":{"id":"` + id + `","status":"` + state.name + `",`; !strings.HasPrefix(string(got.Body), start) {
			t.Errorf("got %s, want %s", got.Body, start)
		}
		retry := got.Header.Get("Retry-After")
		if (retry != "") != state.polling {
			t.Errorf("%s: Retry-After %q", state.name, retry)
		}
		indistinguishable(t, get(strings.ToUpper(id)).As(n.ManagementKey(t)).Do(t), got)
		tag = got.Header.Get("Etag")
		for _, values := range [][]string{{tag}, {"W/" + tag}, {`"a,b", W/"c", ` + tag}, {`"a"`, tag}, {"*"}} {
			unchanged := job.With("If-None-Match", values...).Do(t).Is(t, http.StatusNotModified)
			if unchanged.Header.Get("Etag") != tag || unchanged.Header.Get("Retry-After") != retry {
				t.Errorf("%s: of %q the headers are %v", state.name, values, unchanged.Header)
			}
		}
		for _, values := range [][]string{{""}, {strings.Trim(tag, `"`)}, {`"a", *`}} {
			job.With("If-None-Match", values...).Do(t).Is(t, http.StatusOK)
		}
	}
}
