package kms

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"signalbox.dev/shared/ids"
)

// ServeHTTP serves AWS JSON 1.1, like KMS. The largest request that AWS takes is far smaller
// than the bound here.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", ids.New[string]())
	answer, err := s.call(r, http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil {
		status := http.StatusBadRequest
		known, ok := errors.AsType[*smithy.GenericAPIError](err)
		if !ok {
			status, known = http.StatusInternalServerError, &smithy.GenericAPIError{Code: "KMSInternalException", Message: err.Error()}
		}
		w.WriteHeader(status)
		answer = map[string]string{"__type": known.Code, "message": known.Message}
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client has disconnected
}

// call carries out one operation.
func (s *Service) call(r *http.Request, body io.Reader) (any, error) {
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "TrentService.")
	operation := operations[name]
	if r.Method != http.MethodPost || !ok || operation == nil {
		return nil, fault("UnknownOperationException", "")
	}
	var in request
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields() // they may mean something to AWS
	if err := decoder.Decode(&in); err != nil {
		return nil, fault("SerializationException", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return operation(s, in)
}

// request has the members of the requests of all operations.
type request struct {
	KeyID                        string `json:"KeyId"`
	KeySpec                      string
	CiphertextBlob               []byte
	EncryptionContext            map[string]string
	SourceKeyID                  string `json:"SourceKeyId"`
	DestinationKeyID             string `json:"DestinationKeyId"`
	SourceEncryptionContext      map[string]string
	DestinationEncryptionContext map[string]string
}

var operations = map[string]func(*Service, request) (any, error){
	"CreateKey":       (*Service).create,
	"DescribeKey":     (*Service).describe,
	"EnableKey":       become(enabled),
	"DisableKey":      become(disabled),
	"GenerateDataKey": (*Service).generate,
	"Decrypt":         (*Service).decrypt,
	"ReEncrypt":       (*Service).reEncrypt,
}

// create makes a key.
func (s *Service) create(in request) (any, error) {
	if in.KeySpec != "" && in.KeySpec != "SYMMETRIC_DEFAULT" {
		return nil, fault("UnsupportedOperationException", "This KMS has symmetric keys only")
	}
	material := make([]byte, 32)
	_, _ = rand.Read(material)
	k := key{ID: ids.New[string](), State: enabled, Created: time.Now().UTC(), Material: material}
	return map[string]any{"KeyMetadata": k.metadata()}, s.put(k)
}

func (s *Service) describe(in request) (any, error) {
	k, err := s.find(in.KeyID)
	return map[string]any{"KeyMetadata": k.metadata()}, err
}

// become returns the operation that puts a key into a state.
func become(state string) func(*Service, request) (any, error) {
	return func(s *Service, in request) (any, error) {
		k, err := s.find(in.KeyID)
		if err != nil {
			return nil, err
		}
		k.State = state
		return struct{}{}, s.put(k)
	}
}

func (s *Service) decrypt(in request) (any, error) {
	k, err := s.sealing(in.CiphertextBlob, in.KeyID)
	if err != nil {
		return nil, err
	}
	plaintext, err := k.decrypt(in.CiphertextBlob, in.EncryptionContext)
	return map[string]any{"KeyId": k.arn(), "Plaintext": plaintext, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}, err
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
	return map[string]any{"KeyId": k.arn(), "CiphertextBlob": blob, "Plaintext": dataKey}, err
}

func (s *Service) reEncrypt(in request) (any, error) {
	from, err := s.sealing(in.CiphertextBlob, in.SourceKeyID)
	if err != nil {
		return nil, err
	}
	plaintext, err := from.decrypt(in.CiphertextBlob, in.SourceEncryptionContext)
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
