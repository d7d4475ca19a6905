// Package model is an executable model of the parts of DynamoDB, S3 and KMS that the
// simulated functions and commands use. A World applies the requests that the AWS SDK
// sends, one at a time, and returns the responses that AWS documents. It needs no network
// and no process: a simulation can apply calls in every order.
//
// The model is strict. It refuses the requests that AWS refuses, with AWS's errors. A
// request for something that it lacks gets the error NotModelled, with status 501. It
// has no access policies, no states of keys, no secondary indexes and no expiry of items.
// Its reads are always consistent, because the simulation decides which calls are stale,
// throttled, in conflict or lost.
//
// Only tests import it. Its own tests compare it with real engines.
package model

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
	"strings"
)

// Config describes a new World.
type Config struct {
	Tables []TableSchema
	// Bucket is the name of the bucket, and Versioning its state: "", "Enabled" or
	// "Suspended".
	Bucket     string
	Versioning string
	// Keys are the ARNs of the KMS keys.
	Keys []string
}

// TableSchema describes a table. Its key attributes are strings. SK is "" if the
// table has no sort key.
type TableSchema struct {
	Name, PK, SK string
}

// World is the state of an AWS account: tables, a bucket and keys. It is not for
// concurrent use. Its clock is time.Now, and its ids come from crypto/rand.
type World struct {
	tables      map[string]*table
	tokens      map[string]remembered
	bucket      bucket
	keys        map[string]bool // by their ARNs
	ciphertexts map[string]ciphertext
}

// New returns a World without items and objects.
func New(c Config) *World {
	w := &World{
		tables: map[string]*table{}, tokens: map[string]remembered{}, keys: map[string]bool{}, ciphertexts: map[string]ciphertext{},
		bucket: bucket{name: c.Bucket, versioning: c.Versioning, versions: map[string][]Version{}, numbers: map[[2]string]int{}},
	}
	for _, schema := range c.Tables {
		w.tables[schema.Name] = &table{TableSchema: schema, items: map[primaryKey]Item{}}
	}
	for _, arn := range c.Keys {
		w.keys[arn] = true
	}
	return w
}

// object is a response in the JSON protocol.
type object = map[string]any

// operations are those of DynamoDB and KMS.
var operations = map[string]func(*World, []byte) (any, error){
	dynamoDBTarget + "GetItem":            call((*World).getItem),
	dynamoDBTarget + "PutItem":            call(single("PutItem")),
	dynamoDBTarget + "UpdateItem":         call(single("UpdateItem")),
	dynamoDBTarget + "DeleteItem":         call(single("DeleteItem")),
	dynamoDBTarget + "Query":              call((*World).query),
	dynamoDBTarget + "Scan":               call((*World).scan),
	dynamoDBTarget + "BatchGetItem":       call((*World).batchGetItem),
	dynamoDBTarget + "BatchWriteItem":     call((*World).batchWriteItem),
	dynamoDBTarget + "TransactWriteItems": call((*World).transactWriteItems),
	kmsTarget + "GenerateDataKey":         call((*World).generateDataKey),
	kmsTarget + "Decrypt":                 call((*World).decrypt),
}

// call makes an operation of a function from input to output. AWS ignores members that it
// does not know. The model must not, because it would ignore a member that AWS knows.
func call[In any](do func(*World, In) (any, error)) func(*World, []byte) (any, error) {
	return func(w *World, body []byte) (any, error) {
		var in In
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&in)
		if _, known := errors.AsType[*Error](err); err != nil && !known {
			err = notModelled("a request with %v", err)
		}
		if err != nil {
			return nil, err
		}
		return do(w, in)
	}
}

// Do applies one request of the SDK and returns the response. body is the whole body.
// The request takes effect completely or not at all.
func (w *World) Do(r *http.Request, body []byte) *http.Response {
	target := r.Header.Get("X-Amz-Target")
	if target == "" {
		return w.s3(r, body)
	}
	do, ok := operations[target]
	if !ok {
		return Answer(r, notModelled("the operation %s", target))
	}
	out, err := do(w, body)
	if known, failed := errors.AsType[*Error](err); failed {
		return Answer(r, known)
	}
	return respond(r, http.StatusOK, out)
}

// Answer returns an error in the form of the service that was asked.
func Answer(r *http.Request, e *Error) *http.Response {
	code, target := e.Code, r.Header.Get("X-Amz-Target")
	if target == "" {
		return s3Response(r, e.Status, http.Header{}, struct {
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

func invalid(format string, args ...any) *Error {
	return refusal("ValidationException", format, args...)
}

// notModelled is the error for features that AWS has and the model lacks.
func notModelled(format string, args ...any) *Error {
	return &Error{Status: http.StatusNotImplemented, Code: "NotModelled", Message: "the model lacks " + fmt.Sprintf(format, args...)}
}
