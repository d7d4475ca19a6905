// Command clients calls every operation through the client that oapi-codegen makes
// of infra/openapi.yaml, and checks each status and its declared parts. ./run puts
// client.go beside it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/google/uuid"
	_ "github.com/oapi-codegen/runtime" // client.go needs it
)

var demo struct {
	URL        string               `json:"base_url"`
	Management string               `json:"management_key"`
	Standard   string               `json:"api_key"`
	Workspace  uuid.UUID            `json:"workspace_id"`
	Jobs       map[string]uuid.UUID `json:"sync_jobs"`
	Files      map[string][]string  `json:"files"`
}

var failed bool

// expect checks a status, and that the client has its declared parts.
func expect(status, got int, typed bool, err error) {
	fmt.Println(got)
	if err != nil || got != status || !typed {
		fmt.Printf("want %d, with its type: %v, %v\n", status, typed, err)
		failed = true
	}
}

// as is the client of an API key.
func as(url, key string) *ClientWithResponses {
	client, err := NewClientWithResponses(url, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return client
}

func main() {
	if err := json.NewDecoder(os.Stdin).Decode(&demo); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ctx, client, standard, id := context.Background(), as(demo.URL, demo.Management), as(demo.URL, demo.Standard), demo.Jobs["queued"]

	job, err := client.GetSyncJobWithResponse(ctx, id, nil)
	ok := err == nil && job.JSON200 != nil
	expect(200, job.StatusCode(), ok && job.JSON200.Data.Status == Queued && job.JSON200.Data.StartedAt == nil && job.Headers200.RetryAfter != nil, err)
	if ok {
		job, err = client.GetSyncJobWithResponse(ctx, id, &GetSyncJobParams{IfNoneMatch: &job.Headers200.ETag})
		expect(304, job.StatusCode(), job.Headers304 != nil && job.Headers304.ETag != "", err)
	}
	job, err = standard.GetSyncJobWithResponse(ctx, id, nil)
	expect(401, job.StatusCode(), job.JSON401 != nil && job.JSON401.Error.Metadata.Reason == ManagementKeyRequired, err)
	job, err = client.GetSyncJobWithResponse(ctx, uuid.New(), nil)
	expect(404, job.StatusCode(), job.JSON404 != nil && job.JSON404.Error.Metadata.RequestId != "", err)

	body, again := NewByokCredential{Key: "sk-example-0123456789abcdefAbCd", Provider: Openai}, uuid.NewString()
	made, err := client.CreateByokKeyWithResponse(ctx, &CreateByokKeyParams{IdempotencyKey: &again}, body)
	expect(201, made.StatusCode(), made.JSON201 != nil && made.JSON201.Data.Label == "sk-...AbCd" && made.Headers201.IdempotentReplayed == nil, err)
	made, err = client.CreateByokKeyWithResponse(ctx, &CreateByokKeyParams{IdempotencyKey: &again}, body)
	expect(201, made.StatusCode(), made.JSON201 != nil && made.Headers201.IdempotentReplayed != nil, err)
	made, err = client.CreateByokKeyWithResponse(ctx, nil, NewByokCredential{Provider: "nobody"})
	expect(400, made.StatusCode(), made.JSON400 != nil && len(made.JSON400.Error.Metadata.Issues) == 2, err)
	made, err = standard.CreateByokKeyWithResponse(ctx, nil, body)
	expect(403, made.StatusCode(), made.JSON403 != nil && made.JSON403.Error.Code == 403, err)

	file := demo.Files[demo.Workspace.String()][0]
	gone, err := standard.DeleteFileWithResponse(ctx, file, &DeleteFileParams{WorkspaceId: &demo.Workspace})
	expect(200, gone.StatusCode(), gone.JSON200 != nil && gone.JSON200.Id == file && gone.Headers200.XRateLimitLimit > 0, err)
	gone, err = standard.DeleteFileWithResponse(ctx, file, nil)
	expect(404, gone.StatusCode(), gone.JSON404 != nil && gone.Headers404.RateLimit != "", err)
	for range 20 {
		if gone, err = standard.DeleteFileWithResponse(ctx, file, nil); err != nil || gone.StatusCode() == 429 {
			break
		}
	}
	expect(429, gone.StatusCode(), gone.JSON429 != nil && gone.Headers429.RetryAfter > 0, err)
	if failed {
		os.Exit(1)
	}
}
