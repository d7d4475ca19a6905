package sim

import (
	"context"
	"testing"

	"signalbox.dev/shared/auth"
)

// The same schedule gives the same run, with the same calls, order, faults and
// answers.
func TestAScheduleIsRepeatable(t *testing.T) {
	s := Scenario{Name: "two commands", Set: func(w *World) {
		w.DeleteWorkspace("delete workspace", w.Tenant.Workspace, w.StandardKey(w.Tenant.Workspace))
		w.Command("create key", func(ctx context.Context, c Clients) error {
			_, _, err := c.Registry.CreateKey(ctx, auth.NewKey{Account: w.Tenant.ID, Workspace: w.Tenant.Workspace, Kind: auth.Standard, Name: "k"})
			return err
		}, auth.ErrWorkspaceDeleted)
	}}
	traces := map[string]bool{}
	for seed := range uint64(20) {
		first, second := s.random(t, seed), s.random(t, seed)
		schedule := first.schedule(s.Name)
		third := s.replay(t, schedule[len(s.Name)+1:])
		if first.trace() != second.trace() || first.trace() != third.trace() {
			t.Errorf("%s: it has different traces:\n%s\n%s\n%s", schedule, first.trace(), second.trace(), third.trace())
		}
		traces[first.trace()] = true
	}
	if len(traces) < 10 {
		t.Errorf("20 seeds have only %d traces", len(traces))
	}
}
