package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/rewrap"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/ids"
)

func TestRewrapGivesUpWhereNothingCanSucceed(t *testing.T) {
	m := newMove(t, 40)
	m.deploy()
	_, err := m.kms.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &m.own})
	testkit.Must(t, err)
	view, got := m.rewrap(exit.Uncertain)
	if view.Rewrapped != 0 || len(view.Failed) < rewrap.Patience || len(view.Failed) >= 40 || !strings.Contains(view.Failed[0].Reason, "DisabledException") {
		t.Errorf("%+v", view)
	}
	if !strings.Contains(got.stderr, "gave up") {
		t.Errorf("stderr %s", got.stderr)
	}
}

// It goes on however many fail, if others succeed between them.
func TestRewrapOutlastsScatteredFailures(t *testing.T) {
	m := newMove(t, 3*(rewrap.Patience+2))
	m.deploy()
	broken := m.broken()
	for n := range rewrap.Patience + 2 {
		broken.Inject(faults.Rule{Operation: "ReEncrypt", Call: 3 * (n + 1), Fault: faults.Answer(http.StatusBadRequest, "KMSInvalidStateException", "")})
	}
	broken.Inject(faults.Rule{Operation: "Scan", Call: 1, Attempt: 1, Fault: faults.EmptyAnswer()}) // not the end of the table
	view, _ := m.rewrap(exit.Uncertain)
	if view.Rewrapped != 2*(rewrap.Patience+2) || len(view.Failed) != rewrap.Patience+2 {
		t.Fatalf("%+v", view)
	}
	failed := view.Failed[0]
	if row := m.rows()[failed.ID]; row.Workspace != failed.Workspace || row.Seal.KeyARN != m.own || !strings.Contains(failed.Reason, "KMSInvalidStateException") {
		t.Errorf("%+v is %+v", failed, row)
	}
	broken.Heal()
	m.goesOn(3 * (rewrap.Patience + 2))
}

// Rows that were sealed under a foreign key are not vouched for, and are
// no reason to leave the others, however many they are.
func TestRewrapTakesFromKnownKeysOnly(t *testing.T) {
	m := newMove(t, 20)
	m.sealing = m.newKey()
	foreign := m.sealing
	planted := map[ids.Credential]bool{}
	for n := range rewrap.Patience + 2 {
		planted[m.create(n)] = true
	}
	m.deploy()
	if survey := m.must("credential", "rewrap", "--to", m.next, "--dry-run"); !strings.Contains(survey, "refused") {
		t.Errorf("the dry run shows\n%s", survey)
	}
	view, _ := m.rewrap(exit.Uncertain)
	if view.Rewrapped != 20 || len(view.Failed) != len(planted) || m.opened()[foreign] != len(planted) {
		t.Errorf("%+v", view)
	}
	shown := m.want(exit.Uncertain, "credential", "rewrap", "--to", m.next)
	for id := range planted {
		if !strings.Contains(shown.stdout, string(id)) || !strings.Contains(shown.stderr, "not all") {
			t.Errorf("%s: shown\n%s%s", id, shown.stdout, shown.stderr)
		}
	}
	if view, _ := m.rewrap(exit.Done, "--from", m.own, "--from", foreign); view.Rewrapped != len(planted) || m.opened()[m.next] != 20+len(planted) {
		t.Errorf("with the key named: %+v", view)
	}
}
