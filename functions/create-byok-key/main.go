// Command create-byok-key is the Lambda function behind POST /api/v1/byok: it
// stores a provider key, sealed for its workspace, and never shows it again. It takes
// a management key and responds 401, 403, 400 or 201. Its role can seal and cannot
// open.
package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/seal"
)

func main() {
	boot.Start(build)
}

func build(env *boot.Environment) lambda.Handler {
	return api.Handler(assemble(env))
}

// assemble makes the operation from the clients and names of env.
func assemble(env *boot.Environment) (api.Verifier, *slog.Logger, api.Operation) {
	db, keys := boot.DynamoDB(env), kms.NewFromConfig(env.AWS())
	access, credentials, control := env.Get("ACCESS_TABLE"), env.Get("CREDENTIALS_TABLE"), env.Get("CONTROL_TABLE")
	sealingKey := env.Get("SEALING_KEY_ARN")
	env.WarmUp(func(ctx context.Context) {
		_, _ = keys.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: &sealingKey})
	})
	return auth.NewVerifier(db, access), env.Log, operation(handler{
		workspaces:  auth.NewWorkspaces(db, access),
		positions:   auth.NewPositions(db, access, byok.MaxStored, byok.MaxBytes),
		keyring:     auth.NewKeyring(db, access),
		credentials: byok.NewStore(db, credentials, control, seal.NewSealer(keys, sealingKey)),
	})
}
