package model

import (
	"crypto/rand"
	"maps"
)

const kmsTarget = "TrentService."

// ciphertext has the plaintext and the context that KMS sealed. A client gets a name for
// it: the ARN of the key, and random bytes.
type ciphertext struct {
	context   map[string]string
	plaintext []byte
}

const nameSize = 64

// usable refuses a key that does not exist.
func (w *World) usable(arn string) error {
	if !w.keys[arn] {
		return refusal("NotFoundException", "Key '%s' does not exist", arn)
	}
	return nil
}

func (w *World) generateDataKey(in struct {
	KeyID             string `json:"KeyId"`
	KeySpec           string
	EncryptionContext map[string]string
}) (any, error) {
	if in.KeySpec != "AES_256" {
		return nil, notModelled("a data key of %q", in.KeySpec)
	}
	if err := w.usable(in.KeyID); err != nil {
		return nil, err
	}
	plaintext, name := make([]byte, 32), make([]byte, nameSize)
	_, _ = rand.Read(plaintext) // it never fails
	_, _ = rand.Read(name)
	blob := append([]byte(in.KeyID), name...)
	w.ciphertexts[string(blob)] = ciphertext{in.EncryptionContext, plaintext}
	return object{"KeyId": in.KeyID, "CiphertextBlob": blob, "Plaintext": plaintext}, nil
}

func (w *World) decrypt(in struct {
	KeyID             string `json:"KeyId"`
	CiphertextBlob    []byte
	EncryptionContext map[string]string
}) (any, error) {
	arn := string(in.CiphertextBlob[:max(0, len(in.CiphertextBlob)-nameSize)])
	if in.KeyID != "" {
		if err := w.usable(in.KeyID); err != nil {
			return nil, err
		}
	}
	switch {
	case !w.keys[arn]:
		return nil, refusal("InvalidCiphertextException", "")
	case in.KeyID != "" && in.KeyID != arn:
		return nil, refusal("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
	}
	sealed, ok := w.ciphertexts[string(in.CiphertextBlob)]
	if !ok || !maps.Equal(in.EncryptionContext, sealed.context) {
		return nil, refusal("InvalidCiphertextException", "")
	}
	return object{"KeyId": arn, "Plaintext": sealed.plaintext}, nil
}
