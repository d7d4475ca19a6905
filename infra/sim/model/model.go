// Package model is an executable model of the parts of DynamoDB, S3 and KMS that the
// service uses. A World applies the requests that the AWS SDK sends, one at a time, and
// returns the responses that AWS documents. It needs no network, process or clock: a
// simulation can apply calls in every order.
//
// The model is strict. It refuses the requests that AWS refuses, with AWS's errors. A
// request for something that it lacks gets the error NotModelled, with status 501. It
// has no access policies, no secondary indexes and no expiry of items. Its reads are
// always consistent, because the simulation decides which calls are stale, throttled,
// in conflict or lost.
//
// Only tests import it. Its own tests compare it with real engines.
package model

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"time"
)

// Config describes a new World.
type Config struct {
	Tables []TableSchema
	// Bucket is the name of the bucket, and Versioning its state: "", "Enabled" or
	// "Suspended".
	Bucket     string
	Versioning string
	// Keys are the ARNs of the KMS keys. Each is enabled.
	Keys []string
	// Now is the clock: time.Now by default.
	Now func() time.Time
	// Rand is the source of ids, nonces and data keys: crypto/rand by default.
	Rand io.Reader
}

// TableSchema describes a table. Its key attributes are strings. SK is "" if the
// table has no sort key.
type TableSchema struct {
	Name, PK, SK string
}

// World is the state of an AWS account: tables, a bucket and keys. It is not for
// concurrent use.
type World struct {
	tables map[string]*table
	tokens map[string]remembered
	bucket bucket
	keys   map[string]*key
	now    func() time.Time
	rand   io.Reader
}

// New returns a World without items and objects.
func New(c Config) *World {
	w := &World{
		tables: map[string]*table{}, tokens: map[string]remembered{}, keys: map[string]*key{},
		bucket: bucket{name: c.Bucket, versioning: c.Versioning, versions: map[string][]Version{}, numbers: map[[2]string]int{}},
		now:    c.Now, rand: c.Rand,
	}
	if w.now == nil {
		w.now = time.Now
	}
	if w.rand == nil {
		w.rand = rand.Reader
	}
	for _, schema := range c.Tables {
		w.tables[schema.Name] = &table{TableSchema: schema, items: map[primaryKey]Item{}}
	}
	for _, arn := range c.Keys {
		w.keys[arn] = &key{arn: arn, state: enabled, material: w.random(keySize)}
	}
	return w
}

// Do applies one request of the SDK and returns the response. body is the whole body.
// The request takes effect completely or not at all.
func (w *World) Do(r *http.Request, body []byte) *http.Response {
	target, operation, rpc := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !rpc {
		return w.s3(r, body)
	}
	var do func(*World, []byte) (any, error)
	switch target {
	case dynamoDBTarget:
		do = dynamoDB[operation]
	case kmsTarget:
		do = kms[operation]
	}
	var out any
	err := error(notModelled("the operation %s", r.Header.Get("X-Amz-Target")))
	if r.Header.Get("Authorization") == "" {
		err = refusal("MissingAuthenticationTokenException", "Request is missing Authentication Token")
	} else if do != nil {
		out, err = do(w, body)
	}
	return w.respond(r, target, out, err)
}

// call makes an operation of a function from input to output.
func call[In any](do func(*World, In) (any, error)) func(*World, []byte) (any, error) {
	return func(w *World, body []byte) (any, error) {
		var in In
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		return do(w, in)
	}
}

// decode reads the JSON of a request. AWS ignores members that it does not know. The
// model must not, because it would ignore a member that AWS knows.
func decode(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var known *Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return notModelled("the member %s", strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return &Error{Status: http.StatusBadRequest, Code: "SerializationException", Message: err.Error()}
}

// respond writes a response in the JSON protocol of DynamoDB and KMS.
func (w *World) respond(r *http.Request, target string, out any, err error) *http.Response {
	status := http.StatusOK
	if err != nil {
		var known *Error
		if !errors.As(err, &known) {
			known = &Error{Status: http.StatusInternalServerError, Code: "InternalServerError", Message: err.Error()}
		}
		status, out = known.Status, known.members(target)
	}
	body, err := json.Marshal(out)
	if err != nil {
		status, body = http.StatusInternalServerError, fmt.Appendf(nil, `{"__type":"InternalServerError","message":%q}`, err.Error())
	}
	header := http.Header{"X-Amzn-Requestid": {strings.ToUpper(w.id(26))}}
	if target == dynamoDBTarget {
		header.Set("Content-Type", "application/x-amz-json-1.0")
		header.Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE(body)))
	} else {
		header.Set("Content-Type", "application/x-amz-json-1.1")
	}
	return response(r, status, header, body)
}

func response(r *http.Request, status int, header http.Header, body []byte) *http.Response {
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
	// Reasons are those of a cancelled transaction, one for each item.
	Reasons []Reason
	// Item is the item for which a condition failed, if the request asked for it.
	Item Item
}

// Reason is why DynamoDB cancelled a transaction, as far as one item is concerned.
type Reason struct {
	Code    string
	Message string `json:",omitempty"`
	Item    wire   `json:",omitempty"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// members returns the body of the error. DynamoDB's error of a transaction spells
// Message as no other does.
func (e *Error) members(target string) map[string]any {
	code, message := e.Code, "message"
	if target == dynamoDBTarget {
		code = "com.amazonaws.dynamodb.v20120810#" + code
	}
	out := map[string]any{}
	if e.Reasons != nil {
		out["CancellationReasons"], message = e.Reasons, "Message"
	}
	if e.Item != nil {
		out["Item"] = wire(e.Item)
	}
	out["__type"], out[message] = code, e.Message
	return out
}

// Answer returns an error as a response to the request, without applying it.
func (w *World) Answer(r *http.Request, e *Error) *http.Response {
	if target, _, rpc := strings.Cut(r.Header.Get("X-Amz-Target"), "."); rpc {
		return w.respond(r, target, nil, e)
	}
	return w.s3Error(r, e)
}

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

// random returns so many random bytes.
func (w *World) random(size int) []byte {
	b := make([]byte, size)
	if _, err := io.ReadFull(w.rand, b); err != nil {
		panic(fmt.Sprintf("the model's source of randomness: %v", err))
	}
	return b
}

// id returns a new id, of twice as many characters as bytes.
func (w *World) id(size int) string { return hex.EncodeToString(w.random(size)) }
