package kms_test

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/kms"
)

// serve opens the folder and returns a client of the SDK.
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

// wantKeys checks how many keys are listed.
func wantKeys(t *testing.T, c *sdk.Client, want int) {
	t.Helper()
	out, err := c.ListKeys(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Keys) != want {
		t.Errorf("%d keys are listed, want %d", len(out.Keys), want)
	}
}

// codeOf returns AWS's code of an error; "" for none.
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
	foreign, _ := serve(t, t.TempDir())
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

// A key's state decides whether it can be used, and which of its changes are
// refused.
func TestStatesOfAKey(t *testing.T) {
	c, service := serve(t, t.TempDir())
	key := createKey(t, c)
	made := generate(t, c, key)
	change := map[string]func() error{
		"disable": func() error { _, err := c.DisableKey(t.Context(), &sdk.DisableKeyInput{KeyId: &key}); return err },
		"enable":  func() error { _, err := c.EnableKey(t.Context(), &sdk.EnableKeyInput{KeyId: &key}); return err },
		"cancel": func() error {
			_, err := c.CancelKeyDeletion(t.Context(), &sdk.CancelKeyDeletionInput{KeyId: &key})
			return err
		},
		"rotate": func() error {
			_, err := c.RotateKeyOnDemand(t.Context(), &sdk.RotateKeyOnDemandInput{KeyId: &key})
			return err
		},
		"schedule": func() error {
			_, err := c.ScheduleKeyDeletion(t.Context(), &sdk.ScheduleKeyDeletionInput{KeyId: &key})
			return err
		},
	}
	for i, step := range []struct{ change, refused, use string }{
		{"cancel", "KMSInvalidStateException", ""},
		{"rotate", "", ""},
		{"disable", "", "DisabledException"},
		{"rotate", "DisabledException", "DisabledException"},
		{"enable", "", ""},
		{"schedule", "", "KMSInvalidStateException"},
		{"enable", "KMSInvalidStateException", "KMSInvalidStateException"},
		{"cancel", "", "DisabledException"},
		{"schedule", "", "KMSInvalidStateException"},
	} {
		if err := change[step.change](); codeOf(err) != step.refused {
			t.Errorf("step %d, %s: %v, want %q", i, step.change, err, step.refused)
		}
		_, generated := c.GenerateDataKey(t.Context(), &sdk.GenerateDataKeyInput{KeyId: &key, KeySpec: types.DataKeySpecAes256})
		_, opened := c.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: context("here")})
		if codeOf(generated) != step.use || codeOf(opened) != step.use {
			t.Errorf("after step %d, %s: GenerateDataKey %v, Decrypt %v, want %q", i, step.change, generated, opened, step.use)
		}
	}
	createKey(t, c)
	for days, want := range map[int]int{29: 2, 31: 1} { // the window is 30 days by default
		service.At(func() time.Time { return time.Now().AddDate(0, 0, days) })
		wantKeys(t, c, want)
	}
	service.At(func() time.Time { return time.Now().AddDate(0, 0, 31) })
	if err := change["cancel"](); codeOf(err) != "NotFoundException" {
		t.Errorf("a deleted key: %v", err)
	}
}

// Keys, aliases and what was encrypted before a rotation survive a restart.
func TestKeysSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	c, _ := serve(t, dir)
	key := createKey(t, c)
	if _, err := c.CreateAlias(t.Context(), &sdk.CreateAliasInput{AliasName: aws.String("alias/a"), TargetKeyId: &key}); err != nil {
		t.Fatal(err)
	}
	made := []*sdk.GenerateDataKeyOutput{generate(t, c, key)}
	if _, err := c.RotateKeyOnDemand(t.Context(), &sdk.RotateKeyOnDemandInput{KeyId: &key}); err != nil {
		t.Fatal(err)
	}
	made = append(made, generate(t, c, key))
	var others errgroup.Group // created at the same time
	for range 20 {
		others.Go(func() error { _, err := c.CreateKey(t.Context(), nil); return err })
	}
	if err := others.Wait(); err != nil {
		t.Error(err)
	}

	again, _ := serve(t, dir)
	wantKeys(t, again, 21)
	for _, m := range made {
		out, err := again.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: m.CiphertextBlob, EncryptionContext: context("here")})
		if err != nil || !bytes.Equal(out.Plaintext, m.Plaintext) {
			t.Errorf("after a restart: %v", err)
		}
	}
	before, id, _ := strings.Cut(key, "key/")
	for _, name := range []string{key, id, "alias/a", before + "alias/a"} {
		out, err := again.DescribeKey(t.Context(), &sdk.DescribeKeyInput{KeyId: &name})
		if err != nil || aws.ToString(out.KeyMetadata.Arn) != key || aws.ToString(out.KeyMetadata.KeyId) != id {
			t.Errorf("%s: %v", name, err)
		}
	}
	aliases, err := again.ListAliases(t.Context(), nil)
	if err != nil || len(aliases.Aliases) != 1 || aws.ToString(aliases.Aliases[0].TargetKeyId) != id {
		t.Errorf("aliases: %+v, %v", aliases, err)
	}
}

// A change that cannot be stored does not happen: a restart would undo it.
func TestAChangeThatCannotBeStored(t *testing.T) {
	dir := t.TempDir()
	c, _ := serve(t, dir)
	key := createKey(t, c)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DisableKey(t.Context(), &sdk.DisableKeyInput{KeyId: &key}); codeOf(err) != "KMSInternalException" {
		t.Errorf("disabling it: %v", err)
	}
	if _, err := c.CreateKey(t.Context(), nil); err == nil {
		t.Error("another key was created")
	}
	generate(t, c, key) // the key is not disabled
	wantKeys(t, c, 1)
}

func TestAlteredKeysAreRefused(t *testing.T) {
	dir := t.TempDir()
	c, _ := serve(t, dir)
	createKey(t, c)
	path := filepath.Join(dir, "keys.json")
	stored, err := os.ReadFile(path) //nolint:gosec // a folder of the test
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Replace(stored, []byte(`"Material":["`), []byte(`"Material":["AAAA`), 1)
	if err := os.WriteFile(path, altered, 0o600); err != nil { //nolint:gosec // the same
		t.Fatal(err)
	}
	if _, err := kms.Open(dir); err == nil || !strings.Contains(err.Error(), path+": they were altered") {
		t.Errorf("got %v", err)
	}
}
