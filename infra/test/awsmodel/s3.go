package awsmodel

import (
	"cmp"
	"crypto/md5" //nolint:gosec // S3's own ETag
	"crypto/rand"
	"encoding/xml"
	"errors"
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

	"signalbox.dev/infra/test/record"
)

// maxKeys is the most that one request lists or deletes.
const maxKeys = 1000

type bucket struct {
	name       string
	versioning string               // "" if it was never set
	versions   map[string][]Version // of each key, newest first
	// numbers number all versions ever made, by key and id, in the order of their
	// creation.
	numbers map[[2]string]int
	uploads map[upload]bool // uploads in parts that were begun and not completed
}

// upload is an upload in parts.
type upload struct{ key, id string }

// Version is a version of an object, or a delete marker.
type Version struct {
	ID       string
	Marker   bool
	Body     []byte
	Modified time.Time
}

// exists reports whether the key has a current version that is not a delete marker.
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

// remove deletes the current version, or the version with an id. It returns the new
// delete marker, or the removed version.
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

// doS3 applies a request to S3. The response is a header, or a document in XML.
func (w *World) doS3(r *http.Request, q record.Request) *http.Response {
	var out any
	do, err := readS3(r, q)
	if name, _, _ := strings.Cut(r.URL.Host, "."); err == nil && name != w.bucket.name {
		err = &Error{Status: http.StatusNotFound, Code: "NoSuchBucket", Message: "The specified bucket does not exist"}
	}
	if err == nil {
		out, err = do(&w.bucket)
	}
	if known, failed := errors.AsType[*Error](err); failed {
		return Answer(r, known)
	}
	header, ok := out.(http.Header)
	if !ok {
		return xmlResponse(r, http.StatusOK, out)
	}
	header.Set("X-Amz-Request-Id", rand.Text())
	return Response(r, map[string]int{http.MethodPut: http.StatusOK, http.MethodDelete: http.StatusNoContent}[r.Method], header, nil)
}

// readS3 reads a request to S3.
func readS3(r *http.Request, q record.Request) (do func(*bucket) (any, error), err error) {
	asked, key := r.URL.Query(), strings.TrimPrefix(r.URL.Path, "/")
	condition := r.Header.Get("If-None-Match") + r.Header.Get("If-Match")
	switch q.Operation {
	case "ListObjectVersions":
		do = listVersions{asked}.applyTo
	case "ListObjectsV2":
		do = listObjects{asked}.applyTo
	case "ListMultipartUploads", "CreateMultipartUpload":
		do = uploads{r.Method, key, asked}.applyTo
	case "AbortMultipartUpload":
		do = abortUpload{key, asked.Get("uploadId")}.applyTo
	case "DeleteObjects":
		var deletes deleteObjects
		err = xml.Unmarshal(q.Body, &deletes)
		do = deletes.applyTo
	case "PutObject":
		do = putObject{key, condition, q.Body}.applyTo
	case "DeleteObject":
		do = deleteObject{key, condition}.applyTo
	default:
		err = errors.New("the operation")
	}
	if condition != "" && condition != "*" || r.Header.Get("Content-Encoding") != "" || q.Operation == "DeleteObject" && asked.Has("versionId") {
		err = errors.New("a condition on an ETag, a body in chunks, or a version")
	}
	if err != nil {
		return nil, notModelled("%s %s: %v", r.Method, r.URL, err)
	}
	return do, nil
}

func xmlResponse(r *http.Request, status int, document any) *http.Response {
	body, err := xml.Marshal(document)
	if err != nil {
		panic(fmt.Sprintf("the model's XML: %v", err))
	}
	return Response(r, status, http.Header{"Content-Type": {"application/xml"}, "X-Amz-Request-Id": {rand.Text()}}, body)
}

func failedPrecondition() *Error {
	return &Error{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Message: "At least one of the pre-conditions you specified did not hold"}
}

// putObject stores an object, perhaps on condition that there is none.
type putObject struct {
	key, condition string
	content        []byte
}

func (in putObject) applyTo(b *bucket) (any, error) {
	if in.condition != "" && b.exists(in.key) {
		return nil, failedPrecondition()
	}
	v := b.add(in.key, Version{Body: slices.Clone(in.content)})
	header := http.Header{"Etag": {fmt.Sprintf(`"%x"`, md5.Sum(in.content))}} //nolint:gosec // S3's own ETag
	if b.versioning == "Enabled" {
		header.Set("X-Amz-Version-Id", v.ID)
	}
	return header, nil
}

// deleteObject deletes the current version, perhaps on condition that there is one.
type deleteObject struct{ key, condition string }

func (in deleteObject) applyTo(b *bucket) (any, error) {
	if in.condition != "" && !b.exists(in.key) {
		if len(b.versions[in.key]) == 0 {
			return nil, &Error{Status: http.StatusNotFound, Code: "NoSuchKey", Message: "The specified key does not exist."}
		}
		return nil, failedPrecondition()
	}
	gone, header := b.remove(in.key, ""), http.Header{}
	if gone.Marker {
		header.Set("X-Amz-Version-Id", gone.ID)
		header.Set("X-Amz-Delete-Marker", "true")
	}
	return header, nil
}

// deleteObjects deletes versions. It is the body of DeleteObjects.
type deleteObjects struct {
	XMLName xml.Name `xml:"Delete"`
	Objects []struct {
		Key, VersionId string //nolint:staticcheck // S3's own spelling
	} `xml:"Object"`
}

func (in deleteObjects) applyTo(b *bucket) (any, error) {
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

// uploads begins an upload in parts, or lists them.
type uploads struct {
	method, key string
	query       url.Values
}

func (in uploads) applyTo(b *bucket) (any, error) {
	if in.method == http.MethodPost {
		begun := upload{in.key, rand.Text()}
		b.uploads[begun] = true
		return struct {
			XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
			Bucket, Key, UploadId string   //nolint:staticcheck // S3's own spelling
		}{Bucket: b.name, Key: begun.key, UploadId: begun.id}, nil
	}
	out := struct {
		XMLName     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
		Bucket      string
		IsTruncated bool
		Upload      []types.MultipartUpload
	}{Bucket: b.name}
	for u := range b.uploads {
		if strings.HasPrefix(u.key, in.query.Get("prefix")) {
			out.Upload = append(out.Upload, types.MultipartUpload{Key: &u.key, UploadId: &u.id})
		}
	}
	slices.SortFunc(out.Upload, func(x, y types.MultipartUpload) int { return strings.Compare(*x.Key+*x.UploadId, *y.Key+*y.UploadId) })
	return out, nil
}

// abortUpload ends an upload in parts.
type abortUpload upload

func (in abortUpload) applyTo(b *bucket) (any, error) {
	if !b.uploads[upload(in)] {
		return nil, &Error{Status: http.StatusNotFound, Code: "NoSuchUpload", Message: "The specified upload does not exist."}
	}
	delete(b.uploads, upload(in))
	return http.Header{}, nil
}

// listObjects lists what can be read. Its continuation token is a key.
type listObjects struct{ query url.Values }

func (in listObjects) applyTo(b *bucket) (any, error) {
	limit, err := strconv.Atoi(cmp.Or(in.query.Get("max-keys"), strconv.Itoa(maxKeys)))
	out := struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Name                  string
		NextContinuationToken string `xml:",omitempty"`
		IsTruncated           bool
		Contents              []types.Object
	}{Name: b.name}
	for _, key := range slices.Sorted(maps.Keys(b.versions)) {
		v := b.versions[key][0]
		if v.Marker || !strings.HasPrefix(key, in.query.Get("prefix")) || key <= in.query.Get("continuation-token") {
			continue
		}
		if out.IsTruncated = len(out.Contents) == limit; out.IsTruncated {
			out.NextContinuationToken = *out.Contents[limit-1].Key
			break
		}
		out.Contents = append(out.Contents, types.Object{Key: &key, LastModified: &v.Modified, Size: aws.Int64(int64(len(v.Body)))})
	}
	return out, err
}

// listVersions lists versions and delete markers.
type listVersions struct{ query url.Values }

func (in listVersions) applyTo(b *bucket) (any, error) {
	limit, err := in.limit()
	if err != nil {
		return nil, err
	}
	out := versionList{Name: b.name}
	for _, key := range slices.Sorted(maps.Keys(b.versions)) {
		for i, v := range b.versions[key] {
			if !in.lists(b, key, v) {
				continue
			}
			if len(out.Versions)+len(out.DeleteMarkers) == limit {
				out.IsTruncated = true
				return out, nil
			}
			out.add(key, v, i == 0)
		}
	}
	out.NextKeyMarker, out.NextVersionIdMarker = "", ""
	return out, nil
}

// limit is how many versions the request lists at most.
func (in listVersions) limit() (int, error) {
	for name := range in.query {
		if !slices.Contains([]string{"versions", "prefix", "max-keys", "key-marker", "version-id-marker"}, name) {
			return 0, notModelled("a listing with %s", name)
		}
	}
	asked, err := strconv.Atoi(cmp.Or(in.query.Get("max-keys"), strconv.Itoa(maxKeys)))
	if err != nil || asked < 1 {
		return 0, notModelled("a listing of no keys")
	}
	return min(asked, maxKeys), nil
}

// lists reports whether the version has the prefix and comes after both markers.
func (in listVersions) lists(b *bucket, key string, v Version) bool {
	afterKey, afterVersion := in.query.Get("key-marker"), in.query.Get("version-id-marker")
	if !strings.HasPrefix(key, in.query.Get("prefix")) || key < afterKey {
		return false
	}
	return key > afterKey || afterVersion != "" && b.numbers[[2]string{key, v.ID}] < b.numbers[[2]string{key, afterVersion}]
}

// versionList is a page of versions and delete markers.
type versionList struct {
	XMLName             xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListVersionsResult"`
	Name                string
	NextKeyMarker       string `xml:",omitempty"`
	NextVersionIdMarker string `xml:",omitempty"` //nolint:staticcheck // S3's own spelling
	IsTruncated         bool
	Versions            []types.ObjectVersion     `xml:"Version"`
	DeleteMarkers       []types.DeleteMarkerEntry `xml:"DeleteMarker"`
}

func (l *versionList) add(key string, v Version, latest bool) {
	l.NextKeyMarker, l.NextVersionIdMarker = key, v.ID
	if v.Marker {
		l.DeleteMarkers = append(l.DeleteMarkers, types.DeleteMarkerEntry{Key: &key, VersionId: &v.ID, IsLatest: &latest, LastModified: &v.Modified})
		return
	}
	l.Versions = append(l.Versions, types.ObjectVersion{
		Key: &key, VersionId: &v.ID, IsLatest: &latest, LastModified: &v.Modified, Size: aws.Int64(int64(len(v.Body))),
	})
}
