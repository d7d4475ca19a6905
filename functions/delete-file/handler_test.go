package main

import (
	"testing"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

func TestResponses(t *testing.T) {
	base := functest.New(t, assemble)
	c := newCabinet(t, base, off)
	home, stranger := base.Tenant(t), base.Tenant(t)
	other, disabled := home.Other(t), home.Standard(t, "")
	if err := base.Registry.DisableKey(t.Context(), home.ID, auth.HashKey(disabled)); err != nil {
		t.Fatal(err)
	}
	s := functest.Script{Function: c.Instance(), Names: map[string]string{
		"DISABLED_KEY":        disabled,
		"OTHER_WORKSPACE":     string(other),
		"STRANGERS_WORKSPACE": string(stranger.Workspace),
	}}
	// Each request has a key of its own, so that its limiter is idle.
	play := func(event, response string) {
		s.Names["API_KEY"] = home.Standard(t, "")
		s.Play(t, event, response)
	}
	place := func(w ids.Workspace) {
		file := ids.NewFile()
		c.put(t, w, file, newest)
		s.Names["FILE"] = string(file)
	}
	place(other)
	play("foreign", "foreign")
	play("two-workspaces", "two-workspaces")
	play("malformed", "malformed")
	play("no-key", "no-key")
	play("disabled-key", "disabled-key")
	play("default", "in-another-workspace")
	play("named", "named")
	play("named", "deleted-before")
	place(home.Workspace)
	play("default", "default")

	for s.Send(t, "default").Status != refused {
		// until the burst is used up
	}
	s.Play(t, "default", "refused")
	s.Function.Faults.Inject(faults.Rule{Kind: "limit#", Fault: faults.Refuse()})
	play("named", "unavailable")
	s.Complete(t)
}
