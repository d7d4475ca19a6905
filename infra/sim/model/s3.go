package model

import (
	"bytes"
	"crypto/md5" //nolint:gosec // S3's ETag is an MD5
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The states of a bucket's versioning; "" is a bucket that never had it.
const (
	versioningOn        = "Enabled"
	versioningSuspended = "Suspended"
)

// nullVersion is the id of a version that was stored without versioning.
const nullVersion = "null"

// maxKeys is the most that one request lists or deletes.
const maxKeys = 1000

type bucket struct {
	name       string
	versioning string
	versions   map[string][]Version // of each key, newest first
	// numbers are those of all versions that there ever were, by key and id, in the
	// order in which they were made.
	numbers map[[2]string]int
	count   int
}

// Version is a version of an object, or a delete marker.
type Version struct {
	ID          string
	Marker      bool
	Body        []byte
	ContentType string
	ETag        string
	Modified    time.Time
}

// current returns the current version. It is false if there is none, or if a delete
// marker is the current version.
func (b *bucket) current(key string) (Version, bool) {
	versions := b.versions[key]
	if len(versions) == 0 || versions[0].Marker {
		return Version{}, false
	}
	return versions[0], true
}

// add makes v the current version. Unless versioning is on, it has the id null and
// replaces the version with that id.
func (b *bucket) add(key string, v Version) {
	b.count++
	b.numbers[[2]string{key, v.ID}] = b.count
	b.versions[key] = append([]Version{v}, without(b.versions[key], v.ID)...)
}

func without(versions []Version, id string) []Version {
	return slices.DeleteFunc(slices.Clone(versions), func(v Version) bool { return v.ID == id })
}

// removed is the result of a deletion.
type removed struct {
	version string // its id, "" on a bucket that never had versioning
	marker  bool   // a delete marker was made or removed
}

// remove deletes the current version, or the version of an id.
func (w *World) remove(key, id string) removed {
	b := &w.bucket
	switch {
	case id != "":
		gone := removed{version: id, marker: slices.ContainsFunc(b.versions[key], func(v Version) bool { return v.ID == id && v.Marker })}
		b.versions[key] = without(b.versions[key], id)
		if len(b.versions[key]) == 0 {
			delete(b.versions, key)
		}
		return gone
	case b.versioning == "":
		delete(b.versions, key)
		return removed{}
	}
	marker := Version{ID: w.versionID(), Marker: true, Modified: w.now()}
	b.add(key, marker)
	return removed{version: marker.ID, marker: true}
}

func (w *World) versionID() string {
	if w.bucket.versioning == versioningOn {
		return w.id(16)
	}
	return nullVersion
}

// s3 applies a request to S3.
func (w *World) s3(r *http.Request, body []byte) *http.Response {
	key, err := w.objectKey(r)
	if r.Header.Get("Authorization") == "" {
		err = &Error{Status: http.StatusForbidden, Code: "AccessDenied", Message: "Access Denied"}
	}
	if err != nil {
		return w.s3Error(r, err)
	}
	query := r.URL.Query()
	query.Del("x-id")
	var do func(*http.Request, string, url.Values, []byte) (*http.Response, *Error)
	switch {
	case key == "" && r.Method == http.MethodGet && query.Has("versions"):
		do = w.listVersions
	case key == "" && r.Method == http.MethodGet && query.Get("list-type") == "2":
		do = w.listObjects
	case key == "" && r.Method == http.MethodPost && query.Has("delete"):
		do = w.deleteObjects
	case key != "" && r.Method == http.MethodPut && len(query) == 0:
		do = w.putObject
	case key != "" && r.Method == http.MethodDelete:
		do = w.deleteObject
	default:
		err = notModelled("%s with the query %s", r.Method, r.URL.RawQuery)
		return w.s3Error(r, err)
	}
	answer, err := do(r, key, query, body)
	if err != nil {
		return w.s3Error(r, err)
	}
	return answer
}

// objectKey returns the key of the object that the request names, "" for the bucket. The
// bucket is in the path or in the name of the host.
func (w *World) objectKey(r *http.Request) (string, *Error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if strings.HasPrefix(r.URL.Host, w.bucket.name+".") {
		name, key = w.bucket.name, strings.TrimPrefix(r.URL.Path, "/")
	}
	if name != w.bucket.name {
		return "", &Error{Status: http.StatusNotFound, Code: "NoSuchBucket", Message: "The specified bucket does not exist"}
	}
	if len(key) > 1024 {
		return "", refusal("KeyTooLongError", "Your key is too long")
	}
	return key, nil
}

// s3Response writes a response of S3. A body is XML.
func (w *World) s3Response(r *http.Request, status int, header http.Header, document any) *http.Response {
	var body []byte
	if document != nil {
		encoded, err := xml.Marshal(document)
		if err != nil {
			panic(fmt.Sprintf("the model's XML: %v", err))
		}
		body = append([]byte(xml.Header), encoded...)
		header.Set("Content-Type", "application/xml")
	}
	header.Set("X-Amz-Request-Id", strings.ToUpper(w.id(8)))
	header.Set("X-Amz-Id-2", base64.StdEncoding.EncodeToString(w.random(24)))
	header.Set("Date", w.now().UTC().Format(http.TimeFormat))
	header.Set("Server", "AmazonS3")
	return response(r, status, header, body)
}

// s3Error writes an error.
func (w *World) s3Error(r *http.Request, e *Error) *http.Response {
	return w.s3Response(r, e.Status, http.Header{}, struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: e.Code, Message: e.Message})
}

func failedPrecondition() *Error {
	return &Error{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Message: "At least one of the pre-conditions you specified did not hold"}
}

func (w *World) putObject(r *http.Request, key string, _ url.Values, body []byte) (*http.Response, *Error) {
	content, err := payload(r, body)
	if err != nil {
		return nil, err
	}
	switch condition := r.Header.Get("If-None-Match"); {
	case r.Header.Get("If-Match") != "" || condition != "" && condition != "*":
		return nil, notModelled("a PutObject on an ETag")
	case condition == "*":
		if _, exists := w.bucket.current(key); exists {
			return nil, failedPrecondition()
		}
	}
	v := w.store(key, content, r.Header.Get("Content-Type"))
	header := http.Header{"Etag": {v.ETag}}
	if w.bucket.versioning == versioningOn {
		header.Set("X-Amz-Version-Id", v.ID)
	}
	return w.s3Response(r, http.StatusOK, header, nil), nil
}

// store adds a version.
func (w *World) store(key string, content []byte, contentType string) Version {
	sum := md5.Sum(content) //nolint:gosec // S3's ETag is an MD5
	v := Version{
		ID: w.versionID(), Body: slices.Clone(content), ContentType: contentType,
		ETag: `"` + hex.EncodeToString(sum[:]) + `"`, Modified: w.now(),
	}
	w.bucket.add(key, v)
	return v
}

// payload returns the content of a body, and checks it against its CRC32, wherever the
// SDK puts that: into a header, or behind the chunks of a body.
func payload(r *http.Request, body []byte) ([]byte, *Error) {
	checksum := r.Header.Get("X-Amz-Checksum-Crc32")
	if strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
		var content []byte
		for {
			line, rest, found := bytes.Cut(body, []byte("\r\n"))
			size, err := strconv.ParseUint(strings.SplitN(string(line), ";", 2)[0], 16, 31)
			if !found || err != nil || uint64(len(rest)) < size {
				return nil, refusal("IncompleteBody", "The request body terminated unexpectedly")
			}
			content = append(content, rest[:size]...)
			body = bytes.TrimPrefix(rest[size:], []byte("\r\n"))
			if size == 0 {
				break
			}
		}
		_, checksum, _ = strings.Cut(strings.TrimSpace(string(body)), "x-amz-checksum-crc32:")
		body = content
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body))
	if checksum != "" && checksum != base64.StdEncoding.EncodeToString(sum) {
		return nil, refusal("BadDigest", "The CRC32 you specified did not match the calculated checksum.")
	}
	return body, nil
}

func noSuchKey() *Error {
	return &Error{Status: http.StatusNotFound, Code: "NoSuchKey", Message: "The specified key does not exist."}
}

// deleteObject deletes the current version, on condition that there is one.
func (w *World) deleteObject(r *http.Request, key string, query url.Values, _ []byte) (*http.Response, *Error) {
	switch condition := r.Header.Get("If-Match"); {
	case query.Has("versionId"), condition != "" && condition != "*":
		return nil, notModelled("a DeleteObject of a version or on an ETag")
	case condition == "*" && len(w.bucket.versions[key]) == 0:
		return nil, noSuchKey()
	case condition == "*" && w.bucket.versions[key][0].Marker:
		return nil, failedPrecondition()
	}
	gone := w.remove(key, "")
	header := http.Header{}
	if gone.version != "" {
		header.Set("X-Amz-Version-Id", gone.version)
	}
	if gone.marker {
		header.Set("X-Amz-Delete-Marker", "true")
	}
	return w.s3Response(r, http.StatusNoContent, header, nil), nil
}

type objectIdentifier struct {
	Key       string
	VersionID string `xml:"VersionId,omitempty"`
}

// deletedObject and deleteError are the results of DeleteObjects for one object.
type deletedObject struct {
	objectIdentifier
	DeleteMarker          bool   `xml:",omitempty"`
	DeleteMarkerVersionID string `xml:"DeleteMarkerVersionId,omitempty"`
}

type deleteError struct {
	objectIdentifier
	Code    string
	Message string
}

func (w *World) deleteObjects(r *http.Request, _ string, _ url.Values, body []byte) (*http.Response, *Error) {
	content, failure := payload(r, body)
	if failure != nil {
		return nil, failure
	}
	if r.Header.Get("Content-Md5") == "" && r.Header.Get("X-Amz-Checksum-Crc32") == "" && r.Header.Get("X-Amz-Trailer") == "" {
		return nil, refusal("InvalidRequest", "Missing required header for this request: Content-MD5 OR x-amz-checksum-*")
	}
	var in struct {
		XMLName xml.Name `xml:"Delete"`
		Object  []struct {
			objectIdentifier
			ETag string
		}
		Quiet bool
	}
	if err := xml.Unmarshal(content, &in); err != nil || len(in.Object) == 0 || len(in.Object) > maxKeys {
		return nil, refusal("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
	}
	if in.Quiet {
		return nil, notModelled("a quiet DeleteObjects")
	}
	var out struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
		Deleted []deletedObject
		Error   []deleteError
	}
	for _, o := range in.Object {
		if o.ETag != "" {
			return nil, notModelled("DeleteObjects on an ETag")
		}
		if o.Key == "" {
			out.Error = append(out.Error, deleteError{o.objectIdentifier, "UserKeyMustBeSpecified", "The request must contain a key."})
			continue
		}
		gone := w.remove(o.Key, o.VersionID)
		done := deletedObject{objectIdentifier: o.objectIdentifier, DeleteMarker: gone.marker}
		if gone.marker {
			done.DeleteMarkerVersionID = gone.version
		}
		out.Deleted = append(out.Deleted, done)
	}
	return w.s3Response(r, http.StatusOK, http.Header{}, out), nil
}

// limitOf reads max-keys.
func limitOf(query url.Values) (int, *Error) {
	if !query.Has("max-keys") {
		return maxKeys, nil
	}
	limit, err := strconv.Atoi(query.Get("max-keys"))
	if err != nil || limit < 0 {
		return 0, refusal("InvalidArgument", "Argument max-keys must be an integer between 0 and 2147483647")
	}
	if limit == 0 {
		return 0, notModelled("a listing of no keys")
	}
	return min(limit, maxKeys), nil
}

// onlyWith refuses parameters of a listing that the model lacks.
func onlyWith(query url.Values, names ...string) *Error {
	for name := range query {
		if !slices.Contains(names, name) {
			return notModelled("a listing with %s", name)
		}
	}
	return nil
}

// keysUnder returns the keys with a prefix in order.
func (b *bucket) keysUnder(prefix string) []string {
	keys := slices.Sorted(maps.Keys(b.versions))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// listedVersion is a version or a delete marker in a listing.
type listedVersion struct {
	XMLName      xml.Name
	Key          string
	VersionID    string `xml:"VersionId"`
	IsLatest     bool
	LastModified string
	ETag         string `xml:",omitempty"`
	Size         *int   `xml:",omitempty"`
	StorageClass string `xml:",omitempty"`
}

// instant writes a time as S3 does.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (w *World) listVersions(r *http.Request, _ string, query url.Values, _ []byte) (*http.Response, *Error) {
	limit, err := limitOf(query)
	if err == nil {
		err = onlyWith(query, "versions", "prefix", "max-keys", "key-marker", "version-id-marker")
	}
	afterKey, afterVersion := query.Get("key-marker"), query.Get("version-id-marker")
	if err == nil && afterVersion != "" && afterKey == "" {
		err = refusal("InvalidArgument", "A version-id marker cannot be specified without a key marker.")
	}
	if err != nil {
		return nil, err
	}
	out := struct {
		XMLName             xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListVersionsResult"`
		Name, Prefix        string
		KeyMarker           string
		VersionIDMarker     string `xml:"VersionIdMarker"`
		NextKeyMarker       string `xml:",omitempty"`
		NextVersionIDMarker string `xml:"NextVersionIdMarker,omitempty"`
		MaxKeys             int
		IsTruncated         bool
		Versions            []listedVersion
	}{
		Name: w.bucket.name, Prefix: query.Get("prefix"), KeyMarker: afterKey, VersionIDMarker: afterVersion, MaxKeys: limit,
	}
	for _, key := range w.bucket.keysUnder(out.Prefix) {
		if key < afterKey || key == afterKey && afterVersion == "" {
			continue
		}
		for i, v := range w.bucket.versions[key] {
			if key == afterKey && w.bucket.numbers[[2]string{key, v.ID}] >= w.bucket.numbers[[2]string{key, afterVersion}] {
				continue // listed before
			}
			if len(out.Versions) == limit {
				last := out.Versions[limit-1]
				out.IsTruncated, out.NextKeyMarker, out.NextVersionIDMarker = true, last.Key, last.VersionID
				return w.s3Response(r, http.StatusOK, http.Header{}, out), nil
			}
			out.Versions = append(out.Versions, listed(key, v, i == 0))
		}
	}
	return w.s3Response(r, http.StatusOK, http.Header{}, out), nil
}

func listed(key string, v Version, latest bool) listedVersion {
	l := listedVersion{XMLName: xml.Name{Local: "DeleteMarker"}, Key: key, VersionID: v.ID, IsLatest: latest, LastModified: instant(v.Modified)}
	if !v.Marker {
		size := len(v.Body)
		l.XMLName.Local, l.ETag, l.Size, l.StorageClass = "Version", v.ETag, &size, "STANDARD"
	}
	return l
}

func (w *World) listObjects(r *http.Request, _ string, query url.Values, _ []byte) (*http.Response, *Error) {
	limit, err := limitOf(query)
	if err == nil {
		err = onlyWith(query, "list-type", "prefix", "max-keys", "continuation-token")
	}
	if err != nil {
		return nil, err
	}
	type content struct {
		Key, LastModified, ETag string
		Size                    int
		StorageClass            string
	}
	out := struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Name, Prefix          string
		KeyCount, MaxKeys     int
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}{Name: w.bucket.name, Prefix: query.Get("prefix"), MaxKeys: limit}
	for _, key := range w.bucket.keysUnder(out.Prefix) {
		v, exists := w.bucket.current(key)
		if !exists || key <= query.Get("continuation-token") {
			continue
		}
		if out.KeyCount == limit {
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[limit-1].Key
			break
		}
		out.Contents = append(out.Contents, content{key, instant(v.Modified), v.ETag, len(v.Body), "STANDARD"})
		out.KeyCount++
	}
	return w.s3Response(r, http.StatusOK, http.Header{}, out), nil
}
