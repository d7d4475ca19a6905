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

const keyARN = "arn:aws:kms:us-east-1:000000000000:key/11111111-2222-3333-4444-555555555555"

// fixedKMS behaves as KMS does with one key that never changes, so that vectors
// made once open for ever. It really encrypts, and authenticates the context.
type fixedKMS struct {
	master [32]byte
	answer func(*kms.GenerateDataKeyOutput) // alters an answer, if set
	opened func(*kms.DecryptOutput)         // the same
	fail   error
}

func (k *fixedKMS) wrap() cipher.AEAD {
	block, err := aes.NewCipher(k.master[:])
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

func canonical(context map[string]string) []byte {
	b, err := json.Marshal(context) // sorts the keys
	if err != nil {
		panic(err)
	}
	return b
}

func (k *fixedKMS) GenerateDataKey(_ context.Context, in *kms.GenerateDataKeyInput, _ ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	if k.fail != nil {
		return nil, k.fail
	}
	dataKey, nonce := make([]byte, 32), make([]byte, 12)
	_, _ = rand.Read(dataKey)
	_, _ = rand.Read(nonce)
	out := &kms.GenerateDataKeyOutput{
		KeyId: in.KeyId, Plaintext: dataKey,
		CiphertextBlob: k.wrap().Seal(nonce, nonce, dataKey, canonical(in.EncryptionContext)),
	}
	if k.answer != nil {
		k.answer(out)
	}
	return out, nil
}

func (k *fixedKMS) Decrypt(_ context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	if k.fail != nil {
		return nil, k.fail
	}
	if aws.ToString(in.KeyId) != keyARN {
		return nil, &types.IncorrectKeyException{}
	}
	blob := in.CiphertextBlob
	if len(blob) < 12 {
		return nil, &types.InvalidCiphertextException{}
	}
	dataKey, err := k.wrap().Open(nil, blob[:12], blob[12:], canonical(in.EncryptionContext))
	if err != nil {
		return nil, &types.InvalidCiphertextException{}
	}
	out := &kms.DecryptOutput{KeyId: in.KeyId, Plaintext: dataKey}
	if k.opened != nil {
		k.opened(out)
	}
	return out, nil
}

var errKMS = errors.New("KMS says no")
