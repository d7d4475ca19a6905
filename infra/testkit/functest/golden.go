package functest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
)

var update = flag.Bool("update", false, "write the golden responses in testdata anew")

// goldenID is the request id of all events.
const goldenID = "7a6f8e5c-0000-4000-8000-000000000000"

// Golden sends requests to a function and compares each answer, to the byte,
// with testdata/<name>.response. `go test -run TestResponses -update` writes them.
//
// A value that differs in each run is written as a name: one of Names, $CREATED (a
// credential's id), $TIME, $ETAG, or $SECONDS (the time that a partly used limiter
// reports). Nothing else is normalised.
type Golden struct {
	Instance *Instance
	// Names has the value of each name. The names are without dollar signs.
	Names map[string]string
}

// Play sends the event and compares the answer with testdata/<response>.response.
func (g *Golden) Play(t *testing.T, response string, e Event) (answer Answer) {
	t.Helper()
	e.RequestID = goldenID
	t.Run(response, func(t *testing.T) {
		answer = g.Instance.send(t, e.Payload(), goldenID, "")
		path, got := filepath.Join("testdata", response+".response"), g.text(answer)
		if *update {
			testkit.Must(t, os.WriteFile(path, []byte(got), 0o600))
		}
		want, err := os.ReadFile(path) //nolint:gosec // one of our own test's files
		testkit.Must(t, err)
		if string(want) != got {
			t.Errorf("%s differs; -update writes it anew. Got:\n%s", path, got)
		}
	})
	return answer
}

// text is the answer as a file: status, headers, body.
func (g *Golden) text(a Answer) string {
	var text strings.Builder
	_, _ = fmt.Fprintln(&text, "Status:", a.Status)
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		_, _ = fmt.Fprintf(&text, "%s: %s\n", name, a.Header[name])
	}
	_, _ = fmt.Fprintf(&text, "\n%s\n", a.Body)
	named := text.String()
	for name, value := range g.Names {
		named = strings.ReplaceAll(named, value, "$"+name)
	}
	for _, made := range []struct{ name, pattern string }{
		{`"id":"$$CREATED"`, `"id":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`},
		{`"$$TIME"`, `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`},
		{`ETag: "$$ETAG"`, `ETag: "[0-9a-f]{32}"`},
		{`r=0;t=$$SECONDS`, `r=0;t=\d+`},
		{`Reset: $$SECONDS`, `Reset: \d\d+`},
		{`Retry-After: $$SECONDS`, `Retry-After: \d\d+`},
	} {
		named = regexp.MustCompile(made.pattern).ReplaceAllString(named, made.name)
	}
	return named
}
