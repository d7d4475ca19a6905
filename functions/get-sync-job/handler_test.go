package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
)

func TestResponses(t *testing.T) {
	f := newFixture(t)
	token := f.tenant.Management
	names := map[string]string{"MANAGEMENT_KEY": token}
	g := functest.Golden{Instance: f.env.Instance(), Names: names}
	for _, state := range []string{"queued", "running", "succeeded", "failed"} {
		job := f.newJob(t, f.tenant.ID, state)
		names["JOB_"+strings.ToUpper(state)] = job
		running := g.Play(t, state, readRequest(job).As(token))
		if state == "running" {
			names["ETAG"] = strings.Trim(running.Header["ETag"], `"`)
			g.PlayCaptured(t, "unchanged")
		}
	}
	job := names["JOB_RUNNING"]
	g.Play(t, "not-found", readRequest("00000000-0000-4000-8000-000000000000").As(token))
	g.Play(t, "not-found", readRequest("%7Babc%7D").Asking("a", "1", "2").As(token))
	g.Play(t, "not-found", readRequest(job).As(f.env.NewTenant(t).Management))
	g.Play(t, "no-key", readRequest(job))
	g.Play(t, "standard-key", readRequest(job).As(f.tenant.StandardKey(t, "")))
	g.Play(t, "unknown-key", readRequest(job).As("unknown"))
	g.Instance.Faults.Inject(faults.Rule{Kind: "job#", Fault: faults.Refuse()})
	g.Play(t, "unavailable", readRequest(job).As(token))
}

// The answer contains what the job's state allows, whatever else is in its row.
func TestFieldsAgreeWithTheState(t *testing.T) {
	f := newFixture(t)
	job := f.newJob(t, f.tenant.ID, "succeeded")
	_, err := f.env.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 &f.env.Engines.Tables.SyncJobs,
		Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "job#" + job}},
		UpdateExpression:          aws.String("SET #s = :queued"),
		ExpressionAttributeNames:  map[string]string{"#s": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":queued": &types.AttributeValueMemberS{Value: "queued"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := f.env.Instance().Invoke(t, readRequest(strings.ToUpper(job)).As(f.tenant.Management))
	checkJob(t, got)
	if !strings.Contains(got.Body, `"`+job+`","status":"queued"`) || strings.Count(got.Body, ":null") != 5 {
		t.Errorf("a queued job with the fields of a finished one: %s", got.Body)
	}
}
