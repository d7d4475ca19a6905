package record

import (
	"encoding/json"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// kms returns the call of a request. In an encryption context, only the purpose is kept:
// the rest differs from credential to credential.
func (r recorder) kms(operation string, body []byte) Call {
	var in struct {
		KeyID   string            `json:"KeyId"`
		Context map[string]string `json:"EncryptionContext"`
	}
	_ = json.Unmarshal(body, &in) // a call without a key is refused
	c := r.call("kms:"+operation, in.KeyID)
	for key, value := range in.Context {
		if key != "purpose" {
			value = "*"
		}
		c.set("kms:EncryptionContext:"+key, value)
	}
	c.set("kms:EncryptionContextKeys", slices.Sorted(maps.Keys(in.Context))...)
	return c
}

// s3 returns the calls of a request, addressed by path: /bucket/key. DeleteObjects is
// judged object by object.
func (r recorder) s3(q *http.Request, body []byte) (calls []Call) {
	bucket, object, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
	query := q.URL.Query()
	switch {
	case q.Method == http.MethodDelete && object != "":
		return []Call{r.deleteObject(bucket, object, query.Get("versionId"), q.Header.Get("If-Match"))}
	case q.Method == http.MethodPost && query.Has("delete"):
		var in struct {
			Objects []struct {
				Key     string
				Version string `xml:"VersionId"`
				ETag    string
			} `xml:"Object"`
		}
		if xml.Unmarshal(body, &in) != nil {
			break
		}
		for _, o := range in.Objects {
			calls = append(calls, r.deleteObject(bucket, o.Key, o.Version, o.ETag))
		}
		return calls
	case q.Method == http.MethodGet && query.Has("versions"):
		c := r.call("s3:ListBucketVersions", bucket)
		c.set("s3:prefix", shape(query.Get("prefix")))
		c.set("s3:max-keys", query.Get("max-keys"))
		c.set("s3:delimiter", query.Get("delimiter"))
		return []Call{c}
	}
	// IAM has no such action, so the check of the policies fails.
	return []Call{r.call("s3:"+q.Method+" "+q.URL.RawQuery, bucket)}
}

// deleteObject returns s3:DeleteObjectVersion if the request names a version.
func (r recorder) deleteObject(bucket, object, version, ifMatch string) Call {
	c := r.call("s3:DeleteObject", bucket)
	if version != "" {
		c.Action = "s3:DeleteObjectVersion"
		c.set("s3:versionid", "*")
	}
	c.Object = shape(object)
	c.set("s3:if-match", ifMatch)
	return c
}

// shape is an object's key with all but the first folder left out.
func shape(key string) string {
	parts := strings.Split(key, "/")
	for i := range parts[1:] {
		parts[i+1] = "*"
	}
	return strings.Join(parts, "/")
}
