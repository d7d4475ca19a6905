// Package awsmodel is an executable model of the parts of DynamoDB and S3 that the functions and
// commands use, beside the local server's KMS. A World applies the requests that the AWS SDK
// sends, one at a time, and returns the responses that AWS documents. It needs no network
// and no process, so a test can run in virtual time.
//
// The model assumes that a request is well formed: the packages' own tests make the
// same requests on real engines. If a request fails because of stored data, the model
// returns AWS's error. If the model lacks a feature, it returns NotModelled with status
// 501. It has no access policies, no secondary indexes and no expiry of
// items. Its reads are always consistent, because a test decides which calls are
// stale, throttled, in conflict or lost.
//
// Only tests import it. `make cases ENGINES=1` compares it with real engines.
package awsmodel

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"time"

	"signalbox.dev/infra/local/kms"
	"signalbox.dev/infra/test/record"
)

// Config describes a new World.
type Config struct {
	// Tables are the names of the tables. The key attributes of each are pk and perhaps sk,
	// both strings.
	Tables []string
	// Bucket is the name of the bucket, and Versioning its state: "", "Enabled" or
	// "Suspended".
	Bucket     string
	Versioning string
	// Keys are the ARNs of the KMS keys.
	Keys []string
}

// World is the state of an AWS account: tables, a bucket and keys. Only Do is for concurrent use.
// Its clock is time.Now, and its ids come from crypto/rand.
type World struct {
	// Units are those that each table has charged since the World was made.
	Units map[string]Units

	mu     sync.Mutex
	tables map[string]table
	tokens map[string][]map[string]input // tokens of the applied transactions
	bucket bucket
	kms    *kms.Service
}

// New returns a World without items and objects.
func New(c Config) *World {
	w := &World{
		tables: map[string]table{}, tokens: map[string][]map[string]input{}, kms: kms.New(c.Keys...), Units: map[string]Units{},
		bucket: bucket{name: c.Bucket, versioning: c.Versioning, versions: map[string][]Version{}, numbers: map[[2]string]int{}, uploads: map[upload]bool{}},
	}
	for _, name := range c.Tables {
		w.tables[name] = table{}
	}
	return w
}

// Clone returns a World with the same items and objects. A change of one does not change the
// other.
func (w *World) Clone() *World {
	c := &World{tables: map[string]table{}, tokens: maps.Clone(w.tokens), bucket: w.bucket, kms: w.kms, Units: map[string]Units{}}
	for name, t := range w.tables {
		c.tables[name] = maps.Clone(t)
	}
	c.bucket.versions, c.bucket.numbers, c.bucket.uploads = maps.Clone(w.bucket.versions), maps.Clone(w.bucket.numbers), maps.Clone(w.bucket.uploads)
	return c
}

// Changes describes each item and object, in JSON, that an earlier clone lacks or has otherwise,
// the keys of those that it has alone, and changed uploads. They have no order.
func (w *World) Changes(since *World) (all []string) {
	note := func(what ...any) {
		text, err := json.Marshal(what)
		if err != nil {
			panic(fmt.Sprintf("the model's JSON: %v", err))
		}
		all = append(all, string(text))
	}
	for name, t := range w.tables {
		before := since.tables[name]
		for key, item := range t { // items are never changed in place
			if reflect.ValueOf(item).Pointer() != reflect.ValueOf(before[key]).Pointer() {
				note(name, item)
			}
		}
		for key := range before {
			if t[key] == nil {
				note(name, key.pk, key.sk)
			}
		}
	}
	for key, versions := range w.bucket.versions {
		if !reflect.DeepEqual(versions, since.bucket.versions[key]) {
			note(key, versions)
		}
	}
	for key := range since.bucket.versions {
		if w.bucket.versions[key] == nil {
			note(key)
		}
	}
	if !maps.Equal(w.bucket.uploads, since.bucket.uploads) {
		note(fmt.Sprint(w.bucket.uploads)) // in the order of its keys
	}
	return all
}

// object is a response in the JSON protocol.
type object = map[string]any

// operation is the input of an operation of DynamoDB. It takes effect completely or not at all.
type operation interface {
	apply(*World) (any, error)
}

// operations make the inputs of DynamoDB.
var operations = map[string]func() operation{
	"GetItem":            func() operation { return &getItem{} },
	"PutItem":            func() operation { return &write{kind: "Put"} },
	"UpdateItem":         func() operation { return &write{kind: "Update"} },
	"DeleteItem":         func() operation { return &write{kind: "Delete"} },
	"Query":              func() operation { return &query{} },
	"Scan":               func() operation { return &scan{} },
	"BatchGetItem":       func() operation { return &batchGetItem{} },
	"BatchWriteItem":     func() operation { return &batchWriteItem{} },
	"TransactWriteItems": func() operation { return &transactWriteItems{} },
	"DescribeTable":      func() operation { return &describeTable{} },
}

// read reads a request to DynamoDB. AWS ignores unknown members. The model must not, because
// AWS may know a member that the model does not.
func read(q record.Request) (operation, error) {
	empty := operations[q.Operation]
	if empty == nil {
		return nil, notModelled("the operation %s", q.Operation)
	}
	in := empty()
	decoder := json.NewDecoder(bytes.NewReader(q.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(in); err != nil {
		return nil, notModelled("a request with %v", err)
	}
	return in, checkValues(q.Body)
}

// Do implements aws.HTTPClient.
func (w *World) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	q, err := record.Read(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	response := w.answer(r, q)
	response.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return response, nil
}

// answer applies one request of the SDK.
func (w *World) answer(r *http.Request, q record.Request) *http.Response {
	switch q.Service {
	case "KMS":
		return w.doKMS(r, q.Body)
	case "S3":
		return w.doS3(r, q)
	}
	var out any
	in, err := read(q)
	if err == nil {
		out, err = in.apply(w)
	}
	if known, failed := errors.AsType[*Error](err); failed {
		return Answer(r, known)
	}
	return respond(r, http.StatusOK, out)
}

// doKMS asks the local server's KMS: its keys are the model's.
func (w *World) doKMS(r *http.Request, body []byte) *http.Response {
	asked, answer := r.Clone(r.Context()), httptest.NewRecorder()
	asked.Body = io.NopCloser(bytes.NewReader(body))
	w.kms.ServeHTTP(answer, asked)
	return Response(r, answer.Code, answer.Header(), answer.Body.Bytes())
}

// Answer returns an error in the form of the request's service.
func Answer(r *http.Request, e *Error) *http.Response {
	code, target := e.Code, r.Header.Get("X-Amz-Target")
	if target == "" {
		return xmlResponse(r, e.Status, struct {
			XMLName       xml.Name `xml:"Error"`
			Code, Message string
		}{Code: e.Code, Message: e.Message})
	}
	if strings.HasPrefix(target, dynamoDBTarget) {
		code = "com.amazonaws.dynamodb.v20120810#" + code
	}
	out := object{"__type": code, "message": e.Message}
	maps.Copy(out, e.Members)
	return respond(r, e.Status, out)
}

// respond writes a response in the JSON protocol of DynamoDB and KMS.
func respond(r *http.Request, status int, out any) *http.Response {
	body, err := json.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("the model's JSON: %v", err))
	}
	return Response(r, status, http.Header{
		"X-Amzn-Requestid": {rand.Text()}, "Content-Type": {r.Header.Get("Content-Type")}, "X-Amz-Crc32": {fmt.Sprint(crc32.ChecksumIEEE(body))},
	}, body)
}

// Response is a response with this header and body.
func Response(r *http.Request, status int, header http.Header, body []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// Error is an error that AWS returns.
type Error struct {
	Status        int
	Code, Message string
	// Members are further members of DynamoDB's errors: the Item for which a condition
	// failed, or the CancellationReasons of a transaction.
	Members map[string]any
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func refusal(code, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: code, Message: fmt.Sprintf(format, args...)}
}

const invalidCode = "ValidationException"

func invalid(text string) *Error { return refusal(invalidCode, "%s", text) }

// notModelled is the error for features that AWS has and the model lacks.
func notModelled(format string, args ...any) *Error {
	return &Error{Status: http.StatusNotImplemented, Code: "NotModelled", Message: "the model lacks " + fmt.Sprintf(format, args...)}
}
