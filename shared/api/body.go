package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/shared/issues"
	"signalbox.dev/shared/spelling"
)

const maxBody = 65536 // bytes

// Object is a JSON object read strictly from a request's body: one object without
// trailing data, every member known and present once, all text valid Unicode. Issues
// returns the first hundred issues. The members are parts of the body, which is wiped after
// the request.
type Object struct {
	body    []byte
	names   []string
	members map[string]jsontext.Value // parts of body
	broken  map[string]bool           // paths that have an issue already
	issues  []issues.Issue
	opaque  bool // no members could be read, so none is reported
}

// Report adds an issue, unless its path has one already: a value of the wrong type
// is not also too short. If the body could not be read as an object, it adds nothing,
// because the missing members are unknown.
func (o *Object) Report(path string, reason issues.Reason, message string) {
	if o.opaque || o.full() || path != "" && o.broken[path] {
		return
	}
	o.broken[path] = true
	o.issues = append(o.issues, issues.Issue{Path: path, Reason: reason, Message: message})
}

// full reports whether no more issues are shown.
func (o *Object) full() bool { return len(o.issues) >= issues.Max }

// Issues returns the issues reported so far, in this order: those of headers, of the
// body's form, of its members.
func (o *Object) Issues() []issues.Issue { return o.issues }

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
		name := string(unquoted(quoted))
		value, err := d.ReadValue()
		if err != nil {
			return notJSON(d, err)
		}
		if slices.Contains(o.names, name) {
			end := d.InputOffset() // value holds only until the next read
			o.add(name, o.body[end-int64(len(value)):end])
		} else if !o.full() { // the search for a similar name takes time
			message := "unknown member" // the sent name may be a secret: it is not repeated
			if nearest := spelling.Nearest(name, o.names); nearest != "" {
				message += "; did you mean " + nearest + "?"
			}
			o.Report("", issues.UnknownMember, message)
		}
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

// decoder reads from the bytes themselves: jsontext does not copy from a bytes.Buffer.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), lenient...)
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
	if bytes.IndexByte(value, '\\') < 0 {
		return !utf8.Valid(value) || bytes.ContainsRune(value, utf8.RuneError)
	}
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
