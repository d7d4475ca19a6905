package api

import (
	"encoding/binary"
	"io"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/shared/issues"
	"signalbox.dev/shared/secret"
)

// Feed writes the members that are present to a hash, in the order of the names
// given to Request.Object, each name and value after its kind and length. It writes the
// same bytes for the same members and values in any order and escaping, and other bytes
// for all others. The body must have no issues.
func (o *Object) Feed(hash io.Writer) {
	for _, name := range o.names {
		if value := o.members[name]; value != nil {
			feedPart(hash, jsontext.KindString, len(name), []byte(name))
			feedValue(hash, value)
		}
	}
}

func feedValue(hash io.Writer, value jsontext.Value) {
	kind := value.Kind()
	if kind == jsontext.KindBeginArray {
		length := 0
		for range elements(value) {
			length++
		}
		feedPart(hash, kind, length, nil)
		for _, element := range elements(value) {
			feedValue(hash, element)
		}
		return
	}
	if kind != jsontext.KindString {
		feedPart(hash, kind, len(value), value)
		return
	}
	text := unquoted(value)
	defer clear(text)
	feedPart(hash, kind, len(text), text)
}

func feedPart(hash io.Writer, kind jsontext.Kind, length int, content []byte) {
	_, _ = hash.Write(binary.BigEndian.AppendUint64([]byte{byte(kind)}, uint64(length))) //nolint:gosec // no length is negative
	_, _ = hash.Write(content)
}

// Has reports whether the member is present, null or not.
func (o *Object) Has(name string) bool { return o.members[name] != nil }

// NullableText reads a string or null. It returns nil if the member is null, absent or
// of another type.
func (o *Object) NullableText(name string) *string {
	if value := o.members[name]; value == nil || value.Kind() == jsontext.KindNull {
		return nil
	}
	text := o.bytes(name)
	if text == nil {
		return nil
	}
	return new(string(text))
}

// Text reads a string. It returns "" if the member is absent or of another type.
func (o *Object) Text(name string) string { return string(o.bytes(name)) }

// Secret reads a string that must not be shown.
func (o *Object) Secret(name string) secret.Bytes { return secret.New(o.bytes(name)) }

func (o *Object) bytes(name string) []byte {
	value := o.members[name]
	if value == nil {
		return nil
	}
	if value.Kind() != jsontext.KindString {
		o.Report("/"+name, issues.Invalid, "must be a string")
		return nil
	}
	return unquoted(value)
}

// Bool reads a boolean. It returns false if the member is absent or of another type.
func (o *Object) Bool(name string) bool {
	value := o.members[name]
	if value == nil {
		return false
	}
	kind := value.Kind()
	if kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		o.Report("/"+name, issues.Invalid, "must be true or false")
	}
	return kind == jsontext.KindTrue
}

// Texts reads an array of strings. It returns nil if the member is absent, null or of
// another type, and an empty slice for an empty array.
func (o *Object) Texts(name string) []string {
	value := o.members[name]
	if value == nil || value.Kind() == jsontext.KindNull {
		return nil
	}
	if value.Kind() != jsontext.KindBeginArray {
		o.Report("/"+name, issues.Invalid, "must be an array of strings, or null")
		return nil
	}
	list := []string{}
	for i, element := range elements(value) {
		if o.full() {
			break
		}
		if element.Kind() != jsontext.KindString {
			o.Report(Element(name, i), issues.Invalid, "must be a string")
		}
		list = append(list, string(unquoted(element)))
	}
	return list
}

// elements yields the values in an array, which was read once without error. A value holds
// until the next one.
func elements(array jsontext.Value) iter.Seq2[int, jsontext.Value] {
	return func(yield func(int, jsontext.Value) bool) {
		d := decoder(array)
		_, _ = d.ReadToken() // the bracket
		for i := 0; d.PeekKind() != jsontext.KindEndArray; i++ {
			element, err := d.ReadValue()
			if err != nil || !yield(i, element) {
				return
			}
		}
	}
}

// Element is the path of an element of a member that is an array.
func Element(name string, index int) string { return "/" + name + "/" + strconv.Itoa(index) }

// unquoted is the text of a JSON string, or nil for any other value. Invalid UTF-8 becomes
// U+FFFD. The text of a valid string fits into the buffer, so no copy is left behind.
func unquoted(value jsontext.Value) []byte {
	if value.Kind() != jsontext.KindString {
		return nil
	}
	text, _ := jsontext.AppendUnquote(make([]byte, 0, len(value)), value)
	return text
}
