package kms

import (
	"crypto/rand"
	"maps"
	"slices"
	"time"
)

// AWS's bounds, from the reference of the KMS API.
const (
	minWindowDays = 7
	maxWindowDays = 30
	maxDataKey    = 1024
)

// change carries out an operation that alters the keys.
func (s *Service) change(name string, in request) (any, error) {
	if name == "CreateKey" {
		if in.KeySpec != "" && in.KeySpec != "SYMMETRIC_DEFAULT" {
			return nil, fault("UnsupportedOperationException", "This KMS has symmetric keys only")
		}
		return map[string]any{"KeyMetadata": s.create(in.Description).metadata()}, nil
	}
	k, err := s.find(in.KeyID)
	if err != nil {
		return nil, err
	}
	if k.State == pendingDeletion && name != "CancelKeyDeletion" {
		return nil, fault("KMSInvalidStateException", "%s is pending deletion.", k.arn())
	}
	switch name {
	case "EnableKey":
		k.State = enabled
	case "DisableKey":
		k.State = disabled
	case "ScheduleKeyDeletion":
		return s.schedule(k, in.PendingWindowInDays)
	case "CancelKeyDeletion":
		if k.State != pendingDeletion {
			return nil, fault("KMSInvalidStateException", "%s is not pending deletion.", k.arn())
		}
		k.State, k.Deletion = disabled, time.Time{}
		return map[string]any{"KeyId": k.arn()}, nil
	}
	return map[string]any{}, nil
}

func (s *Service) schedule(k *key, days *int) (any, error) {
	window := maxWindowDays
	if days != nil {
		window = *days
	}
	if window < minWindowDays || window > maxWindowDays {
		return nil, fault("ValidationException", "PendingWindowInDays must be from 7 to 30")
	}
	k.State, k.Deletion = pendingDeletion, time.Now().UTC().AddDate(0, 0, window)
	return map[string]any{"KeyId": k.arn(), "KeyState": k.State, "DeletionDate": k.Deletion.Unix(), "PendingWindowInDays": window}, nil
}

// crypto carries out an operation that uses a key.
func (s *Service) crypto(name string, in request) (any, error) {
	switch name {
	case "GenerateDataKey":
		return s.generate(in)
	case "Decrypt":
		plaintext, k, err := s.open(in.CiphertextBlob, in.EncryptionContext, in.KeyID)
		if err != nil {
			return nil, err
		}
		return map[string]any{"KeyId": k.arn(), "Plaintext": plaintext, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}, nil
	case "ReEncrypt":
		return s.reEncrypt(in)
	default:
		return nil, fault("UnknownOperationException", "")
	}
}

func (s *Service) generate(in request) (any, error) {
	k, err := s.usable(in.KeyID)
	if err != nil {
		return nil, err
	}
	size := in.NumberOfBytes
	switch in.KeySpec {
	case "AES_256":
		size = 32
	case "AES_128":
		size = 16
	}
	if size < 1 || size > maxDataKey || in.KeySpec != "" && in.NumberOfBytes != 0 {
		return nil, fault("ValidationException", "Please specify either number of bytes or key spec.")
	}
	dataKey := make([]byte, size)
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

func (k *key) metadata() map[string]any {
	m := map[string]any{
		"AWSAccountId": Account, "KeyId": k.ID, "Arn": k.arn(), "CreationDate": k.Created.Unix(),
		"Enabled": k.State == enabled, "KeyState": k.State, "Description": k.Description,
		"KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": "SYMMETRIC_DEFAULT", "CustomerMasterKeySpec": "SYMMETRIC_DEFAULT",
		"EncryptionAlgorithms": []string{"SYMMETRIC_DEFAULT"}, "KeyManager": "CUSTOMER", "Origin": "AWS_KMS", "MultiRegion": false,
	}
	if k.State == pendingDeletion {
		m["DeletionDate"] = k.Deletion.Unix()
	}
	return m
}

func (s *Service) list() any {
	keys := []map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(s.state.Keys)) {
		if k := s.state.Keys[id]; !s.gone(k) {
			keys = append(keys, map[string]string{"KeyId": id, "KeyArn": k.arn()})
		}
	}
	return map[string]any{"Keys": keys, "Truncated": false}
}
