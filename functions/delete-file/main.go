// Command delete-file is the Lambda function behind DELETE /api/v1/files/{file_id}: it
// deletes every version of a workspace's file for good. It takes any valid key and
// responds 401, 429, 404 or 200. Two parameters of the deployment limit the deletions
// of each key.
package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/limits"
)

func main() {
	boot.Start(build)
}

func build(env *boot.Environment) lambda.Handler {
	return api.Handler(assemble(env))
}

// assemble makes the operation from the clients and names of env.
func assemble(env *boot.Environment) (api.Verifier, *slog.Logger, api.Operation) {
	db, objects := boot.DynamoDB(env), s3.NewFromConfig(env.AWS())
	access, control, bucket := env.Get("ACCESS_TABLE"), env.Get("CONTROL_TABLE"), env.Get("FILES_BUCKET")
	env.WarmUp(func(ctx context.Context) {
		_, _ = objects.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
	})
	return auth.NewVerifier(db, access), env.Log, operation(
		limits.New(db, control, limitName),
		auth.NewWorkspaces(db, access),
		files.NewStore(objects, bucket),
	)
}
