// Package seal encrypts one secret for one place: a provider key for the credential
// that holds it. It guards the secret at rest from readers of the table or a backup,
// and from writers of the table: a record moved to another credential, workspace,
// account or provider cannot be opened.
//
// It trusts KMS with the key that wraps the data keys and refuses every record that it
// does not recognise. It cannot distinguish an old record of a credential from the
// newest. That is safe, because no credential is sealed twice under one id.
//
// # Format 1
//
// A fresh 256-bit data key from KMS GenerateDataKey (AES_256) encrypts one secret and
// is then wiped. KMS wraps it under the sealing key with the encryption context
//
//	purpose     signalbox/credential
//	account     <account id>
//	workspace   <workspace id>
//	credential  <credential id>
//	provider    <provider slug>
//
// The secret is encrypted with AES-256-GCM: 12-byte random nonce, 16-byte tag at the
// end of the ciphertext. The associated data are these six strings, each with its
// length in bytes before it as a 4-byte big-endian number:
//
//	"signalbox/credential", "1", account, workspace, credential, provider
//
// all in UTF-8, ids in lower case. The ARN of the sealing key is stored beside the
// record. It is not in the associated data, so a rewrap under another key does not
// change the ciphertext.
//
// To open a record: KMS Decrypt of the wrapped key, under the recorded key and that
// context; AES-256-GCM under the result. The recorded key must be one that the reader
// trusts beforehand: a writer of the table could name any key.
//
// To move a record to another key: KMS ReEncrypt of the wrapped key, from the recorded
// key to the other, both times with that context. Only the wrapped key and the
// recorded ARN change.
//
// Package byok documents a record's place in storage. infra/cloud/opener.py opens records too: it was
// written in Python from this text.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

const (
	format  = 1
	purpose = "signalbox/credential"

	dataKeySize = 32
	nonceSize   = 12
	tagSize     = 16
)

// The reasons why a record cannot be opened. With an error no secret is returned, not
// even an empty one.
var (
	// ErrFormat means that the record has an unknown format or the wrong shape.
	ErrFormat = errors.New("sealed record of unknown format or shape")
	// ErrKey means that the record names a KMS key that is not trusted.
	ErrKey = errors.New("sealed under a KMS key that is not trusted")
	// ErrDataKey means that KMS does not accept the wrapped key for this binding, or that it
	// is no data key: the record was moved, or its wrapped key was altered.
	ErrDataKey = errors.New("the wrapped data key does not belong to this binding")
	// ErrCiphertext means that nonce, ciphertext and binding were not sealed together.
	ErrCiphertext = errors.New("the ciphertext is not authentic for this binding")
)

// Binding is the place that a secret is sealed for.
type Binding struct {
	Account    ids.Account
	Workspace  ids.Workspace
	Credential ids.Credential
	Provider   string
}

// Sealed is a sealed secret as stored. Nothing in it is secret.
type Sealed struct {
	Format     int    `dynamodbav:"format"`
	KeyARN     string `dynamodbav:"key_arn"` // of the KMS key that wraps the data key
	WrappedKey []byte `dynamodbav:"wrapped_key"`
	Nonce      []byte `dynamodbav:"nonce"`
	Ciphertext []byte `dynamodbav:"ciphertext"` // with its tag at the end
}

// context is KMS's encryption context: it binds the wrapped data key to its place. It
// appears in CloudTrail.
func (b Binding) context() map[string]string {
	return map[string]string{
		"purpose":    purpose,
		"account":    string(b.Account),
		"workspace":  string(b.Workspace),
		"credential": string(b.Credential),
		"provider":   b.Provider,
	}
}

// associatedData binds the secret to its place in AES-GCM. The lengths keep the parts
// apart.
func (b Binding) associatedData() []byte {
	var data []byte
	for _, part := range []string{
		purpose, strconv.Itoa(format),
		string(b.Account), string(b.Workspace), string(b.Credential), b.Provider,
	} {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part))) //nolint:gosec // ids and slugs: far below 4 GiB
		data = append(data, part...)
	}
	return data
}

// complete refuses a binding with an empty part.
func (b Binding) complete() error {
	if b.Account == "" || b.Workspace == "" || b.Credential == "" || b.Provider == "" {
		return errors.New("incomplete binding")
	}
	return nil
}

// check refuses a record that Seal never makes.
func (s Sealed) check() error {
	if len(s.Nonce) != nonceSize || len(s.Ciphertext) < tagSize {
		return ErrFormat
	}
	return s.checkWrapped()
}

// checkWrapped is check without nonce and ciphertext.
func (s Sealed) checkWrapped() error {
	if s.Format != format || s.KeyARN == "" || len(s.WrappedKey) == 0 {
		return ErrFormat
	}
	return nil
}

type generator interface {
	GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
}

// Sealer seals and cannot open: its role has kms:GenerateDataKey and not
// kms:Decrypt.
type Sealer struct {
	kms    generator
	keyARN string
}

// NewSealer seals under the KMS key with this ARN.
func NewSealer(client generator, keyARN string) *Sealer {
	return &Sealer{kms: client, keyARN: keyARN}
}

// Seal encrypts the secret for the binding. A failed call has no effect and may be
// repeated. The caller wipes the secret.
func (s *Sealer) Seal(ctx context.Context, plain secret.Bytes, binding Binding) (Sealed, error) {
	if err := binding.complete(); err != nil {
		return Sealed{}, fmt.Errorf("sealing: %w", err)
	}
	out, err := s.kms.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId:             &s.keyARN,
		KeySpec:           types.DataKeySpecAes256,
		EncryptionContext: binding.context(),
	})
	if err != nil {
		return Sealed{}, fmt.Errorf("generating a data key: %w", err)
	}
	defer clear(out.Plaintext)
	// A record that names another key could never be opened.
	if len(out.Plaintext) != dataKeySize || len(out.CiphertextBlob) == 0 || aws.ToString(out.KeyId) != s.keyARN {
		return Sealed{}, errors.New("generating a data key: malformed response")
	}
	aead, err := newAEAD(out.Plaintext)
	if err != nil {
		return Sealed{}, fmt.Errorf("sealing: %w", err)
	}
	// At most 32 KiB; AES-GCM allows 64 GiB under one nonce.
	record := aead.Seal(nil, nil, plain.Reveal(), binding.associatedData()) //nolint:gosec // it draws the nonce itself
	return Sealed{
		Format:     format,
		KeyARN:     s.keyARN,
		WrappedKey: out.CiphertextBlob,
		Nonce:      record[:nonceSize:nonceSize],
		Ciphertext: record[nonceSize:],
	}, nil
}

// newAEAD makes AES-256-GCM that puts a random nonce before each ciphertext, the only form
// that FIPS 140-3 allows. A random nonce is safe here: a data key encrypts one message, so
// no nonce can repeat under it.
func newAEAD(dataKey []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(dataKey)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
