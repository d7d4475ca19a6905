package contract_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestMarkerEverywhere puts the marker wherever a caller can put a secret, in
// the right place or in a wrong one. Every response is searched for it as it
// comes; the logs and all that is stored are searched when the suite ends.
func TestMarkerEverywhere(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	marked := func(r request) request {
		return r.with("X-Request-Id", marker).with("X-Api-Key", marker).with("Cookie", "key="+marker).
			with("User-Agent", marker).with("Referer", "https://example.invalid/"+marker).with("X-Amzn-Trace-Id", "Root="+marker)
	}
	for name, c := range map[string]struct {
		request
		status int
	}{
		"as the key":             {post(bodyWith("")).as(n.management), 201},
		"as an idempotency key":  {post(bodyWith("")).as(n.management).idempotent(marker + "-key"), 201},
		"as a bad one":           {post(bodyWith("")).as(n.management).idempotent(marker + " key"), 400},
		"as a provider":          {post(`{"key":"k","provider":"` + marker + `"}`).as(n.management), 400},
		"as a workspace":         {post(bodyWith(`,"workspace_id":"` + marker + `"`)).as(n.management), 400},
		"as a hash":              {post(bodyWith(`,"allowed_api_key_hashes":["` + marker + `"]`)).as(n.management), 400},
		"as a member":            {post(bodyWith(`,"` + marker + `":1`)).as(n.management), 400},
		"as a flag":              {post(bodyWith(`,"disabled":"` + marker + `"`)).as(n.management), 400},
		"as the whole body":      {post(marker).as(n.management), 400},
		"before the end":         {post(`{"key":"` + marker).as(n.management), 400},
		"after the end":          {post(bodyWith("") + marker).as(n.management), 400},
		"as a content type":      {post(bodyWith("")).as(n.management).with("Content-Type", "application/"+marker), 400},
		"as an encoding":         {post(bodyWith("")).as(n.management).with("Content-Encoding", marker), 400},
		"in a forbidden body":    {post(bodyWith("")).as(n.standard), 403},
		"in a stranger's body":   {post(bodyWith("")).as(marker), 401},
		"as a malformed token":   {post(bodyWith("")).with("Authorization", marker), 401},
		"as a job":               {get("job-" + marker).as(n.management), 404},
		"as a tag":               {get(n.job(t, "queued")).as(n.management).with("If-None-Match", `"`+marker+`"`), 200},
		"as a file":              {del("file." + marker).as(n.management), 404},
		"as a file's workspace":  {del("file_unknown").in(marker).as(n.management), 404},
		"as a route":             {unrouted(http.MethodGet, "/"+marker), 404},
		"as a route, with token": {unrouted(http.MethodPut, "/byok/"+marker).as(marker), 404},
	} {
		t.Run(name, func(t *testing.T) { marked(c.request).do(t).is(t, c.status) })
	}
	if the.local != nil {
		// What will be searched is what the service writes to.
		for _, r := range []response{
			post(bodyWith("")).as(n.management).do(t), get(unknownJob).do(t), del("file_unknown").do(t),
		} {
			appears(t, the.local.state, r.header.Get("X-Request-Id"))
		}
		appears(t, the.local.state, label(providerKey))
	}
}

// appears waits until a file of the folder holds the text.
func appears(t *testing.T, folder, text string) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	tooLate := time.After(time.Minute)
	for {
		found, err := holding(os.DirFS(folder), text)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			return
		}
		select {
		case <-again.C:
		case <-tooLate:
			t.Fatalf("%s is in no file of %s", text, folder)
		}
	}
}

// holding reports whether any of the files holds the text. Files may come and
// go meanwhile.
func holding(files fs.FS, text string) (found bool, err error) {
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		var content []byte
		if err == nil && entry.Type().IsRegular() {
			content, err = fs.ReadFile(files, path)
		}
		found = found || bytes.Contains(content, []byte(text))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return found, err
}
