package functest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Indistinguishable remembers answers that nobody may be able to tell apart. The events
// must have one request id.
type Indistinguishable struct {
	bytes string
	calls map[string][]string
}

// Alike checks that the answer cannot be told from those before: not by a byte,
// headers of the limiter aside, and within its group not by the calls that it
// took.
func (l *Indistinguishable) Alike(t testing.TB, group string, a Answer) {
	t.Helper()
	header := maps.Clone(a.Header)
	maps.DeleteFunc(header, func(name, _ string) bool { return strings.Contains(name, "RateLimit") })
	// Maps encode in one order.
	bytes, _ := json.Marshal([]any{a.Status, header, a.Body})
	if l.bytes == "" {
		l.bytes, l.calls = string(bytes), map[string][]string{}
	}
	if l.bytes != string(bytes) {
		t.Errorf("can be told from the others:\n%s\n%s", bytes, l.bytes)
	}
	var calls []string
	for _, s := range stepsOf(a.Calls) {
		calls = append(calls, s.name())
	}
	slices.Sort(calls)
	if known, ok := l.calls[group]; !ok {
		l.calls[group] = calls
	} else if !slices.Equal(known, calls) {
		t.Errorf("made the calls %v, others %v", calls, known)
	}
}
