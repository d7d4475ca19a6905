package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/client"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/seal"
)

const least = `{"key":"sk-0123456789abcdef","provider":"openai"`

// An accepted body is stored and shown with the values that encoding/json reads. Any
// other body gets issues and stores nothing.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		least + `}`,
		least + `,"name":null,"allowed_api_key_hashes":null,"allowed_models":[],"allowed_user_ids":["u","\u00e9"]}`,
		least + `,"name":"n","workspace_id":"HOME","is_fallback":true,"disabled":true}`,
		least + `,"allowed_api_key_hashes":["` + strings.Repeat("0a", 32) + `"]}`, // of nobody
		least + `,"is_byok_only":true,"is_required":true}`,
		least + `,"name":""}`,
		least + `,"name":"` + strings.Repeat("\u00e9", 255) + `"}`,
		`{"key":"{\"type\":\"service_account\"}\n","provider":"z-ai"}`,
		least + `,"is_byok_only":true,"is_fallback":true}`,
		least + `,"allowed_api_key_hashes":[]}`,
		least + `,"allowed_models":["",1,null]}`,
		least + `,"allowed_model":[]}`,
		least + `,"key":"another"}`,
		least + `,"\u006bey":"another"}`,
		least + `,"workspace_id":null}`,
		least + `,"workspace_id":""}`,
		least + `,"name":"` + strings.Repeat("x", 256) + `"}`,
		least + `,"hashes":[]}`,
		`{"provider":"openai"}`, `{"key":"sk"}`, `{"key":"","provider":"OpenAI"}`, `{"key":"sk","provider":"openai\n"}`,
		`{"key":"\ud800","provider":"openai"}`, "{\"key\":\"\ufffd\",\"provider\":\"openai\"}", "{\"key\":\"\xff\",\"provider\":\"openai\"}",
		`{5:1}`, `{"ke`, "{\"\xff\":1}", "\ufeff{}", `{}`, `{} {}`, `[]`, `null`, `{"key":`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		cases.OnModel(t, "", 0, func(env *cases.Environment) { checkBody(env, body) })
	})
}

// checkBody compares what is stored and shown with what encoding/json reads.
func checkBody(env *cases.Environment, body []byte) {
	t, workspace := env.TB(), string(env.Tenant.Workspace)
	body = bytes.ReplaceAll(body, []byte("HOME"), []byte(strings.ToUpper(workspace)))
	op := env.Request("create", cases.Request{Assemble: assemble, Event: createRequest(nil).SendingBytes(body).As(env.Tenant.Management)})
	got := env.Short(op, 0).Shown.(functest.Answer)
	all, err := byok.ReadAll(t.Context(), env.DB, env.Outputs.Credentials, env.Tenant.ID, env.Tenant.Workspace)
	kit.Must(t, err)
	if got.Status != http.StatusCreated {
		checkRefusal(t, got, len(all), body)
		return
	}
	var given map[string]any
	kit.Must(t, json.Unmarshal(body, &given))
	want := kit.SettingsByName(t, byok.Settings{})
	maps.Copy(want, map[string]any{"name": given["provider"], "workspace_id": workspace, "sort_order": 0.0})
	key := fmt.Sprint(given["key"])
	maps.DeleteFunc(given, func(name string, value any) bool { return name == "key" || name == "name" && value == nil })
	maps.Copy(want, given)
	want["workspace_id"] = strings.ToLower(fmt.Sprint(want["workspace_id"]))
	stored := kit.SettingsByName(t, all[0].Settings)
	maps.Copy(stored, map[string]any{"workspace_id": string(all[0].Workspace), "sort_order": float64(all[0].SortOrder)})
	opened, err := seal.NewOpener(env.KMS, env.Outputs.SealingKey).Open(t.Context(), all[0].Sealed, all[0].Binding())
	if diff := cmp.Diff(want, stored); err != nil || diff != "" || string(opened.Reveal()) != key || len(all) != 1 {
		t.Fatalf("%q: key %q, %d stored, %v (-want +stored):\n%s", body, opened.Reveal(), len(all), err, diff)
	}
	var shown struct{ Data map[string]any }
	kit.Must(t, json.Unmarshal([]byte(got.Body), &shown))
	maps.Copy(want, map[string]any{"id": string(all[0].ID), "created_at": all[0].CreatedAt.Format(time.RFC3339), "label": byok.Label([]byte(key))})
	if diff := cmp.Diff(want, shown.Data); diff != "" {
		t.Fatalf("%q (-want +shown):\n%s", body, diff)
	}
}

// checkRefusal checks a 400: nothing is stored, and each issue has a path and a
// message. The message repeats nothing of the body except names of members.
func checkRefusal(t testing.TB, got functest.Answer, stored int, body []byte) {
	t.Helper()
	var refusal client.Failure
	kit.Must(t, json.Unmarshal([]byte(got.Body), &refusal))
	issues := refusal.Error.Metadata.Issues
	if got.Status != http.StatusBadRequest || len(issues) < 1 || len(issues) > 100 || stored > 0 {
		t.Fatalf("status %d, %d stored, want 400, none and 1 to 100 issues: %s", got.Status, stored, got.Body)
	}
	const repeated = 10 // texts of this length are not equal by chance
	name := regexp.MustCompile(strings.Join(members, "|"))
	path := regexp.MustCompile(`^(/(` + strings.Join(members, "|") + `)(/[0-9]+)?)?$`)
	for _, i := range issues {
		if !path.MatchString(i.Path) || i.Message == "" {
			t.Fatalf("issue %q, want a path of the body and a message", i)
		}
		text := name.ReplaceAllString(i.Message, "")
		for at := 0; at+repeated <= len(text); at++ {
			if bytes.Contains(body, []byte(text[at:at+repeated])) {
				t.Fatalf("issue %q repeats %q", i, text[at:at+repeated])
			}
		}
	}
}
