package seal_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

var update = flag.Bool("update", false, "add vectors of the current format; never replaces one")

const vectorFile = "testdata/vectors.json"

// vector is a sealed record with all it takes to open it without KMS. Records
// like these are in customers' tables: every one must keep opening.
type vector struct {
	Format                                   int
	Account, Workspace, Credential, Provider string
	KeyARN                                   string
	DataKey                                  []byte // what KMS makes of WrappedKey
	WrappedKey, Nonce, Ciphertext            []byte
	Plaintext                                []byte
}

func (v vector) binding() seal.Binding {
	return seal.Binding{
		Account: ids.Account(v.Account), Workspace: ids.Workspace(v.Workspace),
		Credential: ids.Credential(v.Credential), Provider: v.Provider,
	}
}

func (v vector) record() seal.Sealed {
	return seal.Sealed{Format: v.Format, KeyARN: v.KeyARN, WrappedKey: v.WrappedKey, Nonce: v.Nonce, Ciphertext: v.Ciphertext}
}

func TestFrozenVectorsOpen(t *testing.T) {
	if *update {
		addVectors(t)
	}
	vectors := readVectors(t)
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	k := &fixedKMS{}
	for i, v := range vectors {
		opened, err := seal.NewOpener(k, keyARN).Open(t.Context(), v.record(), v.binding())
		if err != nil || string(opened.Reveal()) != string(v.Plaintext) {
			t.Errorf("vector %d: %q, %v", i, opened.Reveal(), err)
		}
	}
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	var vectors []vector
	data, err := os.ReadFile(vectorFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &vectors); err != nil {
			t.Fatal(err)
		}
	}
	return vectors
}

func addVectors(t *testing.T) {
	t.Helper()
	k := &fixedKMS{}
	vectors := readVectors(t)
	for _, text := range []string{plain, "é\n\x00", `{"type":"service_account"}`} {
		var dataKey []byte
		k.answer = func(o *kms.GenerateDataKeyOutput) { dataKey = append([]byte(nil), o.Plaintext...) }
		s, err := seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte(text)), home())
		if err != nil {
			t.Fatal(err)
		}
		b := home()
		vectors = append(vectors, vector{
			Format:  s.Format,
			Account: string(b.Account), Workspace: string(b.Workspace), Credential: string(b.Credential), Provider: b.Provider,
			KeyARN: s.KeyARN, DataKey: dataKey, WrappedKey: s.WrappedKey, Nonce: s.Nonce, Ciphertext: s.Ciphertext, Plaintext: []byte(text),
		})
	}
	data, err := json.MarshalIndent(vectors, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorFile, append(data, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// blindKMS unwraps under one context whatever it is told.
type blindKMS struct {
	*fixedKMS
	context seal.Binding
}

func (b blindKMS) Decrypt(ctx context.Context, in *kms.DecryptInput, o ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	told := *in
	told.EncryptionContext = map[string]string{
		"purpose": "signalbox/credential", "account": string(b.context.Account), "workspace": string(b.context.Workspace),
		"credential": string(b.context.Credential), "provider": b.context.Provider,
	}
	return b.fixedKMS.Decrypt(ctx, &told, o...)
}
