package model

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

const kmsTarget = "TrentService"

// kms are the operations of KMS.
var kms = map[string]func(*World, []byte) (any, error){
	"GenerateDataKey":     call((*World).generateDataKey),
	"Decrypt":             call((*World).decrypt),
	"ReEncrypt":           call((*World).reEncrypt),
	"DescribeKey":         call((*World).describeKey),
	"EnableKey":           call((*World).enableKey),
	"DisableKey":          call((*World).disableKey),
	"ScheduleKeyDeletion": call((*World).scheduleKeyDeletion),
	"CancelKeyDeletion":   call((*World).cancelKeyDeletion),
}

// The states of a key.
const (
	enabled         = "Enabled"
	disabled        = "Disabled"
	pendingDeletion = "PendingDeletion"
)

// AWS's bounds, and the sizes of AES-256-GCM.
const (
	keySize       = 32
	nonceSize     = 12
	maxDataKey    = 1024
	minWindowDays = 7
	maxWindowDays = 30
)

// key is a symmetric KMS key.
type key struct {
	arn      string
	state    string
	material []byte
	deletion time.Time
}

// symmetric is the one algorithm of the model.
const symmetric = "SYMMETRIC_DEFAULT"

// find returns a key by its ARN, in whatever state it is.
func (w *World) find(arn string) (*key, error) {
	k, ok := w.keys[arn]
	switch {
	case arn == "":
		return nil, invalid("1 validation error detected: Value null at 'keyId' failed to satisfy constraint: Member must not be null")
	case !ok, k.state == pendingDeletion && !w.now().Before(k.deletion):
		return nil, refusal("NotFoundException", "Key '%s' does not exist", arn)
	}
	return k, nil
}

// usable returns a key that may encrypt and decrypt.
func (w *World) usable(arn string) (*key, error) {
	k, err := w.find(arn)
	switch {
	case err != nil:
		return nil, err
	case k.state == disabled:
		return nil, refusal("DisabledException", "%s is disabled.", k.arn)
	case k.state == pendingDeletion:
		return nil, refusal("KMSInvalidStateException", "%s is pending deletion.", k.arn)
	}
	return k, nil
}

// checkAlgorithm refuses an algorithm that a symmetric key does not have.
func checkAlgorithm(names ...string) error {
	for _, name := range names {
		if name != "" && name != symmetric {
			return notModelled("the algorithm %s", name)
		}
	}
	return nil
}

func (w *World) generateDataKey(in struct {
	KeyID             string `json:"KeyId"`
	KeySpec           string
	NumberOfBytes     *int
	EncryptionContext map[string]string
}) (any, error) {
	size, ok := map[string]int{"AES_256": 32, "AES_128": 16}[in.KeySpec]
	switch {
	case (in.KeySpec == "") == (in.NumberOfBytes == nil):
		return nil, invalid("Please specify either number of bytes or key spec.")
	case in.NumberOfBytes != nil:
		size = *in.NumberOfBytes
	case !ok:
		return nil, invalid("1 validation error detected: Value '%s' at 'keySpec' failed to satisfy constraint: Member must satisfy enum value set: [AES_256, AES_128]", in.KeySpec)
	}
	if size < 1 || size > maxDataKey {
		return nil, invalid("1 validation error detected: Value '%d' at 'numberOfBytes' failed to satisfy constraint: Member must have value from 1 to 1024", size)
	}
	k, err := w.usable(in.KeyID)
	if err != nil {
		return nil, err
	}
	plaintext := w.random(size)
	blob, err := w.seal(k, plaintext, in.EncryptionContext)
	return map[string]any{"KeyId": k.arn, "CiphertextBlob": blob, "Plaintext": plaintext}, err
}

func (w *World) decrypt(in struct {
	KeyID               string `json:"KeyId"`
	CiphertextBlob      []byte
	EncryptionContext   map[string]string
	EncryptionAlgorithm string
}) (any, error) {
	if err := checkAlgorithm(in.EncryptionAlgorithm); err != nil {
		return nil, err
	}
	plaintext, k, err := w.open(in.CiphertextBlob, in.EncryptionContext, in.KeyID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"KeyId": k.arn, "Plaintext": plaintext, "EncryptionAlgorithm": symmetric}, nil
}

func (w *World) reEncrypt(in struct {
	CiphertextBlob                                            []byte
	SourceKeyID                                               string `json:"SourceKeyId"`
	DestinationKeyID                                          string `json:"DestinationKeyId"`
	SourceEncryptionContext, DestinationEncryptionContext     map[string]string
	SourceEncryptionAlgorithm, DestinationEncryptionAlgorithm string
}) (any, error) {
	if err := checkAlgorithm(in.SourceEncryptionAlgorithm, in.DestinationEncryptionAlgorithm); err != nil {
		return nil, err
	}
	plaintext, from, err := w.open(in.CiphertextBlob, in.SourceEncryptionContext, in.SourceKeyID)
	if err != nil {
		return nil, err
	}
	to, err := w.usable(in.DestinationKeyID)
	if err != nil {
		return nil, err
	}
	blob, err := w.seal(to, plaintext, in.DestinationEncryptionContext)
	return map[string]any{
		"SourceKeyId": from.arn, "KeyId": to.arn, "CiphertextBlob": blob,
		"SourceEncryptionAlgorithm": symmetric, "DestinationEncryptionAlgorithm": symmetric,
	}, err
}

type keyInput struct {
	KeyID string `json:"KeyId"`
}

func (w *World) describeKey(in keyInput) (any, error) {
	k, err := w.find(in.KeyID)
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{
		"Arn": k.arn, "KeyId": k.arn[len(k.arn)-36:], "KeyState": k.state, "Enabled": k.state == enabled,
		"KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": symmetric, "EncryptionAlgorithms": []string{symmetric},
		"KeyManager": "CUSTOMER", "Origin": "AWS_KMS", "MultiRegion": false,
	}
	if k.state == pendingDeletion {
		metadata["DeletionDate"] = k.deletion.Unix()
	}
	return map[string]any{"KeyMetadata": metadata}, nil
}

func (w *World) enableKey(in keyInput) (any, error)  { return w.setState(in.KeyID, enabled) }
func (w *World) disableKey(in keyInput) (any, error) { return w.setState(in.KeyID, disabled) }

func (w *World) setState(arn, state string) (any, error) {
	k, err := w.find(arn)
	if err == nil && k.state == pendingDeletion {
		err = refusal("KMSInvalidStateException", "%s is pending deletion.", k.arn)
	}
	if err != nil {
		return nil, err
	}
	k.state = state
	return map[string]any{}, nil
}

func (w *World) scheduleKeyDeletion(in struct {
	KeyID               string `json:"KeyId"`
	PendingWindowInDays *int
}) (any, error) {
	days := maxWindowDays
	if in.PendingWindowInDays != nil {
		days = *in.PendingWindowInDays
	}
	if days < minWindowDays || days > maxWindowDays {
		return nil, invalid("PendingWindowInDays must be from 7 to 30")
	}
	if _, err := w.setState(in.KeyID, pendingDeletion); err != nil {
		return nil, err
	}
	k := w.keys[in.KeyID]
	k.deletion = w.now().AddDate(0, 0, days)
	return map[string]any{"KeyId": k.arn, "KeyState": k.state, "DeletionDate": k.deletion.Unix(), "PendingWindowInDays": days}, nil
}

func (w *World) cancelKeyDeletion(in keyInput) (any, error) {
	k, err := w.find(in.KeyID)
	if err == nil && k.state != pendingDeletion {
		err = refusal("KMSInvalidStateException", "%s is not pending deletion.", k.arn)
	}
	if err != nil {
		return nil, err
	}
	k.state = disabled
	return map[string]any{"KeyId": k.arn}, nil
}

// A ciphertext is: length of the ARN (2) | ARN | nonce (12) | AES-256-GCM. The ARN and
// the encryption context are its associated data.
const lengthSize = 2

func (w *World) seal(k *key, plaintext []byte, context map[string]string) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	blob := binary.BigEndian.AppendUint16(nil, uint16(len(k.arn))) //nolint:gosec // an ARN is far shorter
	blob = append(append(blob, k.arn...), w.random(nonceSize)...)
	return aead.Seal(blob, blob[len(blob)-nonceSize:], plaintext, associated(k.arn, context)), nil
}

// open decrypts a ciphertext. If the request names a key, it must be the ciphertext's.
func (w *World) open(blob []byte, context map[string]string, named string) ([]byte, *key, error) {
	if len(blob) == 0 {
		return nil, nil, invalid("1 validation error detected: Value at 'ciphertextBlob' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	var asked *key
	if named != "" {
		var err error
		if asked, err = w.usable(named); err != nil {
			return nil, nil, err
		}
	}
	damaged := refusal("InvalidCiphertextException", "")
	if len(blob) < lengthSize {
		return nil, nil, damaged
	}
	length := int(binary.BigEndian.Uint16(blob))
	if len(blob) < lengthSize+length+nonceSize {
		return nil, nil, damaged
	}
	k, ok := w.keys[string(blob[lengthSize:lengthSize+length])]
	if !ok {
		return nil, nil, damaged
	}
	if asked != nil && asked != k {
		return nil, nil, refusal("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
	}
	k, err := w.usable(k.arn)
	if err != nil {
		return nil, nil, err
	}
	aead, err := k.aead()
	if err != nil {
		return nil, nil, err
	}
	nonce, sealed := blob[lengthSize+length:][:nonceSize], blob[lengthSize+length+nonceSize:]
	plaintext, err := aead.Open(nil, nonce, sealed, associated(k.arn, context))
	if err != nil {
		return nil, nil, damaged
	}
	return plaintext, k, nil
}

func (k *key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.material)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// associated returns the associated data: the same for a context in any order.
func associated(arn string, context map[string]string) []byte {
	data := []byte(arn)
	for _, name := range slices.Sorted(maps.Keys(context)) {
		for _, part := range []string{name, context[name]} {
			data = append(binary.BigEndian.AppendUint32(data, uint32(len(part))), part...) //nolint:gosec // bounded by the request
		}
	}
	return data
}
