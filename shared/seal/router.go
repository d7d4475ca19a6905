package seal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"signalbox.dev/shared/secret"
)

type decrypter interface {
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Opener opens the records of a Sealer. It is for the platform's router, which has its
// own role. The functions of this service cannot use it: IAM denies them kms:Decrypt.
type Opener struct {
	kms     decrypter
	keyARNs []string
}

// NewOpener returns an Opener of records under these KMS keys alone. A record names its
// key, and anybody who writes records can name his own.
func NewOpener(client decrypter, keyARNs ...string) *Opener {
	return &Opener{kms: client, keyARNs: keyARNs}
}

// Open decrypts a record for the binding under which it is stored. It returns
// ErrFormat, ErrKey, ErrDataKey or ErrCiphertext if the record can never be opened
// there. It returns another error if KMS did not answer, or if its key is disabled or
// deleted. The caller wipes the secret after use.
func (o *Opener) Open(ctx context.Context, sealed Sealed, binding Binding) (secret.Bytes, error) {
	if err := binding.complete(); err != nil {
		return secret.Bytes{}, fmt.Errorf("opening: %w", err)
	}
	if err := sealed.check(); err != nil {
		return secret.Bytes{}, err
	}
	if !slices.Contains(o.keyARNs, sealed.KeyARN) {
		return secret.Bytes{}, ErrKey
	}
	dataKey, err := o.unwrap(ctx, sealed, binding)
	if err != nil {
		return secret.Bytes{}, err
	}
	defer clear(dataKey)
	aead, err := newAEAD(dataKey)
	if err != nil {
		return secret.Bytes{}, fmt.Errorf("opening: %w", err)
	}
	plain, err := aead.Open(nil, nil, slices.Concat(sealed.Nonce, sealed.Ciphertext), binding.associatedData())
	if err != nil {
		return secret.Bytes{}, ErrCiphertext
	}
	return secret.New(plain), nil
}

// unwrap lets KMS decrypt the data key.
func (o *Opener) unwrap(ctx context.Context, sealed Sealed, binding Binding) ([]byte, error) {
	out, err := o.kms.Decrypt(ctx, &kms.DecryptInput{
		KeyId:             &sealed.KeyARN,
		CiphertextBlob:    sealed.WrappedKey,
		EncryptionContext: binding.context(),
	})
	switch {
	case refused(err):
		return nil, ErrDataKey
	case err != nil:
		return nil, fmt.Errorf("unwrapping a data key: %w", err)
	case len(out.Plaintext) != dataKeySize:
		clear(out.Plaintext)
		return nil, ErrDataKey
	}
	return out.Plaintext, nil
}

// refused reports whether KMS rejects the wrapped key itself. Other errors say nothing
// about the record.
func refused(err error) bool {
	_, invalid := errors.AsType[*types.InvalidCiphertextException](err)
	_, incorrect := errors.AsType[*types.IncorrectKeyException](err)
	return invalid || incorrect
}
