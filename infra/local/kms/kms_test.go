package kms_test

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"signalbox.dev/infra/local/kms"
	"signalbox.dev/infra/testkit"
)

// serve opens the folder and returns a client of the SDK.
func serve(t *testing.T, dir string) *sdk.Client {
	t.Helper()
	service, err := kms.Open(dir)
	testkit.Must(t, err)
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	return sdk.New(sdk.Options{
		Region: kms.Region, BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

func createKey(t *testing.T, c *sdk.Client) string {
	t.Helper()
	out, err := c.CreateKey(t.Context(), &sdk.CreateKeyInput{Description: aws.String("test")})
	testkit.Must(t, err)
	return aws.ToString(out.KeyMetadata.Arn)
}

func context(value string) map[string]string {
	return map[string]string{"purpose": "test", "place": value}
}

func generate(t *testing.T, c *sdk.Client, key string) *sdk.GenerateDataKeyOutput {
	t.Helper()
	out, err := c.GenerateDataKey(t.Context(), &sdk.GenerateDataKeyInput{KeyId: &key, KeySpec: types.DataKeySpecAes256, EncryptionContext: context("here")})
	testkit.Must(t, err)
	if len(out.Plaintext) != 32 || bytes.Contains(out.CiphertextBlob, out.Plaintext) {
		t.Fatalf("a data key of %d bytes", len(out.Plaintext))
	}
	return out
}

// codeOf returns AWS's code of an error; "" for none.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func TestDataKeysOpenUnderTheirContextOnly(t *testing.T) {
	c := serve(t, t.TempDir())
	key, other := createKey(t, c), createKey(t, c)
	made := generate(t, c, key)
	flipped := bytes.Clone(made.CiphertextBlob)
	flipped[len(flipped)-1] ^= 1
	foreign := serve(t, t.TempDir())
	for name, d := range map[string]struct {
		blob    []byte
		context map[string]string
		key     *string
		want    string
	}{
		"as made":          {made.CiphertextBlob, context("here"), nil, ""},
		"with the key":     {made.CiphertextBlob, context("here"), &key, ""},
		"another context":  {made.CiphertextBlob, context("there"), nil, "InvalidCiphertextException"},
		"no context":       {made.CiphertextBlob, nil, nil, "InvalidCiphertextException"},
		"another key":      {made.CiphertextBlob, context("here"), &other, "IncorrectKeyException"},
		"unknown key":      {made.CiphertextBlob, context("here"), aws.String("alias/none"), "NotFoundException"},
		"altered":          {flipped, context("here"), nil, "InvalidCiphertextException"},
		"cut":              {made.CiphertextBlob[:40], context("here"), nil, "InvalidCiphertextException"},
		"one byte":         {[]byte("x"), context("here"), nil, "InvalidCiphertextException"},
		"empty":            {[]byte{}, context("here"), nil, "ValidationException"},
		"another format":   {append([]byte{2}, made.CiphertextBlob[1:]...), context("here"), nil, "InvalidCiphertextException"},
		"of a foreign KMS": {generate(t, foreign, createKey(t, foreign)).CiphertextBlob, context("here"), nil, "InvalidCiphertextException"},
	} {
		out, err := c.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: d.blob, EncryptionContext: d.context, KeyId: d.key})
		if codeOf(err) != d.want {
			t.Errorf("%s: %v, want %q", name, err, d.want)
		}
		if err == nil && !bytes.Equal(out.Plaintext, made.Plaintext) {
			t.Errorf("%s: another data key", name)
		}
	}
}

// A change that cannot be stored does not happen: a restart would undo it.
func TestAChangeThatCannotBeStored(t *testing.T) {
	dir := t.TempDir()
	c := serve(t, dir)
	key := createKey(t, c)
	testkit.Must(t, os.RemoveAll(dir))
	if _, err := c.DisableKey(t.Context(), &sdk.DisableKeyInput{KeyId: &key}); codeOf(err) != "KMSInternalException" {
		t.Errorf("disabling it: %v", err)
	}
	if _, err := c.CreateKey(t.Context(), nil); err == nil {
		t.Error("another key was created")
	}
	generate(t, c, key) // the key is not disabled
}
