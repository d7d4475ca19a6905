// Command clients calls every operation through the client that ogen makes of
// infra/openapi.yaml, and checks each response's type and its declared parts. ./run puts it
// into the module that README.md's block for Go makes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/google/uuid"

	"example.com/signalbox-client/signalbox"
)

var demo struct {
	URL        string               `json:"base_url"`
	Management string               `json:"management_key"`
	Standard   string               `json:"api_key"`
	Workspace  uuid.UUID            `json:"workspace_id"`
	Jobs       map[string]uuid.UUID `json:"sync_jobs"`
	Files      map[string][]string  `json:"files"`
}

// key is an API key.
type key string

func (k key) Bearer(context.Context, signalbox.OperationName) (signalbox.Bearer, error) {
	return signalbox.Bearer{Token: string(k)}, nil
}

// as is the client of an API key.
func as(url, token string) *signalbox.Client {
	client, err := signalbox.NewClient(url, key(token))
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// expect returns the response, which must have the type T of its status.
func expect[T any](got any, err error) T {
	response, ok := got.(T)
	if !ok {
		log.Fatalf("got %T %v, want %T", got, err, response)
	}
	fmt.Printf("%T\n", got)
	return response
}

func check(ok bool, response any) {
	if !ok {
		log.Fatalf("%+v", response)
	}
}

func main() {
	if err := json.NewDecoder(os.Stdin).Decode(&demo); err != nil {
		log.Fatal(err)
	}
	ctx, client, standard := context.Background(), as(demo.URL, demo.Management), as(demo.URL, demo.Standard)

	get := signalbox.GetSyncJobParams{ID: signalbox.SentUuid(demo.Jobs["queued"])}
	job := expect[*signalbox.SyncJobFoundHeaders](client.GetSyncJob(ctx, get))
	check(job.Response.Data.Status == signalbox.SyncJobStatusQueued && job.Response.Data.StartedAt.Null && job.RetryAfter.Set, job)
	get.IfNoneMatch.SetTo(job.ETag)
	expect[*signalbox.SyncJobNotModified](client.GetSyncJob(ctx, get))
	refused := expect[*signalbox.UnauthorizedHeaders](standard.GetSyncJob(ctx, get))
	check(refused.Response.Error.Metadata.Reason == "management_key_required", refused)
	expect[*signalbox.NotFoundHeaders](client.GetSyncJob(ctx, signalbox.GetSyncJobParams{ID: signalbox.SentUuid(uuid.New())}))

	body, once := signalbox.ByokCredentialInput{Key: "sk-example-0123456789abcdefAbCd", Provider: signalbox.ProviderOpenai}, signalbox.CreateByokKeyParams{}
	once.IdempotencyKey.SetTo(uuid.NewString())
	made := expect[*signalbox.CredentialCreatedHeaders](client.CreateByokKey(ctx, &body, once))
	check(made.Response.Data.Label == "sk-...AbCd" && !made.IdempotentReplayed.Set, made)
	made = expect[*signalbox.CredentialCreatedHeaders](client.CreateByokKey(ctx, &body, once))
	check(made.IdempotentReplayed.Set, made)
	body.Provider = signalbox.ProviderAnthropic
	invalid := expect[*signalbox.InvalidRequestHeaders](client.CreateByokKey(ctx, &body, once))
	check(invalid.Response.Error.Metadata.Issues[0].Reason == "key_reused", invalid)
	forbidden := expect[*signalbox.ForbiddenHeaders](standard.CreateByokKey(ctx, &body, once))
	check(forbidden.Response.Error.Metadata.Reason == "management_key_required", forbidden)

	file := signalbox.DeleteFileParams{FileID: signalbox.FileId(demo.Files[demo.Workspace.String()][0])}
	gone := expect[*signalbox.FileDeletedHeaders](standard.DeleteFile(ctx, file))
	check(gone.Response.ID == file.FileID && gone.XRateLimitLimit > 0, gone)
	expect[*signalbox.FileNotFoundHeaders](standard.DeleteFile(ctx, file))
	got, err := standard.DeleteFile(ctx, file)
	for range 20 {
		if _, missing := got.(*signalbox.FileNotFoundHeaders); !missing {
			break
		}
		got, err = standard.DeleteFile(ctx, file)
	}
	limited := expect[*signalbox.RateLimitedHeaders](got, err)
	check(limited.RetryAfter > 0, limited)
}
