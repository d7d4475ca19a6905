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
	mu     sync.Mutex
	tables map[string]table
	tokens map[string][]map[string]input // tokens of the applied transactions
	bucket bucket
	kms    *kms.Service
}

// New returns a World without items and objects.
func New(c Config) *World {
	w := &World{
		tables: map[string]table{}, tokens: map[string][]map[string]input{}, kms: kms.New(c.Keys...),
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
	c := &World{tables: map[string]table{}, tokens: maps.Clone(w.tokens), bucket: w.bucket, kms: w.kms}
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

// operation is the input of an operation that the model has.
type operation interface {
	// apply makes the operation. It takes effect completely or not at all. The response of
	// an operation of S3 is a header, or a document in XML.
	apply(*World) (any, error)
}

// operations make the inputs of DynamoDB.
var operations = map[string]func() operation{
	dynamoDBTarget + "GetItem":            func() operation { return &getItem{} },
	dynamoDBTarget + "PutItem":            func() operation { return &write{kind: "Put"} },
	dynamoDBTarget + "UpdateItem":         func() operation { return &write{kind: "Update"} },
	dynamoDBTarget + "DeleteItem":         func() operation { return &write{kind: "Delete"} },
	dynamoDBTarget + "Query":              func() operation { return &query{} },
	dynamoDBTarget + "Scan":               func() operation { return &scan{} },
	dynamoDBTarget + "BatchGetItem":       func() operation { return &batchGetItem{} },
	dynamoDBTarget + "BatchWriteItem":     func() operation { return &batchWriteItem{} },
	dynamoDBTarget + "TransactWriteItems": func() operation { return &transactWriteItems{} },
	dynamoDBTarget + "DescribeTable":      func() operation { return &describeTable{} },
}

// Label names a request: its service and operation.
type Label struct {
	Service   string // DynamoDB, KMS or S3
	Operation string // such as PutItem
}

// LabelOf names a request of the SDK.
func LabelOf(r *http.Request) Label {
	c, _ := read(r, nil) // a request that the model lacks has a label too
	return c.Label
}

// call is a request of the SDK. It has a label even if the model lacks the operation.
type call struct {
	Label
	operation
}

// read reads a request of the SDK. AWS ignores unknown members. The model must not, because
// AWS may know a member that the model does not.
func read(r *http.Request, body []byte) (c call, err error) {
	target := r.Header.Get("X-Amz-Target")
	if target == "" {
		return readS3(r, body)
	}
	service, name, _ := strings.Cut(target, ".")
	c.Label = Label{Service: map[bool]string{true: "DynamoDB", false: "KMS"}[service+"." == dynamoDBTarget], Operation: name}
	if strings.HasPrefix(target, kmsTarget) {
		return c, nil
	}
	empty := operations[target]
	if empty == nil {
		return c, notModelled("the operation %s", target)
	}
	c.operation = empty()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(c.operation); err != nil {
		return c, notModelled("a request with %v", err)
	}
	return c, checkValues(body)
}

// Do implements aws.HTTPClient.
func (w *World) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	response := w.answer(r, body)
	response.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return response, nil
}

// answer applies one request of the SDK.
func (w *World) answer(r *http.Request, body []byte) *http.Response {
	c, err := read(r, body)
	var out any
	switch {
	case c.Service == "KMS":
		return w.doKMS(r, body)
	case err == nil:
		out, err = c.apply(w)
	}
	if known, failed := errors.AsType[*Error](err); failed {
		return Answer(r, known)
	}
	if c.Service == "S3" {
		return s3Response(r, out)
	}
	return respond(r, http.StatusOK, out)
}

const kmsTarget = "TrentService."

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
