package main

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var errMalformed = errors.New("the body is not a JSON object with one model")

// content is what a request's body says about its plan.
type content struct {
	model string
	// followsUp reports whether the body names state of an earlier request, which is the
	// account's at one provider.
	followsUp bool
}

// readContent reads a request's body: one JSON object with one member "model". A name that
// differs only in case counts as a second one, because some providers would read it.
func readContent(body io.Reader) (c content, err error) {
	d := jsontext.NewDecoder(&abridged{body: body}, jsontext.AllowDuplicateNames(true))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return content{}, cmp.Or(err, errMalformed)
	}
	hasModel := false
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return content{}, err
		}
		name := token.String()
		if !strings.EqualFold(name, "model") {
			isState := strings.EqualFold(name, "previous_response_id") || strings.EqualFold(name, "conversation")
			c.followsUp = c.followsUp || isState && d.PeekKind() != 'n' // not null
			if err := d.SkipValue(); err != nil {
				return content{}, err
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil || hasModel || name != "model" || value.Kind() != '"' {
			return content{}, cmp.Or(err, errMalformed)
		}
		c.model, hasModel = value.String(), true
	}
	if _, err := d.ReadToken(); err != nil { // the object's end
		return content{}, err
	}
	_, err = d.ReadToken() // the body's end
	switch {
	case err == nil, errors.Is(err, io.EOF) && c.model == "":
		return content{}, errMalformed
	case !errors.Is(err, io.EOF):
		return content{}, err
	}
	return c, nil
}

// longest is how many bytes of a string or number reach the decoder, which keeps each whole
// one in memory. The name of a model is shorter.
const longest = 4096

// abridged passes JSON on without the rest of long strings and white space: an image is
// megabytes of base64. It checks that rest as the decoder would. A longer number is
// malformed.
type abridged struct {
	body     io.Reader
	inString bool
	text     text
	length   int // of the string or number so far

	afterSpace bool
}

// Read implements io.Reader.
func (a *abridged) Read(p []byte) (int, error) {
	for {
		n, err := a.body.Read(p)
		kept := p[:0]
		for _, b := range p[:n] {
			isKept, ok := a.next(b)
			if !ok {
				return 0, errMalformed
			}
			if isKept {
				kept = append(kept, b)
			}
		}
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
}

// next reports whether the decoder needs the byte, and whether the JSON is sound so far.
func (a *abridged) next(b byte) (isKept, ok bool) {
	if !a.inString {
		switch b {
		case '"':
			a.inString, a.length = true, 0
		case '{', '}', '[', ']', ':', ',':
			a.length = 0
		case ' ', '\t', '\r', '\n':
			isKept = !a.afterSpace
			a.length, a.afterSpace = 0, true
			return isKept, true
		default:
			a.length++
		}
		a.afterSpace = false
		return true, a.length <= longest
	}
	isKept = a.length < longest || a.length == longest && !a.text.isWhole()
	ends, ok := a.text.next(b)
	switch {
	case ends:
		a.inString, a.length = false, 0
		return true, true
	case isKept && a.length < longest:
		a.length++
	case !isKept:
		a.length = longest + 1 // once a character is left out, so is the rest
	}
	return isKept, ok
}

// text is the state within a JSON string.
type text struct {
	escaped bool
	digits  int // of \u that are still to come
	unit    int // their value
	high    bool
	partial []byte // of a UTF-8 character
}

// isWhole reports whether no character is incomplete.
func (t *text) isWhole() bool {
	return !t.escaped && t.digits == 0 && !t.high && len(t.partial) == 0
}

// next reports whether the byte ends the string, and whether the string is sound so far.
func (t *text) next(b byte) (ends, ok bool) {
	switch {
	case t.digits > 0:
		digit := strings.IndexByte("0123456789abcdef", b|0x20) // lower case
		if digit < 0 || b < '0' {
			return false, false
		}
		t.unit = t.unit<<4 | digit // hexadecimal
		if t.digits--; t.digits > 0 {
			return false, true
		}
		wasHigh := t.high
		t.high = t.unit>>10 == 0xD800>>10
		return false, wasHigh == (t.unit>>10 == 0xDC00>>10)
	case t.escaped:
		t.escaped = false
		if b == 'u' {
			t.digits, t.unit = 4, 0 // \uXXXX
			return false, true
		}
		return false, !t.high && strings.IndexByte(`"\/bfnrt`, b) >= 0
	case b == '\\':
		t.escaped = true
		return false, true
	case t.high: // unpaired
		return false, false
	case b >= utf8.RuneSelf || len(t.partial) > 0:
		t.partial = append(t.partial, b)
		if utf8.FullRune(t.partial) {
			ok, t.partial = utf8.Valid(t.partial), t.partial[:0]
			return false, ok
		}
		return false, true
	default:
		return b == '"', b >= ' '
	}
}
