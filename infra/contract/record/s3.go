package record

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"
)

// s3 names the calls of a request to S3, addressed by path: /bucket/key.
func (r *Recorder) s3(q *http.Request, body []byte) []Call {
	bucket, object, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
	query := q.URL.Query()
	switch {
	case q.Method == http.MethodDelete && object != "":
		c := r.deleteObject(bucket, object, query.Get("versionId"))
		c.set("s3:if-match", q.Header.Get("If-Match"))
		return []Call{c}
	case q.Method == http.MethodPost && query.Has("delete"):
		return r.deleteObjects(bucket, body)
	case q.Method == http.MethodGet && query.Has("versions"):
		return []Call{r.list("s3:ListBucketVersions", bucket, query)}
	default:
		// IAM does not have this action: a judge of the policies fails.
		return []Call{r.call("s3:"+q.Method+" "+q.URL.RawQuery, bucket)}
	}
}

func (r *Recorder) list(action, bucket string, query url.Values) Call {
	c := r.call(action, bucket)
	c.set("s3:prefix", shape(query.Get("prefix")))
	c.set("s3:max-keys", query.Get("max-keys"))
	c.set("s3:delimiter", query.Get("delimiter"))
	return c
}

// deleteObject is another action if it names a version.
func (r *Recorder) deleteObject(bucket, object, version string) Call {
	action := "s3:DeleteObject"
	if version != "" {
		action = "s3:DeleteObjectVersion"
	}
	c := r.call(action, bucket)
	c.Object = shape(object)
	if version != "" {
		c.set("s3:versionid", "*")
	}
	return c
}

// deleteObjects is judged object by object.
func (r *Recorder) deleteObjects(bucket string, body []byte) []Call {
	var in struct {
		Objects []struct {
			Key     string
			Version string `xml:"VersionId"`
			ETag    string
		} `xml:"Object"`
	}
	if err := xml.Unmarshal(body, &in); err != nil {
		return []Call{r.call("s3:DeleteObjects", "unreadable")}
	}
	var calls []Call
	for _, o := range in.Objects {
		c := r.deleteObject(bucket, o.Key, o.Version)
		c.set("s3:if-match", o.ETag)
		calls = append(calls, c)
	}
	return calls
}
