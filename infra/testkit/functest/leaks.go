package functest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/ids"
)

// Private is part of values that may be stored and sent to their owner, and must not be
// logged: names, models, users.
const Private = "xqPRIVATEqx"

// Secret returns a new secret of at least 16 characters. The marker is in its middle
// because its label must not contain it.
func Secret() string {
	return "sk-" + testkit.Marker + string(ids.New[ids.Job]()) + "-end"
}

// leaksIn returns the secrets that the text contains. No word but an API key
// begins with "sbx_".
func leaksIn(text string) []string {
	found := testkit.LeaksIn([]byte(text))
	if strings.Contains(text, "sbx_") {
		found = append(found, "sbx_")
	}
	return found
}

// checkLeaks searches for secrets in the answer, the log, the errors on their way to
// the adapter, and the calls to AWS.
func checkLeaks(t testing.TB, body string, a Answer, errs []error) {
	t.Helper()
	places := map[string]string{"the answer": string(a.payload), "the log": a.log}
	for len(errs) > 0 {
		err := errs[0]
		errs = append(errs[1:], unwrap(err)...)
		if err != nil {
			places[fmt.Sprintf("an error (%T)", err)] += fmt.Sprintf("%v %+v %#v ", err, err, err)
		}
	}
	for _, c := range a.Calls {
		sent, _ := json.Marshal([]any{c.Input, c.URL, c.Header})
		places["a call of "+c.Operation] += string(sent)
	}
	for place, text := range places {
		if found := leaksIn(text); len(found) > 0 {
			t.Errorf("%s contains %s: %.2000s", place, found, text)
		}
		private := place == "the log" || strings.HasPrefix(place, "an error")
		if private && strings.Contains(text, Private) {
			t.Errorf("%s contains what is the caller's own: %.2000s", place, text)
		}
	}
	if body != "" && strings.Contains(a.log, body) {
		t.Error("the log contains the body of the request")
	}
}

// unwrap returns the errors that the error wraps.
func unwrap(err error) []error {
	switch wrapper := err.(type) { //nolint:errorlint // the chain itself is walked
	case interface{ Unwrap() error }:
		return []error{wrapper.Unwrap()}
	case interface{ Unwrap() []error }:
		return wrapper.Unwrap()
	default:
		return nil
	}
}
