package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"signalbox.dev/shared/secret"
)

type generator interface {
	GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
}

// Sealer seals and cannot open: its role has kms:GenerateDataKey and not
// kms:Decrypt.
type Sealer struct {
	kms    generator
	keyARN string
}

// NewSealer seals under the KMS key of that ARN.
func NewSealer(client generator, keyARN string) *Sealer {
	return &Sealer{kms: client, keyARN: keyARN}
}

// Seal encrypts the secret for the binding. It leaves no trace where it fails,
// and may be repeated; the secret is the caller's to wipe.
func (s *Sealer) Seal(ctx context.Context, plain secret.Bytes, to Binding) (Sealed, error) {
	if err := to.complete(); err != nil {
		return Sealed{}, fmt.Errorf("sealing: %w", err)
	}
	out, err := s.kms.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId:             &s.keyARN,
		KeySpec:           types.DataKeySpecAes256,
		EncryptionContext: to.context(),
	})
	if err != nil {
		return Sealed{}, fmt.Errorf("generating a data key: %w", err)
	}
	defer clear(out.Plaintext)
	// A record that names another key than ours would open nowhere.
	if len(out.Plaintext) != dataKeySize || len(out.CiphertextBlob) == 0 || aws.ToString(out.KeyId) != s.keyARN {
		return Sealed{}, errors.New("generating a data key: malformed response")
	}
	aead, err := newAEAD(out.Plaintext)
	if err != nil {
		return Sealed{}, fmt.Errorf("sealing: %w", err)
	}
	// A random nonce is safe here: the data key encrypts this one message, so no
	// nonce can repeat under it.
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails: crypto/rand ends the process instead
	return Sealed{
		Format:     format,
		KeyARN:     s.keyARN,
		WrappedKey: out.CiphertextBlob,
		Nonce:      nonce,
		// At most 32 KiB, where AES-GCM allows 64 GiB under one nonce.
		Ciphertext: aead.Seal(nil, nonce, plain.Reveal(), to.associatedData()),
	}, nil
}

func newAEAD(dataKey []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(dataKey)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
