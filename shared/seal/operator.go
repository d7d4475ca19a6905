//go:build !lambda

package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
)

type reEncrypter interface {
	ReEncrypt(context.Context, *kms.ReEncryptInput, ...func(*kms.Options)) (*kms.ReEncryptOutput, error)
}

// Rewrapper moves records to another KMS key and opens none: KMS rewraps the data key
// inside. Its role has kms:ReEncryptFrom and kms:ReEncryptTo, and not kms:Decrypt.
type Rewrapper struct {
	kms  reEncrypter
	to   string
	from []string
}

// NewRewrapper moves records to one KMS key, only from these keys. An Opener trusts
// every record under the new key, so a record under an attacker's key must not be moved
// there.
func NewRewrapper(client reEncrypter, to string, from ...string) *Rewrapper {
	return &Rewrapper{kms: client, to: to, from: from}
}

// To is the ARN of the key that records are moved to.
func (r *Rewrapper) To() string { return r.to }

// Rewrap returns the record with its data key wrapped under the other key. Nonce and
// ciphertext do not change and may be absent. A record that is already under that key
// is returned unchanged. It returns ErrFormat, ErrKey or ErrDataKey if the record can
// never be moved. It returns another error if KMS did not answer, or if a key is
// disabled or deleted. It may be repeated: an attempt has no effect.
func (r *Rewrapper) Rewrap(ctx context.Context, sealed Sealed, binding Binding) (Sealed, error) {
	if err := binding.complete(); err != nil {
		return Sealed{}, fmt.Errorf("rewrapping: %w", err)
	}
	if err := sealed.checkWrapped(); err != nil {
		return Sealed{}, err
	}
	if sealed.KeyARN == r.to {
		return sealed, nil
	}
	if !slices.Contains(r.from, sealed.KeyARN) {
		return Sealed{}, ErrKey
	}
	// KMS checks the binding, like Decrypt: a record that somebody moved to another
	// place stays useless.
	out, err := r.kms.ReEncrypt(ctx, &kms.ReEncryptInput{
		CiphertextBlob:               sealed.WrappedKey,
		SourceKeyId:                  aws.String(sealed.KeyARN),
		SourceEncryptionContext:      binding.context(),
		DestinationKeyId:             &r.to,
		DestinationEncryptionContext: binding.context(),
	})
	switch {
	case refused(err):
		return Sealed{}, ErrDataKey
	case err != nil:
		return Sealed{}, fmt.Errorf("rewrapping a data key: %w", err)
	case aws.ToString(out.KeyId) != r.to, aws.ToString(out.SourceKeyId) != sealed.KeyARN,
		len(out.CiphertextBlob) == 0, bytes.Equal(out.CiphertextBlob, sealed.WrappedKey):
		return Sealed{}, errors.New("rewrapping a data key: malformed response")
	}
	sealed.KeyARN, sealed.WrappedKey = r.to, out.CiphertextBlob
	return sealed, nil
}
