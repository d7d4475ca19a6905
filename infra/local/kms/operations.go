package kms

import "crypto/rand"

// change carries out an operation that alters the keys.
func (s *Service) change(name string, in request) (any, error) {
	if name == "CreateKey" {
		if in.KeySpec != "" && in.KeySpec != "SYMMETRIC_DEFAULT" {
			return nil, fault("UnsupportedOperationException", "This KMS has symmetric keys only")
		}
		return map[string]any{"KeyMetadata": s.create().metadata()}, nil
	}
	k, err := s.find(in.KeyID)
	if err != nil {
		return nil, err
	}
	if k.State == pendingDeletion && name != "CancelKeyDeletion" {
		return nil, fault("KMSInvalidStateException", "%s is pending deletion.", k.arn())
	}
	answer := map[string]any{}
	switch name {
	case "EnableKey":
		k.State = enabled
	case "DisableKey":
		k.State = disabled
	case "ScheduleKeyDeletion": // nothing deletes it
		k.State = pendingDeletion
		answer = map[string]any{"KeyId": k.arn(), "KeyState": k.State}
	case "CancelKeyDeletion":
		if k.State != pendingDeletion {
			return nil, fault("KMSInvalidStateException", "%s is not pending deletion.", k.arn())
		}
		k.State = disabled
		answer["KeyId"] = k.arn()
	}
	s.state.Keys[k.ID] = k
	return answer, nil
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
		"Enabled": k.State == enabled, "KeyState": k.State, "Description": "",
		"KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": "SYMMETRIC_DEFAULT", "CustomerMasterKeySpec": "SYMMETRIC_DEFAULT",
		"EncryptionAlgorithms": []string{"SYMMETRIC_DEFAULT"}, "KeyManager": "CUSTOMER", "Origin": "AWS_KMS", "MultiRegion": false,
	}
}
