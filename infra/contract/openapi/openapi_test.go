package openapi_test

import (
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/contract/openapi"
)

// exchange is a response of an operation.
type exchange struct {
	operation string
	status    int
	header    http.Header
	body      string
}

// with replaces a piece of the body.
func (e exchange) with(old, replacement string) exchange {
	e.body = strings.Replace(e.body, old, replacement, 1)
	return e
}

// set replaces a header; without values it is omitted.
func (e exchange) set(name string, values ...string) exchange {
	e.header = e.header.Clone()
	delete(e.header, http.CanonicalHeaderKey(name))
	if len(values) > 0 {
		e.header[http.CanonicalHeaderKey(name)] = values
	}
	return e
}

func (e exchange) as(status int) exchange {
	e.status = status
	return e
}

// TestCheckResponse: the suite's responses are accepted, and every change that
// makes one wrong is reported.
func TestCheckResponse(t *testing.T) {
	t.Parallel()
	spec := load(t)
	common := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"5f0c"}, "Cache-Control": {"no-store"}}
	job := exchange{"getSyncJob", 200, common, `{"data":{"id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","status":"running",` +
		`"synced_groups":null,"deleted_groups":null,"error_message":null,` +
		`"created_at":"2025-08-24T10:30:00Z","started_at":"2025-08-24T10:30:02Z","finished_at":null}}`}.
		set("ETag", `"a"`).set("Cache-Control", "private, no-cache").set("Retry-After", "5")
	created := exchange{"createByokKey", 201, common, `{"data":{"id":"3d813cbb-47fb-42ba-91df-831e1593ac29","name":"openai",` +
		`"provider":"openai","label":"sk-...AbCd","workspace_id":"0f6a8f0e-3a52-4a7e-9a35-6e1d2c3b4a59",` +
		`"created_at":"2025-08-24T10:30:00Z","disabled":false,"is_byok_only":false,"is_fallback":false,"is_required":false,` +
		`"allowed_api_key_hashes":null,"allowed_models":null,"allowed_user_ids":[],"sort_order":0}}`}.
		set("Idempotent-Replayed", "true")
	deleted := exchange{"deleteFile", 200, common, `{"id":"file_a","type":"file_deleted"}`}.
		set("RateLimit-Policy", `"delete-file";q=20;w=20`).set("RateLimit", `"delete-file";r=19;t=1`).
		set("X-RateLimit-Limit", "20").set("X-RateLimit-Remaining", "19").set("X-RateLimit-Reset", "1")
	unauthorized := exchange{"deleteFile", 401, common, `{"error":{"code":401,"message":"Missing Authentication header",` +
		`"metadata":{"request_id":"5f0c","reason":"missing"}}}`}.set("X-Amzn-Remapped-WWW-Authenticate", "Bearer")
	unchanged := job.set("Content-Type").as(304).with(job.body, "")
	for name, e := range map[string]exchange{
		"job": job, "created": created, "deleted": deleted, "unauthorized": unauthorized, "unchanged": unchanged,
		"no polling":     job.set("Retry-After"),
		"transport":      job.set("Date", "Sun, 24 Aug 2025 10:30:00 GMT").set("Content-Length", "9"),
		"first response": created.set("Idempotent-Replayed"),
		"long wait":      deleted.set("RateLimit", `"delete-file";r=0;t=1200`),
	} {
		if err := check(spec, e); err != nil {
			t.Errorf("%s: reported %v", name, err)
		}
	}
	for name, e := range map[string]exchange{
		"unknown operation":       {operation: "getNothing", status: 200},
		"unlisted status":         deleted.as(204),
		"another status":          unauthorized.as(403),
		"empty body":              job.with(job.body, ""),
		"no JSON":                 job.with("}}", "}"),
		"two values":              job.with("}}", "}}{}"),
		"body on 304":             unchanged.with("", "{}"),
		"content type":            job.set("Content-Type", "application/json; charset=utf-8"),
		"no content type":         job.set("Content-Type"),
		"missing field":           job.with(`,"finished_at":null`, ""),
		"added field":             job.with(`{"id"`, `{"more":1,"id"`),
		"added beside data":       job.with(`{"data"`, `{"more":1,"data"`),
		"upper-case id":           job.with("7c9e6679", "7C9E6679"),
		"fractional seconds":      job.with("00Z", "00.5Z"),
		"no such day":             job.with("2025-08-24", "2025-02-30"),
		"counts too early":        job.with(`"synced_groups":null`, `"synced_groups":1`),
		"started while queued":    job.with("running", "queued"),
		"fractional number":       created.with(`"sort_order":0`, `"sort_order":0.5`),
		"null name":               created.with(`"name":"openai"`, `"name":null`),
		"unlisted provider":       created.with(`"provider":"openai"`, `"provider":"OpenAI"`),
		"label shows too much":    created.with("sk-...AbCd", "sk-p...AbCd"),
		"the key":                 created.with(`{"id"`, `{"key":"sk-1","id"`),
		"wrong constant":          deleted.with("file_deleted", "deleted"),
		"error code":              unauthorized.with("401", "400"),
		"error text":              unauthorized.with("Missing", "missing"),
		"unknown reason":          unauthorized.with(`"missing"`, `"absent"`),
		"no request id":           unauthorized.with(`"request_id":"5f0c",`, ""),
		"missing header":          deleted.set("RateLimit"),
		"undeclared header":       deleted.set("Access-Control-Allow-Origin", "*"),
		"header of another":       unauthorized.set("RateLimit", `"delete-file";r=19;t=1`),
		"repeated header":         job.set("ETag", `"a"`, `"b"`),
		"cached secret":           created.set("Cache-Control", "private"),
		"header out of range":     job.set("Retry-After", "0"),
		"header without a number": job.set("Retry-After", "1.5"),
		"padded number":           deleted.set("X-RateLimit-Reset", "01"),
		"header's pattern":        deleted.set("RateLimit", `delete-file;r=19;t=1`),
	} {
		if check(spec, e) == nil {
			t.Errorf("%s: accepted %+v", name, e)
		}
	}
}

func TestCheckRequest(t *testing.T) {
	t.Parallel()
	spec := load(t)
	for body, valid := range map[string]bool{
		`{"key":"k","provider":"openai"}`:                                         true,
		`{"key":"k","provider":"anthropic/2","name":null,"allowed_models":[]}`:    true,
		`{"key":"","provider":"openai"}`:                                          false,
		`{"key":"k","provider":"openai","is_byok_only":true,"is_fallback":true}`:  false,
		`{"key":"k","provider":"openai","is_byok_only":true,"is_fallback":false}`: true,
		`{"key":"k","provider":"openai","allowed_model":["a"]}`:                   false,
	} {
		if err := spec.CheckRequest("createByokKey", []byte(body)); (err == nil) != valid {
			t.Errorf("%s: got %v, want valid %v", body, err, valid)
		}
	}
	if spec.CheckRequest("deleteFile", []byte("{}")) == nil {
		t.Error("accepted a body for deleteFile")
	}
}

func load(t *testing.T) *openapi.Spec {
	t.Helper()
	spec, err := openapi.Load("../../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func check(spec *openapi.Spec, e exchange) error {
	return spec.CheckResponse(e.operation, e.status, e.header, []byte(e.body))
}
