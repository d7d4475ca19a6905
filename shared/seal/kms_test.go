package seal_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

const (
	keyARN  = "arn:aws:kms:us-east-1:000000000000:key/11111111-2222-3333-4444-555555555555"
	nextARN = "arn:aws:kms:us-east-1:000000000000:key/99999999-2222-3333-4444-555555555555"
)

var errKMS = errors.New("KMS is out of reach")

// fakeKMS is KMS with two fixed keys, so frozen vectors open. It encrypts, and
// authenticates the context. The functions alter its responses.
type fakeKMS struct {
	generated   func(*kms.GenerateDataKeyOutput)
	decrypted   func(*kms.DecryptOutput)
	reEncrypted func(*kms.ReEncryptOutput)
	failing     string // the ARN of a key that is out of reach
	asked       int    // how often ReEncrypt was called
}

// crypt wraps or unwraps a data key.
func (k *fakeKMS) crypt(arn *string, context map[string]string, blob []byte, wrap bool) ([]byte, error) {
	masters := map[string][32]byte{keyARN: {}, nextARN: {9}}
	master, ok := masters[aws.ToString(arn)]
	switch {
	case !ok:
		return nil, &types.IncorrectKeyException{}
	case aws.ToString(arn) == k.failing:
		return nil, errKMS
	}
	block, err := aes.NewCipher(master[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(context) // sorts the keys
	if err != nil {
		return nil, err
	}
	if wrap {
		return aead.Seal(nil, nil, blob, canonical), nil //nolint:gosec // it draws the nonce itself
	}
	dataKey, err := aead.Open(nil, nil, blob, canonical)
	if err != nil {
		return nil, &types.InvalidCiphertextException{}
	}
	return dataKey, nil
}

func (k *fakeKMS) GenerateDataKey(_ context.Context, in *kms.GenerateDataKeyInput, _ ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	dataKey := make([]byte, 32)
	_, _ = rand.Read(dataKey)
	wrapped, err := k.crypt(in.KeyId, in.EncryptionContext, dataKey, true)
	out := &kms.GenerateDataKeyOutput{KeyId: in.KeyId, Plaintext: dataKey, CiphertextBlob: wrapped}
	if k.generated != nil {
		k.generated(out)
	}
	return out, err
}

func (k *fakeKMS) Decrypt(_ context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	dataKey, err := k.crypt(in.KeyId, in.EncryptionContext, in.CiphertextBlob, false)
	out := &kms.DecryptOutput{KeyId: in.KeyId, Plaintext: dataKey}
	if err == nil && k.decrypted != nil {
		k.decrypted(out)
	}
	return out, err
}

func (k *fakeKMS) ReEncrypt(_ context.Context, in *kms.ReEncryptInput, _ ...func(*kms.Options)) (*kms.ReEncryptOutput, error) {
	k.asked++
	dataKey, err := k.crypt(in.SourceKeyId, in.SourceEncryptionContext, in.CiphertextBlob, false)
	if err != nil {
		return nil, err
	}
	wrapped, err := k.crypt(in.DestinationKeyId, in.DestinationEncryptionContext, dataKey, true)
	out := &kms.ReEncryptOutput{SourceKeyId: in.SourceKeyId, KeyId: in.DestinationKeyId, CiphertextBlob: wrapped}
	if k.reEncrypted != nil {
		k.reEncrypted(out)
	}
	return out, err
}
