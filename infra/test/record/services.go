package record

import (
	"encoding/json"
	"encoding/xml"
	"maps"
	"slices"
	"strings"
)

// kms returns the call of a request. In an encryption context, only the purpose is kept:
// the rest differs from credential to credential.
func (c Client) kms(q Request) Call {
	var in struct {
		KeyID   string            `json:"KeyId"`
		Context map[string]string `json:"EncryptionContext"`
	}
	_ = json.Unmarshal(q.Body, &in) // a call without a key is refused
	call := c.call("kms:"+q.Operation, in.KeyID)
	for key, value := range in.Context {
		if key != "purpose" {
			value = "*"
		}
		call.set("kms:EncryptionContext:"+key, value)
	}
	call.set("kms:EncryptionContextKeys", slices.Sorted(maps.Keys(in.Context))...)
	return call
}

// s3 returns the calls of a request. DeleteObjects is judged object by object.
func (c Client) s3(q Request) (calls []Call) {
	bucket, object := q.object()
	query := q.URL.Query()
	switch q.Operation {
	case "DeleteObject":
		return []Call{c.deleteObject(bucket, object, query.Get("versionId"), q.Header.Get("If-Match"))}
	case "DeleteObjects":
		var in struct {
			Objects []struct {
				Key     string
				Version string `xml:"VersionId"`
				ETag    string
			} `xml:"Object"`
		}
		_ = xml.Unmarshal(q.Body, &in) // no call is recorded of another body
		for _, o := range in.Objects {
			calls = append(calls, c.deleteObject(bucket, o.Key, o.Version, o.ETag))
		}
		return calls
	case "ListObjectVersions":
		call := c.call("s3:ListBucketVersions", bucket)
		call.set("s3:prefix", shape(query.Get("prefix")))
		call.set("s3:max-keys", query.Get("max-keys"))
		call.set("s3:delimiter", query.Get("delimiter"))
		return []Call{call}
	default:
		return []Call{c.call("s3:"+q.Operation, bucket)}
	}
}

// deleteObject returns s3:DeleteObjectVersion if the request names a version.
func (c Client) deleteObject(bucket, object, version, ifMatch string) Call {
	call := c.call("s3:DeleteObject", bucket)
	if version != "" {
		call.Action = "s3:DeleteObjectVersion"
		call.set("s3:versionid", "*")
	}
	call.Object = shape(object)
	call.set("s3:if-match", ifMatch)
	return call
}

// shape is an object's key with all but the first folder left out.
func shape(key string) string {
	parts := strings.Split(key, "/")
	for i := range parts[1:] {
		parts[i+1] = "*"
	}
	return strings.Join(parts, "/")
}
