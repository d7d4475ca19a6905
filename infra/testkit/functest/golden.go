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
)

var update = flag.Bool("update", false, "write the golden responses in testdata anew")

// Script plays events that the local gateway has captured, testdata/*.event.json,
// and compares each answer, to the byte, with testdata/*.response.
//
// What is another in each run stands in the files under a name: in events what a
// test plants there, such as $WORKSPACE, and in responses, besides, what the
// function makes up: $CREATED (a credential's id), $TIME, $ETAG, and $SECONDS
// where a limiter that is partly used tells how long it takes. Nothing else is
// normalised.
type Script struct {
	Function *Instance
	// Names are the values of the names, without their dollar signs.
	Names map[string]string

	played map[string]bool
}

// Play plays an event and compares the answer with the response of that name.
func (s *Script) Play(t *testing.T, event, response string) Answer {
	t.Helper()
	var answer Answer
	t.Run(response, func(t *testing.T) {
		answer = s.Send(t, event)
		s.compare(t, filepath.Join("testdata", response+".response"), s.text(answer))
	})
	return answer
}

// Send plays an event.
func (s *Script) Send(t *testing.T, event string) Answer {
	t.Helper()
	if s.played == nil {
		s.played = map[string]bool{}
	}
	s.played[event] = true
	captured, err := os.ReadFile(filepath.Join("testdata", event+".event.json")) //nolint:gosec // one of our own test's files
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, name := range s.longestFirst() {
		pairs = append(pairs, "$"+name, s.Names[name])
	}
	return s.Function.play(t, []byte(strings.NewReplacer(pairs...).Replace(string(captured))), capturedID, "")
}

// capturedID is the request id of all captured events.
const capturedID = "7a6f8e5c-0000-4000-8000-000000000000"

// Complete checks that every captured event was played.
func (s *Script) Complete(t *testing.T) {
	t.Helper()
	events, err := filepath.Glob("testdata/*.event.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range events {
		if name := strings.TrimSuffix(filepath.Base(path), ".event.json"); !s.played[name] {
			t.Errorf("%s is never played", path)
		}
	}
}

func (s *Script) longestFirst() []string {
	names := slices.Collect(maps.Keys(s.Names))
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}

// text is the answer as a file: status, headers, body.
func (s *Script) text(a Answer) string {
	var text strings.Builder
	_, _ = fmt.Fprintln(&text, "Status:", a.Status)
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		_, _ = fmt.Fprintf(&text, "%s: %s\n", name, a.Header[name])
	}
	_, _ = fmt.Fprintf(&text, "\n%s\n", a.Body)
	named := text.String()
	for _, name := range s.longestFirst() {
		named = strings.ReplaceAll(named, s.Names[name], "$"+name)
	}
	for _, made := range []struct{ name, pattern string }{
		{`"id":"$$CREATED"`, `"id":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`},
		{`"$$TIME"`, `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`},
		{`ETag: "$$ETAG"`, `ETag: "[0-9a-f]{32}"`},
		{`r=0;t=$$SECONDS`, `r=0;t=\d+`},
		{`Reset: $$SECONDS`, `Reset: \d\d+`},
	} {
		named = regexp.MustCompile(made.pattern).ReplaceAllString(named, made.name)
	}
	return named
}

func (s *Script) compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path) //nolint:gosec // one of our own test's files
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; -update writes it anew. Got:\n%s", path, got)
	}
}
