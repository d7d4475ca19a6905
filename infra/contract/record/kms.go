package record

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// kms names a call to KMS. In an encryption context, only the purpose is kept: the rest
// differs from credential to credential.
func (r *Recorder) kms(q *http.Request, body []byte) []Call {
	var in struct {
		KeyID   string            `json:"KeyId"`
		Context map[string]string `json:"EncryptionContext"`
	}
	_, operation, _ := strings.Cut(q.Header.Get("X-Amz-Target"), ".")
	if err := json.Unmarshal(body, &in); err != nil {
		return []Call{r.call("kms:"+operation, "unreadable")}
	}
	c := r.call("kms:"+operation, in.KeyID)
	for key, value := range in.Context {
		if key != "purpose" {
			value = "*"
		}
		c.set("kms:EncryptionContext:"+key, value)
	}
	c.set("kms:EncryptionContextKeys", slices.Sorted(maps.Keys(in.Context))...)
	return []Call{c}
}
