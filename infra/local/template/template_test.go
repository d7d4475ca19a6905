package template_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/template"
)

var made = template.Resources{
	"Things": {"Ref": "things-1", "Arn": "arn:things"},
	"Seal":   {"Ref": "key-1", "Arn": "arn:seal"},
}

func load(t *testing.T, overrides map[string]string) *template.Template {
	t.Helper()
	loaded, err := template.Load("testdata/template.yaml", overrides)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestFunctions(t *testing.T) {
	got, err := load(t, nil).Functions(made)
	if err != nil {
		t.Fatal(err)
	}
	want := []template.Function{{
		ID: "Thing", Handler: "bootstrap", MemoryMB: 512, Timeout: 10 * time.Second,
		Environment: map[string]string{
			"COMMON": "common", "OWN": "mine", "TABLE": "things-1", "KEY": "arn:seal",
			"LONG":   "live-us-east-1-things-1-arn:seal-${kept}",
			"JOINED": "live+two", "SPLIT": "a", "CHOSEN": "no", "EMPTY": "",
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConditionsFollowParameters(t *testing.T) {
	loaded := load(t, map[string]string{"Versioning": "Enabled"})
	functions, err := loaded.Functions(made)
	if err != nil {
		t.Fatal(err)
	}
	if got := functions[0].Environment["CHOSEN"] + functions[0].Environment["NOTHING"]; got != "yeshere" {
		t.Errorf("CHOSEN and NOTHING are %q", got)
	}
	tables, err := loaded.Tables()
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) != 2 || tables[1].Name != "live-archive" {
		t.Errorf("tables are %+v; the conditional one is missing", tables)
	}
	buckets, err := loaded.Buckets()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]template.Bucket{{ID: "Files", Versioning: "Enabled"}}, buckets); diff != "" {
		t.Error(diff)
	}
}

func TestAPI(t *testing.T) {
	api, err := load(t, map[string]string{"Rate": "7", "Stage": "test"}).API()
	if err != nil {
		t.Fatal(err)
	}
	remove := template.Route{Method: "DELETE", Path: "/things/{id}", Function: "Thing"}
	read := template.Route{Method: "GET", Path: "/things/{id}", Function: "Thing"}
	if diff := cmp.Diff([]template.Route{remove, read}, api.Routes); diff != "" {
		t.Error(diff)
	}
	if api.Stage != "test" || api.StageVariables["rate"] != "7" {
		t.Errorf("stage %q with variables %v", api.Stage, api.StageVariables)
	}
	if got, want := api.Throttle(remove), (template.Throttle{Rate: 7, Burst: 5}); got != want {
		t.Errorf("throttle of the method %v, want %v", got, want)
	}
	if got, want := api.Throttle(read), (template.Throttle{Rate: 100, Burst: 200}); got != want {
		t.Errorf("throttle of the stage %v, want %v", got, want)
	}
	fallback := api.Responses["DEFAULT_5XX"]
	if fallback.Status != 500 || fallback.Parameters.Headers["Retry-After"] != "'1'" ||
		fallback.Templates["application/json"] != `{"id":"$context.requestId"}` {
		t.Errorf("gateway response is %+v", fallback)
	}
}

func TestStorage(t *testing.T) {
	loaded := load(t, nil)
	tables, err := loaded.Tables()
	if err != nil {
		t.Fatal(err)
	}
	want := []template.Table{{
		ID:         "Things",
		Attributes: []template.TableAttribute{{Name: "pk", Type: "S"}},
		Keys:       []template.TableKey{{Name: "pk", Kind: "HASH"}},
		TTL:        "exp",
	}}
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Error(diff)
	}
	keys, err := loaded.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]template.Key{{ID: "Seal", Description: "signalbox-local seals"}}, keys); diff != "" {
		t.Error(diff)
	}
	buckets, err := loaded.Buckets()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]template.Bucket{{ID: "Files"}}, buckets); diff != "" {
		t.Error(diff)
	}
}

func TestOutputs(t *testing.T) {
	want := map[string]string{"TableName": "things-1", "KeyArn": "arn:seal"}
	if diff := cmp.Diff(want, load(t, nil).Outputs(made)); diff != "" {
		t.Error(diff)
	}
}

func TestParametersAreChecked(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"Stage", "LIVE", `parameter Stage: "LIVE" does not match [a-z]{1,8}`},
		{"Stage", "alive9", `does not match`},
		{"Rate", "0", "parameter Rate: 0 is less than 1"},
		{"Rate", "1001", "parameter Rate: 1001 is more than 1000"},
		{"Rate", "many", `parameter Rate: "many" is not a number`},
		{"Versioning", "off", `parameter Versioning: "off" is none of Off, Enabled, Suspended`},
		{"Short", "long", `parameter Short: "long" is too short or too long`},
		{"Nonsense", "1", "the template has no parameter Nonsense"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			_, err := template.Load("testdata/template.yaml", map[string]string{c.name: c.value})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWhatWasNotMadeIsAnError(t *testing.T) {
	_, err := load(t, nil).Functions(nil)
	if err == nil || !strings.Contains(err.Error(), "template.yaml:") || !strings.Contains(err.Error(), "Ref of Things is not known") {
		t.Errorf("got %v, want file, line and name", err)
	}
}

// The project's own template, which names its resources as everybody does.
func TestOwnTemplate(t *testing.T) {
	loaded, err := template.Load("../../../template.yaml", map[string]string{"DeleteRatePerMinute": "600"})
	if err != nil {
		t.Fatal(err)
	}
	api, err := loaded.API()
	if err != nil {
		t.Fatal(err)
	}
	want := []template.Route{
		{Method: "GET", Path: "/api/v1/scim/sync-jobs/{id}", Function: "GetSyncJobFunction"},
		{Method: "POST", Path: "/api/v1/byok", Function: "CreateByokKeyFunction"},
		{Method: "DELETE", Path: "/api/v1/files/{file_id}", Function: "DeleteFileFunction"},
	}
	if diff := cmp.Diff(want, api.Routes); diff != "" {
		t.Error(diff)
	}
	if got := api.StageVariables["deleteRatePerMinute"]; got != "600" {
		t.Errorf("deleteRatePerMinute is %q", got)
	}
	for _, route := range api.Routes {
		if api.Throttle(route) == (template.Throttle{}) {
			t.Errorf("%s %s has no throttle", route.Method, route.Path)
		}
	}
}
