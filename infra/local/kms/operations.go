package kms

import (
	"crypto/rand"
	"time"

	"github.com/google/uuid"
)

// create makes a key.
func (s *Service) create(in request) (any, error) {
	if in.KeySpec != "" && in.KeySpec != "SYMMETRIC_DEFAULT" {
		return nil, fault("UnsupportedOperationException", "This KMS has symmetric keys only")
	}
	material := make([]byte, 32)
	_, _ = rand.Read(material)
	k := key{ID: uuid.NewString(), State: enabled, Created: time.Now().UTC(), Material: [][]byte{material}}
	return map[string]any{"KeyMetadata": k.metadata()}, s.put(k)
}

// change alters the state of a key.
func (s *Service) change(name string, in request) (any, error) {
	k, err := s.find(in.KeyID)
	if err != nil {
		return nil, err
	}
	isPending, isCancelled := k.State == pendingDeletion, name == "CancelKeyDeletion"
	switch {
	case isPending && !isCancelled:
		return nil, fault("KMSInvalidStateException", "%s is pending deletion.", k.arn())
	case !isPending && isCancelled:
		return nil, fault("KMSInvalidStateException", "%s is not pending deletion.", k.arn())
	}
	switch name {
	case "EnableKey":
		k.State = enabled
	case "DisableKey", "CancelKeyDeletion":
		k.State = disabled
	case "ScheduleKeyDeletion": // nothing deletes it
		k.State = pendingDeletion
	}
	return map[string]any{"KeyId": k.arn(), "KeyState": k.State}, s.put(k)
}

func (s *Service) decrypt(in request) (any, error) {
	plaintext, k, err := s.open(in.CiphertextBlob, in.EncryptionContext, in.KeyID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"KeyId": k.arn(), "Plaintext": plaintext, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}, nil
}

func (s *Service) generate(in request) (any, error) {
	k, err := s.usable(in.KeyID)
	if err != nil {
		return nil, err
	}
	if in.KeySpec != "AES_256" {
		return nil, fault("ValidationException", "This KMS makes data keys of the spec AES_256 only")
	}
	dataKey := make([]byte, 32)
	_, _ = rand.Read(dataKey)
	blob, err := k.encrypt(dataKey, in.EncryptionContext)
	if err != nil {
		return nil, err
	}
	return map[string]any{"KeyId": k.arn(), "CiphertextBlob": blob, "Plaintext": dataKey}, nil
}

func (s *Service) reEncrypt(in request) (any, error) {
	plaintext, from, err := s.open(in.CiphertextBlob, in.SourceEncryptionContext, in.SourceKeyID)
	if err != nil {
		return nil, err
	}
	to, err := s.usable(in.DestinationKeyID)
	if err != nil {
		return nil, err
	}
	blob, err := to.encrypt(plaintext, in.DestinationEncryptionContext)
	return map[string]any{
		"SourceKeyId": from.arn(), "KeyId": to.arn(), "CiphertextBlob": blob,
		"SourceEncryptionAlgorithm": "SYMMETRIC_DEFAULT", "DestinationEncryptionAlgorithm": "SYMMETRIC_DEFAULT",
	}, err
}

func (k key) metadata() map[string]any {
	return map[string]any{
		"AWSAccountId": Account, "KeyId": k.ID, "Arn": k.arn(), "CreationDate": k.Created.Unix(),
		"Enabled": k.State == enabled, "KeyState": k.State, "KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": "SYMMETRIC_DEFAULT",
	}
}
