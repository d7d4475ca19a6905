package main

import (
	"testing"

	"signalbox.dev/infra/testkit/functest"
)

// The audit line tells which credential was made where, and whether a retry was
// answered from memory.
func TestTheAuditLineTellsWhatWasMade(t *testing.T) {
	v := &vault{functest.New(t, assemble)}
	s := newSlip(t, v)
	s.once()
	first, again := v.Instance().Invoke(t, s.event()), v.Instance().Invoke(t, s.event())
	var told struct{ Data credential }
	first.Decode(t, &told)
	for field, want := range map[string]any{
		"operation": "createByokKey", "workspace": string(s.tenant.Workspace), "credential": string(told.Data.ID), "replayed": nil,
	} {
		if first.Audit[field] != want {
			t.Errorf("%s is %v, want %v", field, first.Audit[field], want)
		}
	}
	if again.Audit["replayed"] != true || again.Audit["credential"] != string(told.Data.ID) {
		t.Errorf("of the retry: %v", again.Audit)
	}
}
