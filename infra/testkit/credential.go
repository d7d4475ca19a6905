package testkit

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// Credential is a stored credential in the documented layout (package byok), read
// without that package.
type Credential struct {
	ID        ids.Credential `dynamodbav:"id"`
	Account   ids.Account    `dynamodbav:"account"`
	Workspace ids.Workspace  `dynamodbav:"workspace"`
	Provider  string         `dynamodbav:"provider"`
	Name      string         `dynamodbav:"name"`
	SortOrder int64          `dynamodbav:"sort_order"`
	Seal      struct {
		Format     int    `dynamodbav:"format"`
		KeyARN     string `dynamodbav:"key_arn"`
		WrappedKey []byte `dynamodbav:"wrapped_key"`
		Nonce      []byte `dynamodbav:"nonce"`
		Ciphertext []byte `dynamodbav:"ciphertext"`
	} `dynamodbav:"seal"`
}

// Credentials decodes rows of the credentials table.
func Credentials(t testing.TB, rows []Row) (all []Credential) {
	t.Helper()
	Must(t, attributevalue.UnmarshalListOfMaps(rows, &all))
	return all
}

// Open opens the provider key, as the router does.
func (c Credential) Open(ctx context.Context, opener *seal.Opener) (secret.Bytes, error) {
	return opener.Open(ctx, seal.Sealed(c.Seal), seal.Binding{
		Account: c.Account, Workspace: c.Workspace, Credential: c.ID, Provider: c.Provider,
	})
}
