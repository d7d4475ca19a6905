package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
	"signalbox.dev/shared/auth"
)

// TestStrictJSON sends bodies that the gateway could change or lose on their way
// into an event. Issues are expected at path; "-" means none. The rules
// themselves are tested in shared/api.
func TestStrictJSON(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, c := range []struct{ name, body, path string }{
		{"plain", bodyWith(""), "-"},
		{"white space around", " \t\r\n" + bodyWith("") + " \t\r\n", "-"},
		{"empty", "", ""},
		{"white space", " \n ", ""},
		{"null", "null", ""},
		{"array", "[" + bodyWith("") + "]", ""},
		{"string", `"text"`, ""},
		{"not closed", strings.TrimSuffix(bodyWith(""), "}"), ""},
		{"second object", bodyWith("") + "{}", ""},
		{"NUL after", bodyWith("") + "\x00", ""},
		{"byte order mark", "\ufeff" + bodyWith(""), ""},
		{"raw line break", keyBody("\"a\nb\""), ""},
		{"duplicate member", bodyWith(`,"key":"other"`), "/key"},
		{"duplicate member, escaped", bodyWith(`,"\u006bey":"other"`), "/key"},
		{"unknown member", bodyWith(`,"nonsense":1`), ""},
		{"deep array", bodyWith(`,"allowed_models":` + strings.Repeat("[", 30000)), ""},
		{"largest", bodyWith("") + strings.Repeat(" ", 65536-len(bodyWith(""))), "-"},
		{"one byte too large", bodyWith("") + strings.Repeat(" ", 65537-len(bodyWith(""))), ""},
		{"far too large", bodyWith(`,"name":"` + strings.Repeat("n", 200_000) + `"`), ""},
		{"surrogate pair", keyBody(`"\ud83d\ude00"`), "-"},
		{"four-byte character", keyBody(`"😀"`), "-"},
		{"escaped NUL", keyBody(`"a\u0000b"`), "-"},
		{"a document", keyBody(`"{\"type\":\"service_account\"}\r\n"`), "-"},
		{"noncharacter", keyBody(`"\uffff"`), "-"},
		{"U+FFFD", keyBody("\"a\ufffdb\""), "/key"},
		{"unpaired surrogate", keyBody(`"\ud83d"`), "/key"},
		{"not UTF-8", keyBody("\"a\xffb\""), "/key"},
		{"overlong", keyBody("\"a\xc0\xafb\""), "/key"},
		{"surrogate in UTF-8", keyBody("\"\xed\xa0\x80\""), "/key"},
		{"cut character", keyBody("\"\xf0\x9f\x98\""), "/key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := post(c.body).As(n.management).Do(t)
			if c.path == "-" {
				r.Is(t, http.StatusCreated)
				return
			}
			r.Refuses(t, c.path)
		})
	}
}

// TestContentHeaders sends headers that the gateway could join, split or lose.
func TestContentHeaders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for name, c := range map[string]struct {
		name   string
		values []string
		status int
	}{
		"upper case":        {"Content-Type", []string{"Application/JSON"}, 201},
		"with its charset":  {"Content-Type", []string{`application/json;charset="UTF-8"`}, 201},
		"no type":           {"Content-Type", nil, 400},
		"empty type":        {"Content-Type", []string{""}, 400},
		"another type":      {"Content-Type", []string{"text/plain"}, 400},
		"a list of types":   {"Content-Type", []string{"application/json, text/plain"}, 400},
		"type sent twice":   {"Content-Type", []string{"application/json", "application/json"}, 400},
		"identity encoding": {"Content-Encoding", []string{"identity"}, 201},
		"other encoding":    {"Content-Encoding", []string{"gzip"}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(bodyWith("")).As(n.management).With(c.name, c.values...).Do(t).Is(t, c.status)
			if c.status == http.StatusBadRequest {
				r.Refuses(t, "")
			}
		})
	}
}

// TestFields sends each member at its limits and just past them: code and
// description must agree. (checkEnvelope compares accepted requests.)
func TestFields(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	text := func(text string, times int) string { return `"` + strings.Repeat(text, times) + `"` }
	list := func(element string, times int) string {
		return "[" + strings.Repeat(element+",", times-1) + element + "]"
	}
	own, texts := `"`+hashOf(n.standard)+`"`, []string{"null", "[]", list(`"x"`, 100), list(text("😀", 255), 1)}
	notTexts := []string{list(`"x"`, 101), list(text("😀", 256), 1), `["x",""]`, "[1]", "[null]", "{}", `"x"`}
	flags, notFlags := []string{"true", "false"}, []string{"null", `"true"`, "1", "[]"}
	for _, c := range []struct {
		member            string
		accepted, refused []string
	}{
		{"key", []string{`"k"`, text("k", 32768), text("é", 16384)}, []string{`""`, "null", "1", `["k"]`, text("k", 32769), text("é", 16385)}},
		{"provider", nil, []string{"null", `"OpenAI"`, `"openai "`, `"nobody"`}},
		{"name", []string{"null", `""`, text("😀", 255)}, []string{"7", text("😀", 256)}},
		{"workspace_id", []string{`"` + n.second + `"`, `"` + strings.ToUpper(n.second) + `"`},
			[]string{"null", `""`, `"{` + n.second + `}"`, `"` + strings.ReplaceAll(n.second, "-", "") + `"`}},
		{"allowed_api_key_hashes", []string{"null", list(own, 1), list(own, 100)},
			[]string{list(own, 101), "[]", "[" + strings.ToUpper(own) + "]", "[" + own + `,"abc"]`, "[null]", own}},
		{"allowed_models", texts, notTexts},
		{"allowed_user_ids", texts, notTexts},
		{"disabled", flags, notFlags},
		{"is_required", flags, notFlags},
		{"is_byok_only", append(flags, `true,"is_fallback":false`), append(notFlags, `true,"is_fallback":true`)},
		{"is_fallback", append(flags, `true,"is_required":true`), notFlags},
	} {
		send := func(t *testing.T, value string) (string, response) {
			t.Helper()
			members := map[string]string{"key": `"k"`, "provider": `"openai"`, c.member: value}
			var all []string
			for name, value := range members {
				all = append(all, `"`+name+`":`+value)
			}
			body := "{" + strings.Join(all, ",") + "}"
			return body, post(body).As(n.management).Do(t)
		}
		for _, value := range c.accepted {
			t.Run(fmt.Sprintf("%s accepts %.20s", c.member, value), func(t *testing.T) {
				_, got := send(t, value)
				got.Is(t, http.StatusCreated)
			})
		}
		for _, value := range c.refused {
			t.Run(fmt.Sprintf("%s refuses %.20s", c.member, value), func(t *testing.T) {
				body, got := send(t, value)
				for _, path := range got.Is(t, http.StatusBadRequest).Issues() {
					if path != "/"+c.member && !strings.HasPrefix(path, "/"+c.member+"/") {
						t.Errorf("an issue at %s", path)
					}
				}
				// A schema counts characters; the limit of a key is in bytes.
				if the.spec.CheckRequest("createByokKey", []byte(body)) == nil && !strings.Contains(value, "é") {
					t.Error("refused although the description allows it")
				}
			})
		}
	}
}

// TestAllIssuesAtOnce: one response lists every fault that the request alone
// shows, up to 100.
func TestAllIssuesAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	post(`{"provider":1,"name":2,"workspace_id":"x","allowed_api_key_hashes":["x"],"allowed_models":["x",""],`+
		`"allowed_user_ids":[3],"disabled":null,"key":"","more":1}`).
		As(n.management).With("Content-Type").With("Idempotency-Key", "a b").Do(t).
		Refuses(t, "", "", "", "/key", "/provider", "/name", "/workspace_id", "/allowed_api_key_hashes/0",
			"/allowed_models/1", "/allowed_user_ids/0", "/disabled")
	bad := "[" + strings.Repeat(`"",`, 89) + `""]`
	got := post(bodyWith(`,"allowed_models":`+bad+`,"allowed_user_ids":`+bad)).As(n.management).Do(t).Is(t, http.StatusBadRequest).Issues()
	if len(got) != 100 {
		t.Errorf("got %d issues, want 100", len(got))
	}
}

// TestProviders: each slug of the description is accepted. Without a name it is the name.
func TestProviders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	slugs := the.spec.Enum("Provider")
	if len(slugs) != 113 {
		t.Fatalf("got %d slugs, want 113", len(slugs))
	}
	for i, slug := range slugs { // more than one workspace holds
		c := post(`{"key":"k","provider":"` + slug + `","workspace_id":"` + []string{n.workspace, n.second}[i%2] + `"}`).As(n.management).Do(t).Created(t)
		if c.Provider != slug || c.Name != slug || c.SortOrder != 0 {
			t.Errorf("got %+v, want provider and name %q at 0", c, slug)
		}
	}
}

// TestEcho: the response contains the settings that were sent, and of the key
// its label.
func TestEcho(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	h := hashOf(n.standard)
	began := time.Now()
	got := post(bodyWith(`,"name":"N \u00fc","workspace_id":"` + strings.ToUpper(n.second) + `","disabled":true,"is_required":true,` +
		`"is_byok_only":true,"allowed_api_key_hashes":["` + h + `","` + h + `"],"allowed_models":["a/b","a/b"],"allowed_user_ids":[]`)).
		As(n.management).Do(t).Created(t)
	want := client.Credential{
		ID: got.ID, Name: "N ü", Provider: "openai", Label: "sk-...AbCd", Workspace: n.second, CreatedAt: got.CreatedAt,
		Disabled: true, ByokOnly: true, Required: true,
		Hashes: []string{h, h}, Models: []string{"a/b", "a/b"}, Users: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The server's clock may be another machine's.
	if got.CreatedAt.Before(began.Add(-time.Minute)) || got.CreatedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("created at %v, requested from %v to %v", got.CreatedAt, began, time.Now())
	}
}

// TestSortOrder: positions count from 0, for each workspace and provider.
func TestSortOrder(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	second := bodyWith(`,"workspace_id":"` + n.second + `"`)
	another := func(body string) string { return strings.Replace(body, "openai", "anthropic/2", 1) }
	var got []int64
	for _, body := range []string{
		bodyWith(""), bodyWith(""), second, another(bodyWith("")), bodyWith(`,"workspace_id":"` + n.workspace + `"`), another(second), second,
	} {
		got = append(got, post(body).As(n.management).Do(t).Created(t).SortOrder)
	}
	if want := []int64{0, 1, 0, 0, 2, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCreatesAtOnce: of 200 credentials in one workspace no two have one position.
func TestCreatesAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	const atATime = 80 // slow engines serve as many in a function's ten seconds
	positions, ids := map[int64]bool{}, map[string]bool{}
	responses, _ := atOnce(t, atATime, func(int) request { return post(bodyWith("")).As(n.management) })
	for _, r := range responses {
		c := r.Created(t)
		positions[c.SortOrder], ids[c.ID] = true, true
	}
	if len(ids) != atATime || len(positions) != atATime {
		t.Errorf("got %d ids and %d positions, want %d each", len(ids), len(positions), atATime)
	}
}

// TestAFullWorkspace: one credential more than the bound is a 400 that names it. A minute
// later there is room for credentials that were not stored.
func TestAFullWorkspace(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	row := testkit.Key("workspace#"+n.workspace, "workspace")
	rows := testkit.Rows{DB: n.DynamoDB, Table: n.Access}
	rows.Change(t, row, func(row testkit.Row) {
		row["used"], row["claimed_at"] = testkit.Number("100"), testkit.Number(fmt.Sprint(time.Now().UnixNano()))
	})
	refused := post(bodyWith("")).As(n.management).Do(t)
	refused.Refuses(t, "/workspace_id")
	if !strings.Contains(string(refused.Body), "at most 100 credentials") {
		t.Errorf("refused as %s", refused.Body)
	}
	rows.Change(t, row, func(row testkit.Row) { row["claimed_at"] = testkit.Number("1") })
	post(bodyWith("")).As(n.management).Do(t).Created(t)
	testkit.Must(t, auth.NewRegistry(n.DynamoDB, n.Access).MakeRoom(t.Context(), n.Workspace))
	post(bodyWith("")).As(n.management).Do(t).Created(t)
}
