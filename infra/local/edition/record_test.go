package edition_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"signalbox.dev/infra/local/record"
)

// TestRecord: every call is told, and who made it.
func TestRecord(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	o := options(t)
	o.Record = func(c record.Call) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, c.Function+" "+c.Action+" "+c.Resource)
	}
	e := running(t, o)
	for _, id := range e.Demo.SyncJobs {
		if code, body := ask(t, http.MethodGet, e.BaseURL+"/scim/sync-jobs/"+string(id), e.Demo.ManagementKey, ""); code != http.StatusOK {
			t.Errorf("got %d %s", code, body)
		}
		break
	}
	file := e.BaseURL + "/files/" + string(e.Demo.Files[e.Demo.WorkspaceID][0])
	if code, body := ask(t, http.MethodDelete, file, e.Demo.APIKey, ""); code != http.StatusOK {
		t.Errorf("got %d %s", code, body)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{
		"GetSyncJobFunction dynamodb:GetItem AccessTable",
		"GetSyncJobFunction dynamodb:GetItem SyncJobsTable",
		"DeleteFileFunction dynamodb:UpdateItem ControlTable",
		"DeleteFileFunction s3:DeleteObject FilesBucket",
	} {
		if !slices.Contains(heard, want) {
			t.Errorf("%s was not heard of; what was: %q", want, heard)
		}
	}
}
