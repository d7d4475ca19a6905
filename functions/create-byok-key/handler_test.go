package main

import (
	"testing"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
)

func TestResponses(t *testing.T) {
	v := &vault{functest.New(t, assemble)}
	home, stranger := v.Tenant(t), v.Tenant(t)
	s := functest.Script{Function: v.Instance(), Names: map[string]string{
		"MANAGEMENT_KEY":      home.Management,
		"STANDARD_KEY":        home.Standard(t, ""),
		"KEY_HASH":            string(auth.HashKey(home.Management)),
		"WORKSPACE":           string(home.Workspace),
		"OTHER_WORKSPACE":     string(home.Other(t)),
		"STRANGERS_WORKSPACE": string(stranger.Workspace),
		"STRANGERS_HASH":      string(auth.HashKey(stranger.Management)),
		"PROVIDER_KEY":        functest.Secret(),
		"IDEMPOTENCY_KEY":     functest.Secret(),
	}}
	for _, p := range []struct{ event, response string }{
		{"small", "small"},
		{"small", "second"}, // the next sort_order
		{"full", "full"},
		{"once", "once"},
		{"once", "replayed"},
		{"not-the-same", "not-the-same"},
		{"invalid", "invalid"},
		{"not-json", "not-json"},
		{"empty", "empty"},
		{"foreign", "foreign"},
		{"standard-key", "standard-key"},
		{"no-key", "no-key"},
	} {
		s.Play(t, p.event, p.response)
	}
	s.Function.Faults.Inject(faults.Rule{Operation: "GenerateDataKey", Fault: faults.Refuse()})
	s.Play(t, "small", "unavailable")
	s.Complete(t)
}
