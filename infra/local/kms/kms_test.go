package kms_test

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"signalbox.dev/infra/local/kms"
)

// serve opens the folder and gives a client of the SDK's.
func serve(t *testing.T, dir string) (*sdk.Client, *kms.Service) {
	t.Helper()
	service, err := kms.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	return sdk.New(sdk.Options{
		Region: kms.Region, BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	}), service
}

func createKey(t *testing.T, c *sdk.Client) string {
	t.Helper()
	out, err := c.CreateKey(t.Context(), &sdk.CreateKeyInput{Description: aws.String("test")})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.KeyMetadata.Arn)
}

func context(value string) map[string]string {
	return map[string]string{"purpose": "test", "place": value}
}

func generate(t *testing.T, c *sdk.Client, key string) *sdk.GenerateDataKeyOutput {
	t.Helper()
	out, err := c.GenerateDataKey(t.Context(), &sdk.GenerateDataKeyInput{KeyId: &key, KeySpec: types.DataKeySpecAes256, EncryptionContext: context("here")})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Plaintext) != 32 || bytes.Contains(out.CiphertextBlob, out.Plaintext) {
		t.Fatalf("a data key of %d bytes", len(out.Plaintext))
	}
	return out
}

// codeOf is AWS's name of an error, and checks that the SDK knows its type.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func TestDataKeysOpenUnderTheirContextOnly(t *testing.T) {
	c, _ := serve(t, t.TempDir())
	key, other := createKey(t, c), createKey(t, c)
	made := generate(t, c, key)
	flipped := bytes.Clone(made.CiphertextBlob)
	flipped[len(flipped)-1] ^= 1
	for name, d := range map[string]struct {
		in   sdk.DecryptInput
		want string
	}{
		"as made":       {sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("here")}, ""},
		"key named":     {sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("here"), KeyId: &key}, ""},
		"elsewhere":     {sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("there")}, "InvalidCiphertextException"},
		"no context":    {sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob}, "InvalidCiphertextException"},
		"other key":     {sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("here"), KeyId: &other}, "IncorrectKeyException"},
		"unknown key":   {sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("here"), KeyId: aws.String("alias/none")}, "NotFoundException"},
		"altered":       {sdk.DecryptInput{CiphertextBlob: flipped, EncryptionContext: context("here")}, "InvalidCiphertextException"},
		"cut":           {sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob[:40], EncryptionContext: context("here")}, "InvalidCiphertextException"},
		"no ciphertext": {sdk.DecryptInput{CiphertextBlob: []byte("x")}, "InvalidCiphertextException"},
	} {
		out, err := c.Decrypt(t.Context(), &d.in)
		if codeOf(err) != d.want {
			t.Errorf("%s: %v, want %q", name, err, d.want)
		}
		if err == nil && !bytes.Equal(out.Plaintext, made.Plaintext) {
			t.Errorf("%s: another data key", name)
		}
	}
}

func TestStatesOfAKey(t *testing.T) {
	c, _ := serve(t, t.TempDir())
	key := createKey(t, c)
	made := generate(t, c, key)
	use := func() [2]string {
		_, g := c.GenerateDataKey(t.Context(), &sdk.GenerateDataKeyInput{KeyId: &key, KeySpec: types.DataKeySpecAes256})
		_, d := c.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("here")})
		return [2]string{codeOf(g), codeOf(d)}
	}
	step := func(name string, err error, want string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := use(); got != [2]string{want, want} {
			t.Errorf("%s: GenerateDataKey and Decrypt say %q, want %q", name, got, want)
		}
	}
	_, err := c.DisableKey(t.Context(), &sdk.DisableKeyInput{KeyId: &key})
	step("disabled", err, "DisabledException")
	_, err = c.EnableKey(t.Context(), &sdk.EnableKeyInput{KeyId: &key})
	step("enabled", err, "")
	_, err = c.ScheduleKeyDeletion(t.Context(), &sdk.ScheduleKeyDeletionInput{KeyId: &key, PendingWindowInDays: aws.Int32(7)})
	step("to be deleted", err, "KMSInvalidStateException")
	if _, err := c.EnableKey(t.Context(), &sdk.EnableKeyInput{KeyId: &key}); codeOf(err) != "KMSInvalidStateException" {
		t.Errorf("enabling a key to be deleted: %v", err)
	}
	_, err = c.CancelKeyDeletion(t.Context(), &sdk.CancelKeyDeletionInput{KeyId: &key})
	step("not to be deleted", err, "DisabledException")
}

func TestADeletedKeyIsGone(t *testing.T) {
	c, service := serve(t, t.TempDir())
	key := createKey(t, c)
	if _, err := c.ScheduleKeyDeletion(t.Context(), &sdk.ScheduleKeyDeletionInput{KeyId: &key, PendingWindowInDays: aws.Int32(7)}); err != nil {
		t.Fatal(err)
	}
	service.At(func() time.Time { return time.Now().AddDate(0, 0, 8) })
	_, err := c.GenerateDataKey(t.Context(), &sdk.GenerateDataKeyInput{KeyId: &key, KeySpec: types.DataKeySpecAes256})
	if notFound, ok := errors.AsType[*types.NotFoundException](err); !ok {
		t.Errorf("%v, want %T", err, notFound)
	}
}

func TestKeysSurviveARestartAndARotation(t *testing.T) {
	dir := t.TempDir()
	c, _ := serve(t, dir)
	key := createKey(t, c)
	if _, err := c.CreateAlias(t.Context(), &sdk.CreateAliasInput{AliasName: aws.String("alias/a"), TargetKeyId: &key}); err != nil {
		t.Fatal(err)
	}
	before := generate(t, c, key)
	if _, err := c.RotateKeyOnDemand(t.Context(), &sdk.RotateKeyOnDemandInput{KeyId: &key}); err != nil {
		t.Fatal(err)
	}
	after := generate(t, c, key)

	again, _ := serve(t, dir)
	described, err := again.DescribeKey(t.Context(), &sdk.DescribeKeyInput{KeyId: aws.String("alias/a")})
	if err != nil || aws.ToString(described.KeyMetadata.Arn) != key {
		t.Fatalf("after a restart: %+v, %v", described, err)
	}
	for _, made := range []*sdk.GenerateDataKeyOutput{before, after} {
		out, err := again.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("here")})
		if err != nil || !bytes.Equal(out.Plaintext, made.Plaintext) {
			t.Errorf("after a restart: %v", err)
		}
	}
}

func TestReEncryptMovesADataKey(t *testing.T) {
	c, _ := serve(t, t.TempDir())
	from, to := createKey(t, c), createKey(t, c)
	made := generate(t, c, from)
	moved, err := c.ReEncrypt(t.Context(), &sdk.ReEncryptInput{
		CiphertextBlob: made.CiphertextBlob, SourceKeyId: &from, DestinationKeyId: &to,
		SourceEncryptionContext: context("here"), DestinationEncryptionContext: context("there"),
	})
	if err != nil || aws.ToString(moved.KeyId) != to || aws.ToString(moved.SourceKeyId) != from {
		t.Fatalf("%+v, %v", moved, err)
	}
	out, err := c.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: moved.CiphertextBlob, EncryptionContext: context("there"), KeyId: &to})
	if err != nil || !bytes.Equal(out.Plaintext, made.Plaintext) {
		t.Errorf("moved: %v", err)
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	c, _ := serve(t, t.TempDir())
	key := createKey(t, c)
	big := bytes.Repeat([]byte("x"), 4097)
	_, tooBig := c.Encrypt(t.Context(), &sdk.EncryptInput{KeyId: &key, Plaintext: big})
	_, noSize := c.GenerateDataKey(t.Context(), &sdk.GenerateDataKeyInput{KeyId: &key})
	_, window := c.ScheduleKeyDeletion(t.Context(), &sdk.ScheduleKeyDeletionInput{KeyId: &key, PendingWindowInDays: aws.Int32(3)})
	for name, err := range map[string]error{"plaintext": tooBig, "data key": noSize, "window": window} {
		if codeOf(err) != "ValidationException" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.GenerateRandom(t.Context(), &sdk.GenerateRandomInput{NumberOfBytes: aws.Int32(1)}); codeOf(err) != "UnknownOperationException" {
		t.Errorf("an operation it does not have: %v", err)
	}
}
