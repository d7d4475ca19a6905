package api_test

import (
	"testing"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
)

// The log line tells as much of the caller as is known, and why there was no more.
func TestTheLogLineTellsWhoAndWhy(t *testing.T) {
	short := func(token string) any { return auth.HashKey(token).Short() }
	for token, want := range map[string]map[string]any{
		"":              {"reason": "missing", "key": nil, "account": nil},
		"sbx_other":     {"reason": "unknown_key", "key": short("sbx_other"), "account": nil},
		standardToken:   {"reason": nil, "key": short(standardToken), "account": account},
		managementToken: {"reason": nil, "key": short(managementToken), "account": account},
	} {
		_, _, _, log := run(t, api.Operation{StandardKeyError: api.Forbidden()}, event(token))
		for field, value := range want {
			if log[0][field] != value {
				t.Errorf("token %q: %s is %v, want %v", token, field, log[0][field], value)
			}
			if _, there := log[0][field]; there != (value != nil) {
				t.Errorf("token %q: %s is there: %v", token, field, there)
			}
		}
	}
}
