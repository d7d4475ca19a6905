package kms

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"maps"
	"slices"
)

// A ciphertext is: version 1 | key id (36) | nonce (12) | AES-256-GCM. The header and the
// encryption context are the associated data.
const (
	blobVersion = 1
	idLength    = 36
	headLength  = 1 + idLength
)

// encrypt uses a random nonce. That is safe for 2^32 ciphertexts under one key, far more than
// a developer's machine will make.
func (k key) encrypt(plaintext []byte, context map[string]string) ([]byte, error) {
	head := append([]byte{blobVersion}, k.ID...)
	aead, err := newAEAD(k.Material)
	if err != nil {
		return nil, err
	}
	return aead.Seal(head, nil, plaintext, associated(head, context)), nil //nolint:gosec // it makes its own nonce
}

var errInvalid = fault("InvalidCiphertextException", "")

// sealing returns the key that a ciphertext names. If named is not "", the request requires
// that key.
func (s *Service) sealing(blob []byte, named string) (key, error) {
	if len(blob) == 0 {
		return key{}, fault("ValidationException", "There is no ciphertext")
	}
	if len(blob) < headLength || blob[0] != blobVersion {
		return key{}, errInvalid
	}
	id := string(blob[1 : 1+idLength])
	if _, known := s.keys.Keys[id]; !known {
		return key{}, errInvalid // no message repeats a byte of it
	}
	k, err := s.usable(cmp.Or(named, id))
	if err == nil && k.ID != id {
		err = fault("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
	}
	return k, err
}

// decrypt opens a ciphertext that names this key.
func (k key) decrypt(blob []byte, context map[string]string) ([]byte, error) {
	head, sealed := blob[:headLength], blob[headLength:]
	aead, err := newAEAD(k.Material)
	if err != nil {
		return nil, err
	}
	plaintext, err := aead.Open(nil, nil, sealed, associated(head, context))
	if err != nil {
		return nil, errInvalid
	}
	return plaintext, nil
}

func newAEAD(material []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(material)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// associated returns the associated data. The order of the context does not matter.
func associated(head []byte, context map[string]string) []byte {
	data := slices.Clone(head)
	for _, name := range slices.Sorted(maps.Keys(context)) {
		for _, part := range []string{name, context[name]} {
			data = binary.BigEndian.AppendUint32(data, uint32(len(part))) //nolint:gosec // bounded by the request
			data = append(data, part...)
		}
	}
	return data
}
