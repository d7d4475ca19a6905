// Command get-sync-job is the Lambda function behind
// GET /api/v1/scim/sync-jobs/{id}: it returns the state of a directory sync job of
// the caller's account. It takes a management key and responds 401, 404, 304 or
// 200. Its role can read two tables and write logs and traces, nothing else.
package main

import (
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
	"signalbox.dev/shared/syncjobs"
)

func main() {
	boot.Start(build)
}

func build(env *boot.Environment) lambda.Handler {
	return api.Handler(assemble(env))
}

// assemble makes the operation from the clients and names of env.
func assemble(env *boot.Environment) (api.Verifier, *slog.Logger, api.Operation) {
	db := boot.DynamoDB(env)
	access, jobs := env.Get("ACCESS_TABLE"), env.Get("SYNC_JOBS_TABLE")
	return auth.NewVerifier(db, access), env.Log, operation(syncjobs.NewStore(db, jobs))
}
