package model

import (
	"crypto/md5" //nolint:gosec // S3's ETag is an MD5
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// maxKeys is the most that one request lists or deletes.
const maxKeys = 1000

type bucket struct {
	name       string
	versioning string               // "" for a bucket that never had it
	versions   map[string][]Version // of each key, newest first
	// numbers are those of all versions that there ever were, by key and id, in the
	// order in which they were made.
	numbers map[[2]string]int
}

// Version is a version of an object, or a delete marker.
type Version struct {
	ID       string
	Marker   bool
	Body     []byte
	Modified time.Time
}

func (v Version) etag() string {
	return fmt.Sprintf(`"%x"`, md5.Sum(v.Body)) //nolint:gosec // S3's ETag is an MD5
}

// exists reports whether the key has a current version that is no delete marker.
func (b *bucket) exists(key string) bool {
	versions := b.versions[key]
	return len(versions) > 0 && !versions[0].Marker
}

// add makes v the current version. Unless versioning is on, it has the id null and
// replaces the version with that id.
func (b *bucket) add(key string, v Version) Version {
	v.ID, v.Modified = "null", time.Now()
	if b.versioning == "Enabled" {
		v.ID = rand.Text()
	}
	b.numbers[[2]string{key, v.ID}] = len(b.numbers) + 1
	b.versions[key] = append([]Version{v}, without(b.versions[key], v.ID)...)
	return v
}

func without(versions []Version, id string) []Version {
	return slices.DeleteFunc(slices.Clone(versions), func(v Version) bool { return v.ID == id })
}

// remove deletes the current version, or the version of an id. It returns the delete
// marker that was made, or the version that was removed.
func (b *bucket) remove(key, id string) Version {
	if id == "" && b.versioning != "" {
		return b.add(key, Version{Marker: true})
	}
	gone := Version{ID: id}
	for _, v := range b.versions[key] {
		if v.ID == id {
			gone = v
		}
	}
	b.versions[key] = without(b.versions[key], id)
	if len(b.versions[key]) == 0 || id == "" {
		delete(b.versions, key)
	}
	return gone
}

// s3 applies a request to S3.
func (w *World) s3(r *http.Request, body []byte) *http.Response {
	b, key, query := &w.bucket, strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query()
	condition := r.Header.Get("If-None-Match") + r.Header.Get("If-Match")
	var (
		out    any
		status = http.StatusOK
		header = http.Header{}
		err    *Error
	)
	switch {
	case !strings.HasPrefix(r.URL.Host, b.name+"."):
		err = &Error{Status: http.StatusNotFound, Code: "NoSuchBucket", Message: "The specified bucket does not exist"}
	case condition != "" && condition != "*" || r.Header.Get("Content-Encoding") != "":
		err = notModelled("a condition on an ETag, or a body in chunks")
	case key == "" && r.Method == http.MethodGet && query.Has("versions"):
		out, err = b.list(query)
	case key == "" && r.Method == http.MethodPost && query.Has("delete"):
		out, err = b.deleteObjects(body)
	case key != "" && r.Method == http.MethodPut && !query.Has("versionId"):
		header, err = b.putObject(key, condition, body)
	case key != "" && r.Method == http.MethodDelete && !query.Has("versionId"):
		status = http.StatusNoContent
		header, err = b.deleteObject(key, condition)
	default:
		err = notModelled("%s with the query %s", r.Method, r.URL.RawQuery)
	}
	if err != nil {
		return Answer(r, err)
	}
	return s3Response(r, status, header, out)
}

// s3Response writes a response of S3. A body is XML.
func s3Response(r *http.Request, status int, header http.Header, document any) *http.Response {
	var body []byte
	if document != nil {
		var err error
		if body, err = xml.Marshal(document); err != nil {
			panic(fmt.Sprintf("the model's XML: %v", err))
		}
		header.Set("Content-Type", "application/xml")
	}
	header.Set("X-Amz-Request-Id", rand.Text())
	return Response(r, status, header, body)
}

func failedPrecondition() *Error {
	return &Error{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Message: "At least one of the pre-conditions you specified did not hold"}
}

// putObject stores an object, on condition that there is none.
func (b *bucket) putObject(key, condition string, content []byte) (http.Header, *Error) {
	if condition != "" && b.exists(key) {
		return nil, failedPrecondition()
	}
	v := b.add(key, Version{Body: slices.Clone(content)})
	header := http.Header{"Etag": {v.etag()}}
	if b.versioning == "Enabled" {
		header.Set("X-Amz-Version-Id", v.ID)
	}
	return header, nil
}

// deleteObject deletes the current version, on condition that there is one.
func (b *bucket) deleteObject(key, condition string) (http.Header, *Error) {
	if condition != "" && !b.exists(key) {
		if len(b.versions[key]) == 0 {
			return nil, &Error{Status: http.StatusNotFound, Code: "NoSuchKey", Message: "The specified key does not exist."}
		}
		return nil, failedPrecondition()
	}
	gone, header := b.remove(key, ""), http.Header{}
	if gone.Marker {
		header.Set("X-Amz-Version-Id", gone.ID)
		header.Set("X-Amz-Delete-Marker", "true")
	}
	return header, nil
}

// deleteInput is the body of DeleteObjects.
type deleteInput struct {
	XMLName xml.Name `xml:"Delete"`
	Objects []struct {
		Key, VersionId string //nolint:staticcheck // S3's own spelling
	} `xml:"Object"`
}

func (b *bucket) deleteObjects(body []byte) (any, *Error) {
	var in deleteInput
	if err := xml.Unmarshal(body, &in); err != nil || len(in.Objects) == 0 || len(in.Objects) > maxKeys {
		return nil, refusal("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
	}
	var out struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
		Deleted []types.DeletedObject
	}
	for _, o := range in.Objects {
		gone, done := b.remove(o.Key, o.VersionId), types.DeletedObject{Key: aws.String(o.Key)}
		if o.VersionId != "" {
			done.VersionId = aws.String(o.VersionId)
		}
		if gone.Marker {
			done.DeleteMarker, done.DeleteMarkerVersionId = aws.Bool(true), aws.String(gone.ID)
		}
		out.Deleted = append(out.Deleted, done)
	}
	return out, nil
}

// list lists versions and delete markers.
func (b *bucket) list(query url.Values) (any, *Error) {
	for name := range query {
		if !slices.Contains([]string{"versions", "prefix", "max-keys", "key-marker", "version-id-marker"}, name) {
			return nil, notModelled("a listing with %s", name)
		}
	}
	limit := maxKeys
	if query.Has("max-keys") {
		asked, err := strconv.Atoi(query.Get("max-keys"))
		if err != nil || asked < 1 {
			return nil, notModelled("a listing of no keys")
		}
		limit = min(asked, maxKeys)
	}
	var out struct {
		XMLName             xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListVersionsResult"`
		Name                string
		NextKeyMarker       string `xml:",omitempty"`
		NextVersionIdMarker string `xml:",omitempty"` //nolint:staticcheck // S3's own spelling
		IsTruncated         bool
		Versions            []types.ObjectVersion     `xml:"Version"`
		DeleteMarkers       []types.DeleteMarkerEntry `xml:"DeleteMarker"`
	}
	out.Name = b.name
	afterKey, afterVersion := query.Get("key-marker"), query.Get("version-id-marker")
	for _, key := range b.keys(query.Get("prefix")) {
		if key < afterKey || key == afterKey && afterVersion == "" {
			continue
		}
		for i, v := range b.versions[key] {
			if key == afterKey && b.numbers[[2]string{key, v.ID}] >= b.numbers[[2]string{key, afterVersion}] {
				continue // listed before
			}
			if len(out.Versions)+len(out.DeleteMarkers) == limit {
				out.IsTruncated = true
				return out, nil
			}
			latest := aws.Bool(i == 0)
			out.NextKeyMarker, out.NextVersionIdMarker = key, v.ID
			if v.Marker {
				out.DeleteMarkers = append(out.DeleteMarkers, types.DeleteMarkerEntry{Key: &key, VersionId: &v.ID, IsLatest: latest, LastModified: &v.Modified})
			} else {
				out.Versions = append(out.Versions, types.ObjectVersion{
					Key: &key, VersionId: &v.ID, IsLatest: latest, LastModified: &v.Modified, ETag: aws.String(v.etag()), Size: aws.Int64(int64(len(v.Body))),
				})
			}
		}
	}
	out.NextKeyMarker, out.NextVersionIdMarker = "", ""
	return out, nil
}

// keys returns the keys with a prefix in order.
func (b *bucket) keys(prefix string) []string {
	keys := slices.Sorted(maps.Keys(b.versions))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// Objects returns the keys of all objects that have versions or delete markers.
func (w *World) Objects() []string { return w.bucket.keys("") }

// Versions returns the versions and delete markers of a key, newest first.
func (w *World) Versions(key string) []Version { return slices.Clone(w.bucket.versions[key]) }
