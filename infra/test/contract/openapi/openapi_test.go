package openapi_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/test/contract/openapi"
	"signalbox.dev/infra/test/kit"
)

// TestCheckResponse: a response as the service returns it is accepted, and each
// change that makes it wrong is reported.
func TestCheckResponse(t *testing.T) {
	t.Parallel()
	spec, err := openapi.Load("../../../openapi.yaml")
	kit.Must(t, err)
	const job = `{"data":{"id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","status":"running",` +
		`"synced_groups":null,"deleted_groups":null,"error_message":null,` +
		`"created_at":"2025-08-24T10:30:00Z","started_at":"2025-08-24T10:30:02Z","finished_at":null}}`
	check := func(operation string, status int, body, name string, values ...string) error {
		header := http.Header{
			"Content-Type": {"application/json"}, "X-Request-Id": {"5f0c"}, "Cache-Control": {"private, no-cache"}, "Etag": {`"a"`}, "Retry-After": {"5"},
			"Strict-Transport-Security": {"max-age=31536000"}, "X-Content-Type-Options": {"nosniff"},
		}
		header[http.CanonicalHeaderKey(name)] = values
		if len(values) == 0 {
			header.Del(name)
		}
		return spec.CheckResponse(operation, status, header, []byte(body))
	}
	with := func(old, replacement string) string { return strings.Replace(job, old, replacement, 1) }
	for name, err := range map[string]error{
		"job":                  check("getSyncJob", 200, job, ""),
		"unchanged":            check("getSyncJob", 304, "", "Content-Type"),
		"optional header":      check("getSyncJob", 200, job, "Retry-After"),
		"transport header":     check("getSyncJob", 200, job, "X-Amz-Cf-Id", "a"),
		"the gateway's answer": check("getSyncJob", 200, job, "x-amzn-ErrorType", "a"),
	} {
		if err != nil {
			t.Errorf("%s: reported %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"unknown operation":       check("getNothing", 200, job, ""),
		"unlisted status":         check("getSyncJob", 204, "", ""),
		"empty body":              check("getSyncJob", 200, "", ""),
		"two values":              check("getSyncJob", 200, job+"{}", ""),
		"body on 304":             check("getSyncJob", 304, "{}", "Content-Type"),
		"added member":            check("getSyncJob", 200, with(`{"id"`, `{"more":1,"id"`), ""),
		"no such day":             check("getSyncJob", 200, with("2025-08-24", "2025-02-30"), ""),
		"part of a second":        check("getSyncJob", 200, with("30:02Z", "30:02.5Z"), ""),
		"not in UTC":              check("getSyncJob", 200, with("30:02Z", "30:02+00:00"), ""),
		"started while queued":    check("getSyncJob", 200, with("running", "queued"), ""),
		"content type":            check("getSyncJob", 200, job, "Content-Type", "application/json; charset=utf-8"),
		"missing header":          check("getSyncJob", 200, job, "ETag"),
		"undeclared header":       check("getSyncJob", 200, job, "Access-Control-Allow-Origin", "*"),
		"repeated header":         check("getSyncJob", 200, job, "ETag", `"a"`, `"b"`),
		"header out of range":     check("getSyncJob", 200, job, "Retry-After", "0"),
		"padded number":           check("getSyncJob", 200, job, "Retry-After", "05"),
		"header without a number": check("getSyncJob", 200, job, "Retry-After", "soon"),
		"body where none may be":  spec.CheckRequest("deleteFile", []byte("{}")),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestAnswersOfTheTemplate: what the gateway and the firewall answer by themselves is as
// described, for each operation that has the status. So are the throttles.
func TestAnswersOfTheTemplate(t *testing.T) {
	t.Parallel()
	spec, err := openapi.Load("../../../openapi.yaml")
	kit.Must(t, err)
	check := func(name string, status int, body string, header http.Header) {
		t.Helper()
		header.Set("Content-Type", "application/json")
		for operation := range spec.Operations() {
			if status == http.StatusNotFound && operation != "getSyncJob" {
				continue // an unknown route is of no operation; it is answered like an unknown job
			}
			if err := spec.CheckResponse(operation, status, header, []byte(body)); err != nil {
				t.Errorf("%s, as an answer of %s: %v", name, operation, err)
			}
		}
	}
	source, err := template.Load("../../../../template.yaml", map[string]string{"Firewall": "On"})
	kit.Must(t, err)
	api, err := source.API()
	kit.Must(t, err)
	text, err := os.ReadFile("../../../openapi.yaml")
	kit.Must(t, err)
	for operation, route := range spec.Operations() {
		method, at, _ := strings.Cut(route, " ")
		limit := api.Setting(template.Route{Method: method, Path: "/api/v1" + at}).ThrottlingRateLimit
		if throttle := fmt.Sprintf("%.0f %s", limit, operation); !strings.Contains(strings.ReplaceAll(string(text), ",", ""), throttle) {
			t.Errorf("the description does not say that the gateway admits %s requests a second", throttle)
		}
	}
	served := map[string]string{}
	for _, r := range api.Routes { // CreateByokKeyFunction serves createByokKey
		served[strings.ToLower(r.Function[:1])+strings.TrimSuffix(r.Function[1:], "Function")] = r.Method + " " + strings.TrimPrefix(r.Path, "/api/v1")
	}
	if diff := cmp.Diff(spec.Operations(), served); diff != "" {
		t.Errorf("infra/openapi.yaml (-) and template.yaml (+) have other routes:\n%s", diff)
	}
	for kind, r := range api.GatewayResponses {
		header := http.Header{}
		for name, value := range r.ResponseParameters.Headers {
			if name == "WWW-Authenticate" {
				name = "x-amzn-Remapped-WWW-Authenticate" // the gateway renames it
			}
			if len(value) > 2 && value[0] == '\'' && value[len(value)-1] == '\'' {
				value = value[1 : len(value)-1]
			} else if value != "context.requestId" {
				t.Errorf("%s: the gateway reads the value of %s, %s, as an expression", kind, name, value)
			}
			header.Set(name, value)
		}
		check(kind, r.StatusCode, r.ResponseTemplates["application/json"], header)
	}
	type firewall struct {
		CustomResponseBodies map[string]struct{ Content string }
		Rules                []struct {
			Name   string
			Action struct {
				Block struct {
					CustomResponse struct {
						ResponseCode          int
						CustomResponseBodyKey string
						ResponseHeaders       []struct{ Name, Value string }
					}
				}
			}
		}
	}
	firewalls, err := template.Declared[firewall](source, "AWS::WAFv2::WebACL")
	kit.Must(t, err)
	answers := 0
	for _, rule := range firewalls[0].Properties.Rules {
		r := rule.Action.Block.CustomResponse
		if r.ResponseCode == 0 {
			continue // the gateway answers
		}
		answers++
		header := http.Header{}
		for _, h := range r.ResponseHeaders {
			header.Set(h.Name, h.Value)
		}
		body := firewalls[0].Properties.CustomResponseBodies[r.CustomResponseBodyKey].Content
		check("the firewall's "+rule.Name, r.ResponseCode, body, header)
		if header.Get("X-Request-Id") != "none" || !strings.Contains(body, `"request_id":"none"`) {
			t.Errorf("the firewall's %s: %v %s", rule.Name, header, body)
		}
	}
	if answers != 2 {
		t.Errorf("%d answers of the firewall, want 2", answers)
	}
}
