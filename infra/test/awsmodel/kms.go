package awsmodel

import (
	"crypto/rand"
	"maps"
	"slices"
)

const kmsTarget = "TrentService."

// ciphertext has the plaintext and the context that KMS sealed under a key.
type ciphertext struct {
	arn       string
	context   map[string]string
	plaintext []byte
}

// keyInput has the members that both operations have.
type keyInput struct {
	KeyID             string `json:"KeyId"`
	EncryptionContext map[string]string
}

// usable refuses a key that does not exist.
func (in keyInput) usable(w *World) error {
	if !slices.Contains(w.keys, in.KeyID) {
		return refusal("NotFoundException", "Key '%s' does not exist", in.KeyID)
	}
	return nil
}

type generateDataKey struct {
	keyInput

	KeySpec string
}

func (in *generateDataKey) apply(w *World) (any, error) {
	if in.KeySpec != "AES_256" {
		return nil, notModelled("a data key of %q", in.KeySpec)
	}
	if err := in.usable(w); err != nil {
		return nil, err
	}
	plaintext := make([]byte, 32)
	_, _ = rand.Read(plaintext) // it never fails
	return object{"KeyId": in.KeyID, "CiphertextBlob": w.seal(in.keyInput, plaintext), "Plaintext": plaintext}, nil
}

// seal returns a new ciphertext under the key and context.
func (w *World) seal(under keyInput, plaintext []byte) []byte {
	blob := make([]byte, 64)
	_, _ = rand.Read(blob)
	w.ciphertexts[string(blob)] = ciphertext{under.KeyID, under.EncryptionContext, plaintext}
	return blob
}

type decrypt struct {
	keyInput

	CiphertextBlob []byte
}

func (in *decrypt) apply(w *World) (any, error) {
	plaintext, err := w.open(in.keyInput, in.CiphertextBlob)
	return object{"KeyId": in.KeyID, "Plaintext": plaintext}, err
}

// open returns the plaintext of a ciphertext under the key and context.
func (w *World) open(under keyInput, blob []byte) ([]byte, error) {
	if err := under.usable(w); err != nil {
		return nil, err
	}
	sealed, ok := w.ciphertexts[string(blob)]
	switch {
	case ok && under.KeyID != sealed.arn:
		return nil, refusal("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
	case !ok || !maps.Equal(under.EncryptionContext, sealed.context):
		return nil, refusal("InvalidCiphertextException", "")
	}
	return sealed.plaintext, nil
}

type reEncrypt struct {
	CiphertextBlob               []byte
	SourceKeyID                  string `json:"SourceKeyId"`
	SourceEncryptionContext      map[string]string
	DestinationKeyID             string `json:"DestinationKeyId"`
	DestinationEncryptionContext map[string]string
}

func (in *reEncrypt) apply(w *World) (any, error) {
	to := keyInput{in.DestinationKeyID, in.DestinationEncryptionContext}
	if err := to.usable(w); err != nil {
		return nil, err
	}
	plaintext, err := w.open(keyInput{in.SourceKeyID, in.SourceEncryptionContext}, in.CiphertextBlob)
	if err != nil {
		return nil, err
	}
	return object{"KeyId": in.DestinationKeyID, "SourceKeyId": in.SourceKeyID, "CiphertextBlob": w.seal(to, plaintext)}, nil
}
