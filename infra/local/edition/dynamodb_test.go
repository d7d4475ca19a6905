package edition_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.dev/infra/local/edition"
	"signalbox.dev/infra/testkit"
)

// A new state folder gets the DynamoDB that is asked for, else one of the edition's
// own, else DynamoDB Local. A used one keeps its own, and refuses another.
func TestChoiceOfDynamoDB(t *testing.T) {
	const here, usual = "http://127.0.0.1:8001", "http://127.0.0.1:8000"
	own, elsewhere := map[string]string{"resources.json": "{}"}, map[string]string{
		"resources.json": "{}", "dynamodb.json": `{"endpoint":"` + here + `","prefix":"signalbox-a-"}`,
	}
	for name, c := range map[string]struct {
		kept      map[string]string
		asked     string
		hasOwn    bool
		want, err string
	}{
		"new":                       {hasOwn: true},
		"new, asked":                {asked: here, hasOwn: true, want: here},
		"new, on another platform":  {want: usual},
		"own":                       {kept: own},
		"own, asked":                {kept: own, asked: here, hasOwn: true, err: "has its tables in a DynamoDB of its own"},
		"elsewhere":                 {kept: elsewhere, hasOwn: true, want: here},
		"elsewhere, asked the same": {kept: elsewhere, asked: here, want: here},
		"elsewhere, asked another":  {kept: elsewhere, asked: usual, err: "has its tables in " + here},
		"damaged":                   {kept: map[string]string{"dynamodb.json": "{}"}, hasOwn: true, err: "it names no DynamoDB"},
	} {
		state := t.TempDir()
		for file, text := range c.kept {
			testkit.Must(t, os.WriteFile(filepath.Join(state, file), []byte(text), 0o600))
		}
		got, err := edition.ChooseDynamoDB(edition.Options{State: state, DynamoDB: c.asked}, c.hasOwn)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", name, err, c.err)
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}
