package kms

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// maxRequest bounds a request; the largest that AWS takes is far smaller.
const maxRequest = 64 << 10

// ServeHTTP serves AWS JSON 1.1, like KMS.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", uuid.NewString())
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "TrentService.")
	if r.Method != http.MethodPost || !ok {
		refuse(w, fault("UnknownOperationException", ""))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, fault("SerializationException", "unreadable request"))
		return
	}
	answer, err := s.call(name, body)
	if err != nil {
		refuse(w, err)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client has disconnected
}

// refuse writes an error in the form that the SDKs read.
func refuse(w http.ResponseWriter, err error) {
	status, known := http.StatusBadRequest, (*awsError)(nil)
	if !errors.As(err, &known) {
		status, known = http.StatusInternalServerError, &awsError{code: "KMSInternalException", message: err.Error()}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": known.code, "message": known.message})
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

// call carries out one operation.
func (s *Service) call(name string, body []byte) (any, error) {
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fault("SerializationException", "malformed request")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case "CreateKey":
		return s.create(in)
	case "EnableKey", "DisableKey", "ScheduleKeyDeletion", "CancelKeyDeletion":
		return s.change(name, in)
	case "DescribeKey":
		k, err := s.find(in.KeyID)
		if err != nil {
			return nil, err
		}
		return map[string]any{"KeyMetadata": k.metadata()}, nil
	case "GenerateDataKey":
		return s.generate(in)
	case "Decrypt":
		return s.decrypt(in)
	case "ReEncrypt":
		return s.reEncrypt(in)
	default:
		return nil, fault("UnknownOperationException", "")
	}
}
