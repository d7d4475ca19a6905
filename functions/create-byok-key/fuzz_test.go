package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/byok"
)

// bodies are the seeds of the fuzz tests: sound ones first, then each kind of
// fault.
func bodies() [][]byte {
	const least = `"key":"sk-0123456789abcdef","provider":"openai"`
	var all [][]byte
	for _, body := range []string{
		`{` + least + `}`,
		`{` + least + `,"name":null,"allowed_api_key_hashes":null,"allowed_models":[],"allowed_user_ids":["u","\u00e9"]}`,
		`{` + least + `,"name":"n","workspace_id":"` + strings.ToUpper(onlyWorkspace) + `","is_fallback":true,"is_required":true,"disabled":true}`,
		`{` + least + `,"allowed_api_key_hashes":["` + strings.Repeat("0a", 32) + `"],"is_byok_only":true}`,
		`{` + least + `,"is_byok_only":true,"is_fallback":true}`,
		`{` + least + `,"name":""}`,
		`{` + least + `,"allowed_api_key_hashes":[]}`,
		`{` + least + `,"allowed_models":["",1,null]}`,
		`{` + least + `,"allowed_model":[]}`,
		`{` + least + `,"key":"another"}`,
		`{` + least + `,"\u006bey":"another"}`,
		`{` + least + `,"workspace_id":null}`,
		`{` + least + `,"name":"` + strings.Repeat("\u00e9", 255) + `"}`,
		`{` + least + `,"name":"` + strings.Repeat("x", 256) + `"}`,
		`{"key":"\ud800","provider":"openai"}`, "{\"key\":\"\ufffd\",\"provider\":\"openai\"}", "{\"key\":\"\xff\",\"provider\":\"openai\"}",
		`{"key":"{\"type\":\"service_account\"}\n","provider":"anthropic/2"}`, `{"key":"","provider":"OpenAI"}`,
		`{"key":"sk","provider":"openai\n"}`, `{"key":"sk","provider":"ai21\naion-labs"}`,
		`{` + least + `,"hashes":[]}`, `{5:1}`, `{"ke`, "{\"\xff\":1}", "\ufeff{}", `{}`, `{} {}`, `[]`, `null`, `{"key":`, ``,
	} {
		all = append(all, []byte(body))
	}
	return all
}

// A body is accepted if and only if the contract's rules, read by another decoder,
// accept it, with the same values. Any other gets issues and stores nothing.
func FuzzDecode(f *testing.F) {
	for _, body := range bodies() {
		f.Add(body)
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		m := newMemory()
		got := m.send(t, body)
		want, ok := o.read(body)
		if !ok {
			checkRefusal(t, got, m, body)
			return
		}
		if got.Status != http.StatusCreated || m.written != 1 {
			t.Fatalf("%q: status %d, %s", body, got.Status, got.Body)
		}
		stored := wanted{m.given.Settings, m.key, string(m.place)}
		if !reflect.DeepEqual(stored, want) {
			t.Fatalf("%q (-want +stored):\n%s", body, cmp.Diff(want, stored, cmp.AllowUnexported(wanted{})))
		}
		checkShown(t, got, want)
	})
}

// checkShown checks that the answer contains the wanted fields, and only the label of
// the key.
func checkShown(t *testing.T, got functest.Answer, want wanted) {
	t.Helper()
	var shown struct{ Data map[string]any }
	testkit.Must(t, json.Unmarshal([]byte(got.Body), &shown))
	asked := testkit.SettingsByName(t, want.settings)
	maps.Copy(asked, map[string]any{
		"id": shown.Data["id"], "created_at": shown.Data["created_at"], "sort_order": 0.0,
		"workspace_id": want.workspace, "label": byok.Label([]byte(want.key)),
	})
	if diff := cmp.Diff(asked, shown.Data); diff != "" {
		t.Fatalf("the answer (-asked +shown):\n%s", diff)
	}
}

// checkRefusal checks a 400: nothing is stored, and its issues have a path and a
// message that repeats nothing of the body, names of members aside.
func checkRefusal(t *testing.T, got functest.Answer, m *memory, body []byte) {
	t.Helper()
	var refusal struct {
		Error struct {
			Metadata struct {
				Issues []struct{ Path, Message string }
			}
		}
	}
	testkit.Must(t, json.Unmarshal([]byte(got.Body), &refusal))
	issues := refusal.Error.Metadata.Issues
	if got.Status != http.StatusBadRequest || len(issues) < 1 || len(issues) > 100 || m.written > 0 {
		t.Fatalf("status %d, %d stored, %s", got.Status, m.written, got.Body)
	}
	const repeated = 10 // characters that cannot be the body's by chance
	name := regexp.MustCompile(strings.Join(members, "|"))
	path := regexp.MustCompile(`^(/(` + strings.Join(members, "|") + `)(/[0-9]+)?)?$`)
	for _, i := range issues {
		if !path.MatchString(i.Path) || i.Message == "" {
			t.Fatalf("issue %q", i)
		}
		text := name.ReplaceAllString(i.Message, "")
		for at := 0; at+repeated <= len(text); at++ {
			if bytes.Contains(body, []byte(text[at:at+repeated])) {
				t.Fatalf("issue %q repeats %q", i, text[at:at+repeated])
			}
		}
	}
}
