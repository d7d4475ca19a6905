// Package instant is AWS as a benchmark wants it: every call is answered at once,
// in the process, with what a request that succeeds is answered.
package instant

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// What the answers are about.
const (
	Account   = "0a1b2c3d-0000-4000-8000-000000000001"
	Workspace = "0a1b2c3d-0000-4000-8000-000000000002"
	Job       = "0a1b2c3d-0000-4000-8000-000000000003"
	File      = "file_0123456789abcdef0123456789abcdef"
	Token     = "sbx_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
	KeyARN    = "arn:aws:kms:us-east-1:000000000000:key/0a1b2c3d-0000-4000-8000-000000000004"
)

// services is AWS. It counts what it is asked.
type services struct{ asked atomic.Int64 }

// config makes SDK clients whose calls are answered at once.
func (s *services) config() aws.Config {
	return aws.Config{
		Region:      "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		HTTPClient:  s,
	}
}

// Do implements aws.HTTPClient.
func (s *services) Do(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if r.Method == http.MethodDelete {
		return response(r, http.StatusNoContent, "application/xml", ""), nil
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return response(r, http.StatusOK, "application/x-amz-json-1.0", answer(operation, body)), nil
}

func response(r *http.Request, status int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {contentType}, "X-Amz-Request-Id": {"instant"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// answer is the JSON that an operation is answered with.
func answer(operation string, request []byte) string {
	switch operation {
	case "GetItem":
		return item(request)
	case "UpdateItem":
		if bytes.Contains(request, []byte("limit#")) {
			return `{"Attributes":{"tat":{"N":"1"}}}`
		}
		return `{"Attributes":{"next":{"M":{"openai":{"N":"1"}}}}}`
	case "GenerateDataKey":
		return `{"KeyId":"` + keyOf(request) + `","CiphertextBlob":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","Plaintext":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}`
	default:
		return `{}`
	}
}

// keyOf is the key that a request to KMS names; KMS names it in its answer.
func keyOf(request []byte) string {
	var asked struct {
		KeyID string `json:"KeyId"`
	}
	_ = json.Unmarshal(request, &asked) // the SDK wrote it
	return asked.KeyID
}

// item is the item asked for, under its own key.
func item(request []byte) string {
	var asked struct{ Key json.RawMessage }
	_ = json.Unmarshal(request, &asked) // the SDK wrote it
	key := string(asked.Key[1 : len(asked.Key)-1])
	switch {
	case bytes.Contains(request, []byte("idem#")):
		return `{}`
	case bytes.Contains(request, []byte("job#")):
		return `{"Item":{` + key + `,"v":{"N":"1"},"account":{"S":"` + Account + `"},"status":{"S":"running"},"created_at":{"N":"1"},"started_at":{"N":"2"}}}`
	case bytes.Contains(request, []byte("workspace#")):
		return `{"Item":{` + key + `,"v":{"N":"1"},"account":{"S":"` + Account + `"},"name":{"S":"w"},"created_at":{"N":"1"}}}`
	default:
		return `{"Item":{` + key + `,"v":{"N":"1"},"account":{"S":"` + Account + `"},"kind":{"S":"management"},"name":{"S":"k"},"disabled":{"BOOL":false},"created_at":{"N":"1"}}}`
	}
}
