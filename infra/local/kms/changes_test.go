package kms_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/kms"
)

// What cannot be stored did not happen, or a restart would take it back.
func TestAChangeThatCannotBeStoredIsNone(t *testing.T) {
	dir := t.TempDir()
	c, _ := serve(t, dir)
	key := createKey(t, c)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err := c.DisableKey(t.Context(), &sdk.DisableKeyInput{KeyId: &key})
	if _, ok := errors.AsType[*types.KMSInternalException](err); !ok {
		t.Errorf("disabling it: %v", err)
	}
	if _, err := c.CreateKey(t.Context(), nil); err == nil {
		t.Error("another key was made")
	}
	generate(t, c, key) // as if nothing had been said
	if diff := cmp.Diff(keysOf(t, c), []string{key}); diff != "" {
		t.Errorf("keys (got -, want +):\n%s", diff)
	}
}

// keysOf lists the ARNs of the keys that there are.
func keysOf(t *testing.T, c *sdk.Client) []string {
	t.Helper()
	out, err := c.ListKeys(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var arns []string
	for _, k := range out.Keys {
		arns = append(arns, aws.ToString(k.KeyArn))
	}
	return arns
}

func TestChangesAtOnceAreAllKept(t *testing.T) {
	dir := t.TempDir()
	c, _ := serve(t, dir)
	var mu sync.Mutex
	var made []string
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			out, err := c.CreateKey(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, aws.ToString(out.KeyMetadata.Arn))
		})
	}
	all.Wait()
	again, _ := serve(t, dir)
	slices.Sort(made)
	if diff := cmp.Diff(keysOf(t, again), made); diff != "" {
		t.Errorf("keys after a restart (got -, want +):\n%s", diff)
	}
}

func TestAKeyIsFoundByItsNames(t *testing.T) {
	c, _ := serve(t, t.TempDir())
	key := createKey(t, c)
	if _, err := c.CreateAlias(t.Context(), &sdk.CreateAliasInput{AliasName: aws.String("alias/a"), TargetKeyId: &key}); err != nil {
		t.Fatal(err)
	}
	before, id, _ := strings.Cut(key, "key/")
	for _, name := range []string{key, id, "alias/a", before + "alias/a"} {
		out, err := c.DescribeKey(t.Context(), &sdk.DescribeKeyInput{KeyId: &name})
		if err != nil || aws.ToString(out.KeyMetadata.Arn) != key || aws.ToString(out.KeyMetadata.KeyId) != id {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := strings.Replace(key, kms.Region, "eu-west-1", 1)
	if _, err := c.DescribeKey(t.Context(), &sdk.DescribeKeyInput{KeyId: &other}); codeOf(err) != "NotFoundException" {
		t.Errorf("a key elsewhere: %v", err)
	}
	aliases, err := c.ListAliases(t.Context(), nil)
	if err != nil || len(aliases.Aliases) != 1 || aws.ToString(aliases.Aliases[0].TargetKeyId) != id {
		t.Errorf("aliases: %+v, %v", aliases, err)
	}
}

func TestAForeignCiphertextOpensNowhere(t *testing.T) {
	here, _ := serve(t, t.TempDir())
	there, _ := serve(t, t.TempDir())
	made := generate(t, there, createKey(t, there))
	for name, blob := range map[string][]byte{
		"of another KMS":  made.CiphertextBlob,
		"of another time": bytes.Replace(made.CiphertextBlob, []byte{1}, []byte{2}, 1),
	} {
		_, err := here.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: blob, EncryptionContext: context("here")})
		if _, ok := errors.AsType[*types.InvalidCiphertextException](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAKeyToBeDeletedIsGoneFromTheList(t *testing.T) {
	c, service := serve(t, t.TempDir())
	kept, removed := createKey(t, c), createKey(t, c)
	if _, err := c.ScheduleKeyDeletion(t.Context(), &sdk.ScheduleKeyDeletionInput{KeyId: &removed}); err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]int{29: 2, 31: 1} {
		service.At(func() time.Time { return time.Now().AddDate(0, 0, days) })
		if keys := keysOf(t, c); len(keys) != want || !slices.Contains(keys, kept) {
			t.Errorf("after %d days: %q", days, keys)
		}
	}
}

func TestWhatAKeyRefuses(t *testing.T) {
	c, _ := serve(t, t.TempDir())
	key := createKey(t, c)
	if _, err := c.DisableKey(t.Context(), &sdk.DisableKeyInput{KeyId: &key}); err != nil {
		t.Fatal(err)
	}
	_, rotate := c.RotateKeyOnDemand(t.Context(), &sdk.RotateKeyOnDemandInput{KeyId: &key})
	_, cancel := c.CancelKeyDeletion(t.Context(), &sdk.CancelKeyDeletionInput{KeyId: &key})
	_, alias := c.CreateAlias(t.Context(), &sdk.CreateAliasInput{AliasName: aws.String("a"), TargetKeyId: &key})
	_, rsa := c.CreateKey(t.Context(), &sdk.CreateKeyInput{KeySpec: types.KeySpecRsa2048, KeyUsage: types.KeyUsageTypeSignVerify})
	_, empty := c.Decrypt(t.Context(), &sdk.DecryptInput{CiphertextBlob: []byte{}})
	_, nameless := c.Encrypt(t.Context(), &sdk.EncryptInput{KeyId: aws.String(""), Plaintext: []byte("x")})
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"rotating a disabled key":   {rotate, "DisabledException"},
		"keeping what is not to go": {cancel, "KMSInvalidStateException"},
		"an alias by another name":  {alias, "ValidationException"},
		"an asymmetric key":         {rsa, "UnsupportedOperationException"},
		"opening nothing":           {empty, "ValidationException"},
		"encrypting under no key":   {nameless, "ValidationException"},
	} {
		if codeOf(c.err) != c.want {
			t.Errorf("%s: %v, want %s", name, c.err, c.want)
		}
	}
}
