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
