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
)

const (
	maxBody   = 65536 // bytes
	maxIssues = 100
)

// readable lets text that is not UTF-8 and half surrogate pairs through as
// U+FFFD, so that every kind of mangled text is found by one look, and members
// that come twice, so that they are reported beside all else that is wrong.
var readable = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// Object reads the body as an object with these members and no others. The
// caller judges Issues before it uses anything of it.
func (r *Request) Object(names ...string) *Object {
	o := &Object{body: r.body.Reveal(), names: names, members: map[string]jsontext.Value{}, broken: map[string]bool{}}
	o.issues = append(o.issues, bodyHeaderIssues(r)...)
	if len(o.body) > maxBody {
		o.refuse("the body is larger than 65536 bytes")
		return o
	}
	if err := o.read(); err != nil {
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
			_, err := d.ReadToken() // where a name must be nothing else can
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
			o.Report("", unknown)
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

// notJSON says where the body stops being JSON, and nothing of what stands there.
func notJSON(d *jsontext.Decoder, err error) error {
	offset := d.InputOffset()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntax.ByteOffset
	}
	return fmt.Errorf("the body is not valid JSON, from byte %d on", offset)
}

// decoder reads JSON where it lies: over a bytes.Buffer, and no other reader, it
// parses without a buffer of its own.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), readable...)
}

// nameOf is the member's name as one of ours, or the message for any other. Such
// a name may itself be a secret in the wrong place: it is wiped in the body, and
// with it out of the decoder's errors, which copy the last name.
func (o *Object) nameOf(quoted jsontext.Value) (name, unknown string) {
	sent := unquoted(quoted)
	defer clear(sent)
	for _, name := range o.names {
		if name == string(sent) { // a comparison copies nothing
			return name, ""
		}
	}
	clear(quoted[1 : len(quoted)-1])
	return "", unknownMember(sent, o.names)
}

// add takes a member in, or reports it.
func (o *Object) add(name string, value jsontext.Value) {
	_, repeated := o.members[name]
	o.members[name] = value
	switch {
	case repeated:
		o.Report("/"+name, "duplicate member")
	case mangled(value):
		o.Report("/"+name, "contains U+FFFD, invalid UTF-8 or an unpaired surrogate")
	}
}

// mangled reports whether any string in the value holds U+FFFD, which is also
// what text that is not UTF-8 and half surrogate pairs read as.
func mangled(value jsontext.Value) bool {
	d := decoder(value)
	for {
		if d.PeekKind() != jsontext.KindString {
			if _, err := d.ReadToken(); err != nil {
				return false // the value was read once: this is its end
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

// bodyHeaderIssues judges what the request says of its body: one Content-Type,
// application/json in UTF-8, and no Content-Encoding but identity.
func bodyHeaderIssues(r *Request) []Issue {
	var issues []Issue
	if !isJSON(r.Header("Content-Type")) {
		issues = append(issues, Issue{Message: "Content-Type must be application/json, sent once, its charset (if any) utf-8"})
	}
	for _, encoding := range r.Header("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(encoding), "identity") {
			issues = append(issues, Issue{Message: "Content-Encoding must be identity or absent"})
			break
		}
	}
	return issues
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

// farthest is how many edits a name may be away from one of ours to be taken
// for a slip of the pen.
const farthest = 3

// unknownMember is the message for a member that is none of ours. The name was
// the caller's, and may be anything, a secret too: no copy of it is made, and
// what is suggested is one of ours.
func unknownMember(name []byte, ours []string) string {
	nearest, best := "", farthest+1
	for _, candidate := range ours {
		// A name of three letters is within three edits of nearly anything.
		if d := distance(name, candidate); d <= len(candidate)/2 && d < best {
			nearest, best = candidate, d
		}
	}
	if nearest == "" {
		return "unknown member"
	}
	return "unknown member; did you mean " + nearest + "?"
}

// distance is Levenshtein's: how many characters must be added, taken out or
// changed. Names much longer than b are simply far.
func distance(a []byte, b string) int {
	if utf8.RuneCount(a) > len(b)+farthest {
		return len(b) + farthest
	}
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for len(a) > 0 {
		ca, size := utf8.DecodeRune(a)
		a = a[size:]
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if ca != rune(b[j]) {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
