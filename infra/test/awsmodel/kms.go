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

func (in keyInput) touches() []Touch { return []Touch{{Item: "kms/" + in.KeyID}} }

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
	plaintext, blob := make([]byte, 32), make([]byte, 64)
	_, _ = rand.Read(plaintext) // it never fails
	_, _ = rand.Read(blob)
	w.ciphertexts[string(blob)] = ciphertext{in.KeyID, in.EncryptionContext, plaintext}
	return object{"KeyId": in.KeyID, "CiphertextBlob": blob, "Plaintext": plaintext}, nil
}

type decrypt struct {
	keyInput

	CiphertextBlob []byte
}

func (in *decrypt) apply(w *World) (any, error) {
	if err := in.usable(w); err != nil {
		return nil, err
	}
	sealed, ok := w.ciphertexts[string(in.CiphertextBlob)]
	switch {
	case ok && in.KeyID != sealed.arn:
		return nil, refusal("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
	case !ok || !maps.Equal(in.EncryptionContext, sealed.context):
		return nil, refusal("InvalidCiphertextException", "")
	}
	return object{"KeyId": in.KeyID, "Plaintext": sealed.plaintext}, nil
}
