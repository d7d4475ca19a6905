package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/shared/secret"
)

const (
	maxBody   = 65536 // bytes
	maxIssues = 100
)

// readable lets text that is not UTF-8 and half surrogate pairs through as
// U+FFFD, so that every kind of mangled text is found by one look, and members
// that come twice, so that they are reported beside all else that is wrong.
var readable = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// Object is a JSON object read from a request's body, strictly: one object and
// nothing after it, every member known and present once, no mangled text. What
// is wrong is collected, all of it, and told by Issues.
type Object struct {
	body    []byte
	members map[string]jsontext.Value // parts of body
	broken  map[string]bool           // paths that have an issue already
	issues  []Issue
	opaque  bool // no members could be read, so nothing is said of any
}

// Object reads the body as an object with these members and no others. The
// caller judges Issues before it uses anything of it.
func (r *Request) Object(names ...string) *Object {
	o := &Object{body: r.body.Reveal(), members: map[string]jsontext.Value{}, broken: map[string]bool{}}
	o.issues = append(o.issues, bodyHeaderIssues(r)...)
	if len(o.body) > maxBody {
		o.refuse("the body is larger than 65536 bytes")
		return o
	}
	if err := o.read(names); err != nil {
		o.refuse(err.Error())
	}
	return o
}

// refuse reports the body as a whole: which members it lacks is not known.
func (o *Object) refuse(message string) {
	o.Report("", message)
	o.opaque = true
}

// read collects the members. Its error says why the body is not one JSON object.
func (o *Object) read(names []string) error {
	d := jsontext.NewDecoder(bytes.NewReader(o.body), readable...)
	if len(o.body) == 0 {
		return errors.New("the body is empty; it must be one JSON object")
	}
	if d.PeekKind() != jsontext.KindBeginObject {
		if _, err := d.ReadValue(); err != nil {
			return notJSON(d, err)
		}
		return errors.New("the body must be one JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return notJSON(d, err)
	}
	for d.PeekKind() != jsontext.KindEndObject {
		token, err := d.ReadToken()
		if err != nil {
			return notJSON(d, err)
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return notJSON(d, err)
		}
		end := d.InputOffset()
		o.add(name, o.body[end-int64(len(value)):end], names)
	}
	if _, err := d.ReadToken(); err != nil {
		return notJSON(d, err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("the body goes on after its JSON object")
	}
	return nil
}

// notJSON says where the body stops being JSON, and nothing of what stands there.
func notJSON(d *jsontext.Decoder, err error) error {
	offset := d.InputOffset()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntax.ByteOffset
	}
	return fmt.Errorf("the body is not valid JSON, from byte %d on", offset)
}

// add takes a member in, or reports it.
func (o *Object) add(name string, value jsontext.Value, names []string) {
	if !slices.Contains(names, name) {
		// The name may itself be a secret in the wrong place: it is not repeated.
		o.Report("", unknownMember(name, names))
		return
	}
	_, repeated := o.members[name]
	o.members[name] = value
	switch {
	case repeated:
		o.Report("/"+name, "the member is there twice")
	case mangled(value):
		o.Report("/"+name, "holds U+FFFD or half a surrogate pair: its text was mangled on the way")
	}
}

// mangled reports whether any string in the value holds U+FFFD, which is also
// what text that is not UTF-8 and half surrogate pairs read as.
func mangled(value jsontext.Value) bool {
	d := jsontext.NewDecoder(bytes.NewReader(value), readable...)
	for {
		token, err := d.ReadToken()
		if err != nil {
			return false // the value was read once: this is its end
		}
		if token.Kind() == jsontext.KindString && strings.ContainsRune(token.String(), utf8.RuneError) {
			return true
		}
	}
}

// Report adds an issue, unless its place has one already: a value of the wrong
// type is not also too short. Of a body that could not be read as an object it
// adds nothing: no member of it is known to be missing.
func (o *Object) Report(path, message string) {
	if o.opaque || path != "" && o.broken[path] {
		return
	}
	o.broken[path] = true
	o.issues = append(o.issues, Issue{Path: path, Message: message})
}

// Issues is everything wrong with the body, in the order of the body.
func (o *Object) Issues() []Issue { return o.issues }

// Canonical is the body with its members in one order and no white space, the
// same for the same members and values (RFC 8785). Only for a body without
// issues. It may hold secrets: the caller wipes it.
func (o *Object) Canonical() (secret.Bytes, error) {
	value := jsontext.Value(bytes.Clone(o.body))
	if err := value.Canonicalize(); err != nil {
		return secret.Bytes{}, errors.New("canonicalising a body")
	}
	return secret.New(value), nil
}

// Has reports whether the member is there, with whatever value.
func (o *Object) Has(name string) bool { return o.members[name] != nil }

// IsNull reports whether the member is there and null.
func (o *Object) IsNull(name string) bool { return o.members[name].Kind() == jsontext.KindNull }

// Text reads a string; "" where it is absent or of another type.
func (o *Object) Text(name string) string { return string(o.bytes(name)) }

// Secret reads a string that must not be shown.
func (o *Object) Secret(name string) secret.Bytes { return secret.New(o.bytes(name)) }

func (o *Object) bytes(name string) []byte {
	value := o.members[name]
	if value == nil {
		return nil
	}
	if value.Kind() != jsontext.KindString {
		o.Report("/"+name, "must be a string")
		return nil
	}
	return unquoted(value)
}

// Bool reads a boolean; false where it is absent or of another type.
func (o *Object) Bool(name string) bool {
	value := o.members[name]
	if value == nil {
		return false
	}
	kind := value.Kind()
	if kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		o.Report("/"+name, "must be true or false")
	}
	return kind == jsontext.KindTrue
}

// Texts reads an array of strings; nil where it is absent, null or of another
// type, an empty slice for an empty array.
func (o *Object) Texts(name string) []string {
	value := o.members[name]
	if value == nil || value.Kind() == jsontext.KindNull {
		return nil
	}
	if value.Kind() != jsontext.KindBeginArray {
		o.Report("/"+name, "must be an array of strings, or null")
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(value), readable...)
	_, _ = d.ReadToken() // the bracket; the value was read once without fault
	list := []string{}
	for d.PeekKind() != jsontext.KindEndArray {
		element, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if element.Kind() != jsontext.KindString {
			o.Report(Element(name, len(list)), "must be a string")
		}
		list = append(list, string(unquoted(element)))
	}
	return list
}

// Element is the path of an element of a member that is an array.
func Element(name string, index int) string { return "/" + name + "/" + strconv.Itoa(index) }

// unquoted is the text of a JSON string, or nil for any other value.
func unquoted(value jsontext.Value) []byte {
	if value.Kind() != jsontext.KindString {
		return nil
	}
	text, _ := jsontext.AppendUnquote(nil, value) // mangled text was reported already
	return text
}
