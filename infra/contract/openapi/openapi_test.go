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

// TestCheckResponse: a response as the service returns it is accepted, and each
// change that makes it wrong is reported.
func TestCheckResponse(t *testing.T) {
	t.Parallel()
	spec := load(t)
	common := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"5f0c"}, "Cache-Control": {"no-store"}}
	job := exchange{"getSyncJob", 200, common, `{"data":{"id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","status":"running",` +
		`"synced_groups":null,"deleted_groups":null,"error_message":null,` +
		`"created_at":"2025-08-24T10:30:00Z","started_at":"2025-08-24T10:30:02Z","finished_at":null}}`}.
		set("ETag", `"a"`).set("Cache-Control", "private, no-cache").set("Retry-After", "5")
	unchanged := job.set("Content-Type").as(304).with(job.body, "")
	unauthorized := exchange{"deleteFile", 401, common, `{"error":{"code":401,"message":"Missing Authentication header",` +
		`"metadata":{"request_id":"5f0c","reason":"missing"}}}`}.set("X-Amzn-Remapped-WWW-Authenticate", "Bearer")
	for name, e := range map[string]exchange{
		"job": job, "unchanged": unchanged, "unauthorized": unauthorized,
		"optional header": job.set("Retry-After"),
		"transport":       job.set("Date", "Sun, 24 Aug 2025 10:30:00 GMT").set("X-Amz-Cf-Id", "a"),
	} {
		if err := check(spec, e); err != nil {
			t.Errorf("%s: reported %v", name, err)
		}
	}
	for name, e := range map[string]exchange{
		"unknown operation":       {operation: "getNothing", status: 200},
		"unlisted status":         unauthorized.as(204),
		"another status":          unauthorized.as(403),
		"empty body":              job.with(job.body, ""),
		"two values":              job.with("}}", "}}{}"),
		"body on 304":             unchanged.with("", "{}"),
		"content type":            job.set("Content-Type", "application/json; charset=utf-8"),
		"no content type":         job.set("Content-Type"),
		"added member":            job.with(`{"id"`, `{"more":1,"id"`),
		"added beside data":       job.with(`{"data"`, `{"more":1,"data"`),
		"upper-case id":           job.with("7c9e6679", "7C9E6679"),
		"no such day":             job.with("2025-08-24", "2025-02-30"),
		"started while queued":    job.with("running", "queued"),
		"unknown reason":          unauthorized.with(`"missing"`, `"absent"`),
		"missing header":          job.set("ETag"),
		"undeclared header":       job.set("Access-Control-Allow-Origin", "*"),
		"header of another":       unauthorized.set("RateLimit", `"delete-file";r=19;t=1`),
		"repeated header":         job.set("ETag", `"a"`, `"b"`),
		"header out of range":     job.set("Retry-After", "0"),
		"padded number":           job.set("Retry-After", "05"),
		"header without a number": job.set("Retry-After", "soon"),
	} {
		if check(spec, e) == nil {
			t.Errorf("%s: accepted %+v", name, e)
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
