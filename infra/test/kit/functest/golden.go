package functest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
)

var update = flag.Bool("update", false, "write the golden responses in testdata again")

// Golden compares the answer, to the byte, with testdata/<response>.response, and returns
// it. `go test -run TestResponses . -args -update` writes the files.
//
// A random value is written as $NAME: $CREATED (a credential's id), $ETAG, $REQUEST or a
// name in names. names has the value of each name, without the dollar sign. Nothing else
// is normalised, because the model's time is virtual.
func Golden(t testing.TB, response string, names map[string]string, a Answer) Answer {
	t.Helper()
	path, got := filepath.Join("testdata", response+".response"), a.text(names)
	if *update {
		kit.Must(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path) //nolint:gosec // one of our own test's files
	kit.Must(t, err)
	if string(want) != got {
		diff := cmp.Diff(lines(string(want)), lines(got))
		if diff == "" { // only the body's white space differs
			diff = cmp.Diff(string(want), got)
		}
		t.Errorf("the response differs from %s (-want +got):\n%s\nIf the new one is right, write it: go test -run TestResponses . -args -update", path, diff)
	}
	return a
}

func (a Answer) text(names map[string]string) string {
	var text strings.Builder
	_, _ = fmt.Fprintln(&text, "Status:", a.Status)
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		_, _ = fmt.Fprintf(&text, "%s: %s\n", name, a.Header[name])
	}
	_, _ = fmt.Fprintf(&text, "\n%s\n", a.Body)
	named := strings.ReplaceAll(text.String(), a.RequestID, "$REQUEST")
	for name, value := range names {
		named = strings.ReplaceAll(named, value, "$"+name)
	}
	named = createdID.ReplaceAllString(named, `"id":"$$CREATED"`)
	return etag.ReplaceAllString(named, `ETag: "$$ETAG"`)
}

// lines are the lines of a response. Its JSON body has one line for each member.
func lines(response string) []string {
	head, body, _ := strings.Cut(response, "\n\n")
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(body), "", "  ") == nil {
		body = indented.String()
	}
	return strings.Split(head+"\n\n"+body, "\n")
}

var (
	createdID = regexp.MustCompile(`"id":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`)
	etag      = regexp.MustCompile(`ETag: "[0-9a-f]{32}"`)
)
