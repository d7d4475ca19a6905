package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/byok"
)

// wanted is the credential that a body asks for.
type wanted struct {
	settings       byok.Settings
	key, workspace string
}

// oracle decides about a body by the contract alone, with encoding/json.
type oracle struct {
	providers []string
}

func newOracle(tb testing.TB) oracle {
	tb.Helper()
	list, err := os.ReadFile("../../shared/byok/providers.txt")
	testkit.Must(tb, err)
	return oracle{strings.Fields(string(list))}
}

// read returns the credential that a body asks for. If ok is false, the body must be
// refused.
func (o oracle) read(body []byte) (w wanted, ok bool) {
	object, ok := objectOf(body)
	if !ok {
		return wanted{}, false
	}
	s := fields{object: object, fine: true}
	w.key = s.text("key")
	s.must(len(w.key) >= 1 && len(w.key) <= 32768)
	w.settings.Provider = s.text("provider")
	s.must(slices.Contains(o.providers, w.settings.Provider))
	w.settings.Name = w.settings.Provider
	if object["name"] != nil {
		w.settings.Name = s.text("name")
		s.must(utf8.RuneCountInString(w.settings.Name) <= 255)
	}
	w.workspace = onlyWorkspace
	if _, given := object["workspace_id"]; given {
		w.workspace = strings.ToLower(s.text("workspace_id"))
		s.must(regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(w.workspace))
		s.must(len(s.text("workspace_id")) == len(w.workspace)) // no letter but ASCII's was lowered
	}
	hash, some := regexp.MustCompile(`^[a-f0-9]{64}$`), regexp.MustCompile(`^(?s:.{1,255})$`)
	w.settings.AllowedAPIKeyHashes = s.list("allowed_api_key_hashes", 1, hash)
	w.settings.AllowedModels = s.list("allowed_models", 0, some)
	w.settings.AllowedUserIDs = s.list("allowed_user_ids", 0, some)
	w.settings.Disabled, w.settings.Required = s.flag("disabled"), s.flag("is_required")
	w.settings.BYOKOnly, w.settings.Fallback = s.flag("is_byok_only"), s.flag("is_fallback")
	s.must(!w.settings.BYOKOnly || !w.settings.Fallback)
	return w, s.fine
}

// objectOf reads a body that is one object of at most 64 KB in UTF-8, without
// unknown or duplicate members, invalid UTF-8 or unpaired surrogates.
func objectOf(body []byte) (object map[string]any, ok bool) {
	if len(body) > 65536 || !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if opening, _ := d.Token(); opening != json.Delim('{') {
		return nil, false
	}
	object = map[string]any{}
	for d.More() {
		var value any
		token, _ := d.Token()
		name, _ := token.(string)
		_, repeated := object[name]
		if repeated || !slices.Contains(members, name) || d.Decode(&value) != nil {
			return nil, false
		}
		// Half a surrogate pair reads as U+FFFD too.
		if strings.ContainsRune(fmt.Sprint(value), utf8.RuneError) {
			return nil, false
		}
		object[name] = value
	}
	return object, true
}

// fields are a body's members while they are checked.
type fields struct {
	object map[string]any
	fine   bool
}

func (s *fields) must(hold bool) { s.fine = s.fine && hold }

// text returns an optional member that must be a string.
func (s *fields) text(name string) string { return member[string](s, name) }

// flag returns an optional member that must be a boolean.
func (s *fields) flag(name string) bool { return member[bool](s, name) }

func member[T any](s *fields, name string) T {
	value, given := s.object[name]
	typed, ok := value.(T)
	s.must(ok || !given)
	return typed
}

// list returns a member that is null or a list of strings of this shape.
func (s *fields) list(name string, least int, shape *regexp.Regexp) []string {
	if s.object[name] == nil {
		return nil
	}
	texts := []string{}
	values := member[[]any](s, name)
	s.must(len(values) >= least && len(values) <= 100)
	for _, v := range values {
		text, ok := v.(string)
		s.must(ok && shape.MatchString(text))
		texts = append(texts, text)
	}
	return texts
}
