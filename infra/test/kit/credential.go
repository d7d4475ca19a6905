package kit

import (
	"context"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"signalbox.dev/shared/byok"
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

// FilledSettings returns settings with a value in every field. Each text field
// has its own value.
func FilledSettings(t testing.TB) byok.Settings {
	t.Helper()
	var s byok.Settings
	for field, value := range reflect.ValueOf(&s).Elem().Fields() {
		switch value.Interface().(type) {
		case string:
			value.SetString(field.Name)
		case bool:
			value.SetBool(true)
		default: // a list of texts; it panics for another kind
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			value.Index(0).SetString(field.Name)
		}
	}
	return s
}

// SettingsByName returns settings under their names in the API, with the types
// that JSON has.
func SettingsByName(t testing.TB, s byok.Settings) map[string]any {
	t.Helper()
	stored, err := attributevalue.MarshalMap(s)
	Must(t, err)
	var named map[string]any
	if err := attributevalue.UnmarshalMap(stored, &named); err != nil || len(named) != reflect.TypeOf(s).NumField() {
		t.Fatalf("%d settings have names, %v", len(named), err)
	}
	return named
}
