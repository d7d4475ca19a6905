package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/shared/issues"
	"signalbox.dev/shared/spelling"
)

const (
	maxBody   = 65536 // bytes
	maxIssues = 100
)

// readable reads invalid UTF-8 and unpaired surrogates as U+FFFD: one check finds all
// of them. It accepts duplicate members, because they are reported together with the
// other faults.
var readable = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// Object reads the body as an object with these members and no others. The
// caller checks Issues before it uses any member.
func (r *Request) Object(names ...string) *Object {
	o := &Object{body: r.body.Reveal(), names: names, members: map[string]jsontext.Value{}, broken: map[string]bool{}}
	o.issues = append(o.issues, bodyHeaderIssues(r)...)
	if len(o.body) > maxBody {
		o.refuse(issues.TooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody))
		return o
	}
	if err := o.read(); err != nil {
		o.refuse(issues.Invalid, err.Error())
	}
	return o
}

// refuse reports the body as a whole: the missing members are unknown.
func (o *Object) refuse(reason issues.Reason, message string) {
	o.Report("", reason, message)
	o.opaque = true
}

// read collects the members. Its error is a message that says why the body is not one
// JSON object.
func (o *Object) read() error {
	wipeNested(o.body)
	d := decoder(o.body)
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
	for kind := d.PeekKind(); kind != jsontext.KindEndObject; kind = d.PeekKind() {
		if kind != jsontext.KindString {
			_, err := d.ReadToken() // fails: a name must be a string
			return notJSON(d, err)
		}
		quoted, err := d.ReadValue()
		if err != nil {
			return notJSON(d, err)
		}
		name, unknown := o.nameOf(quoted)
		value, err := d.ReadValue()
		if err != nil {
			return notJSON(d, err)
		}
		if unknown != "" {
			o.Report("", issues.UnknownMember, unknown)
			continue
		}
		end := d.InputOffset()
		o.add(name, o.body[end-int64(len(value)):end])
	}
	if _, err := d.ReadToken(); err != nil {
		return notJSON(d, err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("trailing data after the JSON object")
	}
	return nil
}

// notJSON is the message for a syntax error. It has the offset and no part of the body.
func notJSON(d *jsontext.Decoder, err error) error {
	offset := d.InputOffset()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntax.ByteOffset
	}
	return fmt.Errorf("the body cannot be parsed as JSON: error at byte %d", offset)
}

// decoder parses JSON in place: jsontext makes no buffer if it reads from a
// bytes.Buffer.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), readable...)
}

// wipeNested overwrites the names of members of nested objects, and their texts. Such a
// name may be a secret in the wrong place, and the decoder's errors would copy it. No
// member takes an object, so no accepted body has one. Invalid text stays invalid.
func wipeNested(body []byte) {
	var open []byte // the brackets
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '{', '[':
			open = append(open, c)
		case '}', ']':
			open = open[:max(0, len(open)-1)]
		case '"':
			end := endOfString(body, i)
			if len(open) > 1 && open[len(open)-1] == '{' && end > i+1 {
				invalid := end < len(body) && hasReplacement(body[i:end+1])
				for j := i + 1; j < end; j++ {
					body[j] = 'x'
				}
				if invalid {
					body[i+1] = 0xff
				}
			}
			i = end
		}
	}
}

// endOfString returns the index of the quote that ends the string beginning at i,
// or the length of the body.
func endOfString(body []byte, i int) int {
	for i++; i < len(body) && body[i] != '"'; i++ {
		if body[i] == '\\' {
			i++
		}
	}
	return min(i, len(body))
}

// nameOf returns the name of a known member, or the message for an unknown one. An
// unknown name may itself be a secret: it is wiped in the body, because the decoder's
// errors contain the last name.
func (o *Object) nameOf(quoted jsontext.Value) (name, unknown string) {
	sent := unquoted(quoted)
	defer clear(sent)
	for _, name := range o.names {
		if name == string(sent) { // this comparison makes no copy
			return name, ""
		}
	}
	clear(quoted[1 : len(quoted)-1])
	return "", unknownMember(sent, o.names)
}

// add keeps a member, and reports one that is a duplicate or contains invalid text.
func (o *Object) add(name string, value jsontext.Value) {
	_, repeated := o.members[name]
	o.members[name] = value
	switch {
	case repeated:
		o.Report("/"+name, issues.Invalid, "duplicate member")
	case hasReplacement(value):
		o.Report("/"+name, issues.Invalid, "contains U+FFFD, invalid UTF-8 or an unpaired surrogate")
	}
}

// hasReplacement reports whether any string in the value contains U+FFFD. Invalid UTF-8
// and unpaired surrogates are read as U+FFFD.
func hasReplacement(value jsontext.Value) bool {
	d := decoder(value)
	for {
		if d.PeekKind() != jsontext.KindString {
			if _, err := d.ReadToken(); err != nil {
				return false // the end: the value was parsed before
			}
			continue
		}
		quoted, err := d.ReadValue()
		if err != nil {
			return false
		}
		text := unquoted(quoted)
		found := bytes.ContainsRune(text, utf8.RuneError)
		clear(text)
		if found {
			return true
		}
	}
}

// bodyHeaderIssues checks the headers that describe the body: one Content-Type,
// application/json in UTF-8, and no Content-Encoding but identity.
func bodyHeaderIssues(r *Request) []issues.Issue {
	var all []issues.Issue
	if !isJSON(r.Header("Content-Type")) {
		all = append(all, issues.Issue{Reason: issues.Invalid, Message: "Content-Type must be sent once, as application/json with charset utf-8 or none"})
	}
	for _, encoding := range r.Header("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(encoding), "identity") {
			all = append(all, issues.Issue{Reason: issues.Invalid, Message: "Content-Encoding must be identity or absent"})
			break
		}
	}
	return all
}

func isJSON(contentTypes []string) bool {
	if len(contentTypes) != 1 {
		return false
	}
	media, parameters, err := mime.ParseMediaType(contentTypes[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, given := parameters["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// unknownMember is the message for an unknown member. The sent name may be a secret: it
// is not copied, and the message contains only a known name.
func unknownMember(name []byte, known []string) string {
	if nearest := spelling.Nearest(name, known); nearest != "" {
		return "unknown member; did you mean " + nearest + "?"
	}
	return "unknown member"
}
