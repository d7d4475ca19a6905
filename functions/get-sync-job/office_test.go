package main

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// office is a stage with a tenant that has sync jobs.
type office struct {
	*functest.Env
	tenant functest.Tenant
	writer *syncjobs.Writer
}

func newOffice(t *testing.T) *office {
	t.Helper()
	s := functest.New(t, assemble)
	return &office{Env: s, tenant: s.Tenant(t), writer: syncjobs.NewWriter(s.DB, s.Engines.Tables.SyncJobs)}
}

// move takes a queued job on.
type move func(*syncjobs.Writer, *testing.T, ids.Account, ids.Job) error

func queued(*syncjobs.Writer, *testing.T, ids.Account, ids.Job) error { return nil }

func running(w *syncjobs.Writer, t *testing.T, a ids.Account, j ids.Job) error {
	return w.Start(t.Context(), a, j)
}

func succeeded(w *syncjobs.Writer, t *testing.T, a ids.Account, j ids.Job) error {
	if err := running(w, t, a, j); err != nil {
		return err
	}
	return w.Succeed(t.Context(), a, j, 12, 0)
}

func failed(w *syncjobs.Writer, t *testing.T, a ids.Account, j ids.Job) error {
	return w.Fail(t.Context(), a, j, "The directory refused the connection.")
}

// job makes a job of the tenant's and takes it on.
func (o *office) job(t *testing.T, on move) ids.Job {
	t.Helper()
	id, err := o.writer.Create(t.Context(), o.tenant.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := on(o.writer, t, o.tenant.ID, id); err != nil {
		t.Fatal(err)
	}
	return id
}

// reopen sets the job's state back and leaves all else in its row.
func (o *office) reopen(t *testing.T, job ids.Job) {
	t.Helper()
	_, err := o.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 &o.Engines.Tables.SyncJobs,
		Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "job#" + string(job)}},
		UpdateExpression:          aws.String("SET #s = :queued"),
		ExpressionAttributeNames:  map[string]string{"#s": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":queued": &types.AttributeValueMemberS{Value: "queued"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(job string) functest.Event {
	return functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", job)
}

// checkJob checks that the body has all that a job has, and nothing else.
func checkJob(t *testing.T, a functest.Answer) {
	t.Helper()
	var body map[string]map[string]any
	a.Decode(t, &body)
	if len(body) != 1 {
		t.Errorf("body %s", a.Body)
	}
	functest.HasMembers(t, body["data"], "id", "status", "synced_groups", "deleted_groups",
		"error_message", "created_at", "started_at", "finished_at")
}
