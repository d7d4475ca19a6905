package contract_test

import (
	"net/http"
	"os/exec"
	"testing"
	"time"

	"signalbox.dev/infra/test/kit"
)

// TestMarkerEverywhere sends the marker wherever a caller can put a secret, in
// the right place or in a wrong one. checkEnvelope searches every response; logs
// and storage are searched when the suite ends.
func TestMarkerEverywhere(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	const marker = kit.Marker
	valid := post(bodyWith("")).As(n.management)
	body := func(body string) request { return post(body).As(n.management) }
	type sent struct {
		request
		status int
	}
	all := map[string]sent{
		"as the key":                 {valid, 201},
		"as an idempotency key":      {valid.Idempotent(marker + "-key"), 201},
		"as a bad one":               {valid.Idempotent(marker + " key"), 400},
		"inside the key":             {body(`{"key":{"` + marker + `":1},"provider":"openai"}`), 400},
		"as a provider":              {body(`{"key":"k","provider":"` + marker + `"}`), 400},
		"as a workspace":             {body(bodyWith(`,"workspace_id":"` + marker + `"`)), 400},
		"as a hash":                  {body(bodyWith(`,"allowed_api_key_hashes":["` + marker + `"]`)), 400},
		"as a member":                {body(bodyWith(`,"` + marker + `":1`)), 400},
		"as a flag":                  {body(bodyWith(`,"disabled":"` + marker + `"`)), 400},
		"as the whole body":          {body(marker), 400},
		"before the end":             {body(`{"key":"` + marker), 400},
		"after the end":              {body(bodyWith("") + marker), 400},
		"as a content type":          {valid.With("Content-Type", "application/"+marker), 400},
		"as an encoding":             {valid.With("Content-Encoding", marker), 400},
		"in a forbidden body":        {valid.As(n.standard), 403},
		"in a body without a caller": {valid.As(marker), 401},
		"as a malformed token":       {valid.With("Authorization", marker), 401},
		"as a tag":                   {get(n.job(t, "queued")).As(n.management).With("If-None-Match", `"`+marker+`"`), 200},
		"as a route":                 {unrouted(http.MethodGet, "/"+marker), 404},
		"as a route, with token":     {unrouted(http.MethodPut, "/byok/"+marker).As(marker), 404},
	}
	for _, o := range operations {
		if o.hasID() {
			all["as an id of "+o.id] = sent{withID(o.unknown(), func(string) string { return "id-" + marker }).As(n.management), 404}
		}
		if the.spec.Has(o.id, "workspace_id") {
			all["as a workspace of "+o.id] = sent{o.unknown().In(marker).As(n.management), 404}
		}
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			c.With("X-Request-Id", marker).With("X-Api-Key", marker).With("Cookie", "key="+marker).With("User-Agent", marker).
				With("Referer", "https://example.invalid/"+marker).With("X-Amzn-Trace-Id", "Root="+marker).Do(t).Is(t, c.status)
		})
	}
	if the.state == "" {
		return
	}
	// The searched files contain the service's logs and storage.
	for _, o := range operations {
		awaitText(t, the.state, o.unknown().Do(t).Header.Get("X-Request-Id"))
	}
	awaitText(t, the.state, valid.Do(t).Created(t).Label)
}

// awaitText waits until a file of the folder contains the text.
func awaitText(t *testing.T, folder, text string) {
	t.Helper()
	for timeout := time.Now().Add(time.Minute); time.Now().Before(timeout); time.Sleep(20 * time.Millisecond) {
		if exec.Command("grep", "-rqF", "--", text, folder).Run() == nil { //nolint:gosec // the suite's own folder
			return
		}
	}
	t.Fatalf("no file of %s contains %s", folder, text)
}
