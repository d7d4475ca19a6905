package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// TestJob: each state shows its own fields, and whether to ask again.
func TestJob(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for status, want := range map[syncjobs.Status]struct {
		fields  string // a part of the body
		polling bool
	}{
		"queued":    {`"started_at":null,"finished_at":null`, true},
		"running":   {`"synced_groups":null,"deleted_groups":null,"error_message":null`, true},
		"succeeded": {`"synced_groups":12,"deleted_groups":0,"error_message":null`, false},
		"failed":    {`"synced_groups":null,"deleted_groups":null,"error_message":"` + jobError + `"`, false},
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			id := n.job(t, status)
			r := get(id).As(n.management).Do(t).Is(t, http.StatusOK)
			if start := fmt.Sprintf(`{"data":{"id":%q,"status":%q,`, id, status); !strings.HasPrefix(string(r.Body), start) || !strings.Contains(string(r.Body), want.fields) {
				t.Errorf("got %s, want job %s %s with %s", r.Body, id, status, want.fields)
			}
			retry := r.Header.Get("Retry-After")
			if (retry != "") != want.polling {
				t.Errorf("Retry-After %q", retry)
			}
			indistinguishable(t, get(strings.ToUpper(id)).As(n.management).Do(t), r)
			unchanged := get(id).As(n.management).With("If-None-Match", r.Header.Get("Etag")).Do(t).Is(t, http.StatusNotModified)
			if got := unchanged.Header.Get("Retry-After"); got != retry {
				t.Errorf("Retry-After is %q on the 304, %q on the 200", got, retry)
			}
		})
	}
}

// TestIfNoneMatch sends headers that the gateway could join or split.
// functions/get-sync-job tests the rules.
func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	id := n.job(t, "succeeded")
	tag := get(id).As(n.management).Do(t).Is(t, http.StatusOK).Header.Get("Etag")
	for name, c := range map[string]struct {
		values []string
		status int
	}{
		"no header":       {nil, 200},
		"weak":            {[]string{"W/" + tag}, 304},
		"any":             {[]string{"*"}, 304},
		"in a list":       {[]string{`"a,b", W/"c", ` + tag}, 304},
		"in two headers":  {[]string{`"a"`, tag}, 304},
		"other":           {[]string{`"a", W/"b"`}, 200},
		"empty":           {[]string{""}, 200},
		"without quotes":  {[]string{strings.Trim(tag, `"`)}, 200},
		"any, not quoted": {[]string{`"a", *`}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := get(id).As(n.management).With("If-None-Match", c.values...).Do(t).Is(t, c.status)
			if got := r.Header.Get("Etag"); got != tag {
				t.Errorf("ETag is %s, was %s", got, tag)
			}
		})
	}
}

// TestETagOfTheBody: the ETag changes with the body and with nothing else.
func TestETagOfTheBody(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	id := n.job(t, "queued")
	queued := get(id).As(n.management).Do(t).Is(t, http.StatusOK)
	indistinguishable(t, get(id).As(n.ManagementKey(t)).Do(t).Is(t, http.StatusOK), queued)
	testkit.Must(t, syncjobs.NewWriter(n.DynamoDB, n.Jobs).Start(t.Context(), n.ID, ids.Job(id)))
	running := get(id).As(n.management).With("If-None-Match", queued.Header.Get("Etag")).Do(t).Is(t, http.StatusOK)
	if running.Header.Get("Etag") == queued.Header.Get("Etag") {
		t.Error("the body changed and the ETag did not")
	}
}

// TestConditionsRevealNothing: If-None-Match is read only for one's own job.
func TestConditionsRevealNothing(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	id := n.job(t, "succeeded")
	get(id).As(other.management).With("If-None-Match", "*").Do(t).Is(t, http.StatusNotFound)
	get(id).With("If-None-Match", "*").Do(t).Is(t, http.StatusUnauthorized)
}
