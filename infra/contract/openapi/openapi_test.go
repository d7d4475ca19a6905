package openapi_test

import (
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/contract/openapi"
)

const description = "../../openapi.yaml"

// exchange is a response of an operation, right until something is done to it.
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

// set replaces a header, or adds it.
func (e exchange) set(name string, values ...string) exchange {
	e.header = e.header.Clone()
	e.header[http.CanonicalHeaderKey(name)] = values
	return e
}

// without leaves a header out.
func (e exchange) without(name string) exchange {
	e.header = e.header.Clone()
	e.header.Del(name)
	return e
}

// answers makes the exchange another status.
func (e exchange) answers(status int) exchange {
	e.status = status
	return e
}

func job() exchange {
	return exchange{"getSyncJob", 200, http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"5f0c"}, "Etag": {`"a"`},
		"Cache-Control": {"private, no-cache"}, "Retry-After": {"5"},
	}, `{"data":{"id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","status":"running",` +
		`"synced_groups":null,"deleted_groups":null,"error_message":null,` +
		`"created_at":"2025-08-24T10:30:00Z","started_at":"2025-08-24T10:30:02Z","finished_at":null}}`}
}

func created() exchange {
	return exchange{"createByokKey", 201, http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"5f0c"}, "Cache-Control": {"no-store"},
		"Idempotent-Replayed": {"true"},
	}, `{"data":{"id":"3d813cbb-47fb-42ba-91df-831e1593ac29","name":"openai","provider":"openai",` +
		`"label":"sk-...AbCd","workspace_id":"0f6a8f0e-3a52-4a7e-9a35-6e1d2c3b4a59",` +
		`"created_at":"2025-08-24T10:30:00Z","disabled":false,"is_byok_only":false,"is_fallback":false,` +
		`"is_required":false,"allowed_api_key_hashes":null,"allowed_models":null,"allowed_user_ids":[],` +
		`"sort_order":0}}`}
}

func deleted() exchange {
	return exchange{"deleteFile", 200, http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"5f0c"}, "Cache-Control": {"no-store"},
		"Ratelimit-Policy": {`"delete-file";q=20;w=20`}, "Ratelimit": {`"delete-file";r=19;t=1`},
		"X-Ratelimit-Limit": {"20"}, "X-Ratelimit-Remaining": {"19"}, "X-Ratelimit-Reset": {"1"},
	}, `{"id":"file_a","type":"file_deleted"}`}
}

func unauthorized() exchange {
	return exchange{"deleteFile", 401, http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"5f0c"}, "Cache-Control": {"no-store"},
		"X-Amzn-Remapped-Www-Authenticate": {"Bearer"},
	}, `{"error":{"code":401,"message":"Missing Authentication header",` +
		`"metadata":{"request_id":"5f0c","reason":"missing"}}}`}
}

func unchanged() exchange {
	e := job().without("Content-Type").answers(304)
	e.body = ""
	return e
}

func TestCheckResponse(t *testing.T) {
	t.Parallel()
	spec := load(t)
	for name, e := range map[string]exchange{
		"job": job(), "created": created(), "deleted": deleted(), "unauthorized": unauthorized(),
		"unchanged":     unchanged(),
		"no polling":    job().without("Retry-After"),
		"transport":     job().set("Date", "Sun, 24 Aug 2025 10:30:00 GMT").set("Content-Length", "9"),
		"first answer":  created().without("Idempotent-Replayed"),
		"long idle key": deleted().set("RateLimit", `"delete-file";r=0;t=1200`),
	} {
		t.Run("right/"+name, func(t *testing.T) {
			if err := check(spec, e); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
	for name, e := range wrong() {
		t.Run("wrong/"+name, func(t *testing.T) {
			if check(spec, e) == nil {
				t.Errorf("accepted: %+v", e)
			}
		})
	}
}

// wrong lists one response for each way in which one can be wrong: that the
// checker refuses them is what makes its silence elsewhere worth something.
func wrong() map[string]exchange {
	return map[string]exchange{
		"unknown operation":     {operation: "getNothing", status: 200},
		"unlisted status":       deleted().answers(204),
		"another's status":      unauthorized().answers(403),
		"empty body":            job().with(job().body, ""),
		"null body":             job().with(job().body, "null"),
		"no JSON":               job().with("}}", "}"),
		"two values":            job().with("}}", "}}{}"),
		"body on 304":           unchanged().with("", "{}"),
		"content type":          job().set("Content-Type", "application/json; charset=utf-8"),
		"no content type":       job().without("Content-Type"),
		"problem document":      unauthorized().set("Content-Type", "application/problem+json"),
		"missing field":         job().with(`"finished_at":null`, `"x":null`).with(`,"x":null`, ""),
		"added field":           job().with(`{"id"`, `{"more":1,"id"`),
		"added beside data":     job().with(`{"data"`, `{"more":1,"data"`),
		"upper-case id":         job().with("7c9e6679", "7C9E6679"),
		"fractional seconds":    job().with("00Z", "00.5Z"),
		"offset":                job().with("00Z", "00+00:00"),
		"no such day":           job().with("2025-08-24", "2025-02-30"),
		"unknown status":        job().with("running", "done"),
		"counts too early":      job().with(`"synced_groups":null`, `"synced_groups":1`),
		"message without fault": job().with(`"error_message":null`, `"error_message":"x"`),
		"finished too early":    job().with(`"finished_at":null`, `"finished_at":"2025-08-24T10:30:09Z"`),
		"started while queued":  job().with("running", "queued"),
		"float count":           created().with(`"sort_order":0`, `"sort_order":0.5`),
		"negative order":        created().with(`"sort_order":0`, `"sort_order":-1`),
		"null name":             created().with(`"name":"openai"`, `"name":null`),
		"unlisted provider":     created().with(`"provider":"openai"`, `"provider":"OpenAI"`),
		"label shows too much":  created().with("sk-...AbCd", "sk-p...AbCd"),
		"label of a document":   created().with("sk-...AbCd", `{\"a...AbCd`),
		"the raw key":           created().with(`{"id"`, `{"key":"sk-1","id"`),
		"bad file id":           deleted().with("file_a", "file_"),
		"wrong constant":        deleted().with("file_deleted", "deleted"),
		"error code":            unauthorized().with("401", "400"),
		"error text":            unauthorized().with("Missing", "missing"),
		"unknown reason":        unauthorized().with(`"missing"`, `"absent"`),
		"no reason":             unauthorized().with(`,"reason":"missing"`, ""),
		"no request id":         unauthorized().with(`"request_id":"5f0c",`, ""),
		"foreign field":         unauthorized().with(`{"error"`, `{"user_id":null,"error"`),
		"missing header":        deleted().without("RateLimit"),
		"undeclared header":     deleted().set("Access-Control-Allow-Origin", "*"),
		"header of another":     unauthorized().set("RateLimit", `"delete-file";r=19;t=1`),
		"repeated header":       job().set("ETag", `"a"`, `"b"`),
		"weak tag":              job().set("ETag", `W/"a"`),
		"cached secret":         created().set("Cache-Control", "private"),
		"zero wait":             job().set("Retry-After", "0"),
		"fractional wait":       job().set("Retry-After", "1.5"),
		"padded number":         deleted().set("X-RateLimit-Reset", "01"),
		"limiter's form":        deleted().set("RateLimit", `delete-file;r=19;t=1`),
		"half replayed":         created().set("Idempotent-Replayed", "false"),
	}
}

func TestCheckRequest(t *testing.T) {
	t.Parallel()
	spec := load(t)
	for body, right := range map[string]bool{
		`{"key":"k","provider":"openai"}`:                                         true,
		`{"key":"k","provider":"anthropic/2","name":null,"allowed_models":[]}`:    true,
		`{"key":"","provider":"openai"}`:                                          false,
		`{"key":"k","provider":"openai","allowed_api_key_hashes":[]}`:             false,
		`{"key":"k","provider":"openai","is_byok_only":true,"is_fallback":true}`:  false,
		`{"key":"k","provider":"openai","is_byok_only":true,"is_fallback":false}`: true,
		`{"key":"k","provider":"openai","workspace_id":null}`:                     false,
		`{"key":"k","provider":"openai","allowed_model":["a"]}`:                   false,
	} {
		if err := spec.CheckRequest("createByokKey", []byte(body)); (err == nil) != right {
			t.Errorf("%s: got %v, want acceptable %v", body, err, right)
		}
	}
	if spec.CheckRequest("deleteFile", []byte("{}")) == nil {
		t.Error("a body for deleteFile was accepted")
	}
}

func load(t *testing.T) *openapi.Spec {
	t.Helper()
	spec, err := openapi.Load(description)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func check(spec *openapi.Spec, e exchange) error {
	return spec.CheckResponse(e.operation, e.status, e.header, []byte(e.body))
}
