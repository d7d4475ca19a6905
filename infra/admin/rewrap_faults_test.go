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

func TestRewrapOutlastsFaults(t *testing.T) {
	m := newMove(t, 30)
	m.deploy()
	broken := m.broken()
	for _, rule := range []faults.Rule{
		{Operation: "UpdateItem", Call: 3, Attempt: 1, Fault: faults.LoseAnswer()},
		{Operation: "UpdateItem", Call: 9, Attempt: 1, Fault: faults.Refuse()},
		{Operation: "Scan", Call: 1, Attempt: 1, Fault: faults.EmptyAnswer()}, // must not pass for the end of the table
		{Operation: "Scan", Call: 2, Attempt: 1, Fault: faults.Throttle()},
		{Operation: "UpdateItem", Call: 12, Attempt: 1, Fault: faults.Conflict()},
		{Operation: "ReEncrypt", Call: 4, Attempt: 1, Fault: faults.LoseAnswer()},
		{Operation: "ReEncrypt", Call: 7, Attempt: 1, Fault: faults.Throttle()},
		{Operation: "ReEncrypt", Call: 8, Fault: faults.Answer(http.StatusInternalServerError, "KMSInternalException", "")},
	} {
		broken.Inject(rule)
	}
	view, _ := m.rewrap(exit.Uncertain)
	if view.Rewrapped != 29 || len(view.Failed) != 1 || !strings.Contains(view.Failed[0].Reason, "KMSInternalException") {
		t.Errorf("%+v", view)
	}
	if row := m.rows()[view.Failed[0].ID]; row.Workspace != view.Failed[0].Workspace || row.Seal.KeyARN != m.own {
		t.Errorf("the one that failed is %+v", row)
	}
	broken.Heal()
	m.goesOn(30)
}

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
	_, err = m.kms.EnableKey(t.Context(), &kms.EnableKeyInput{KeyId: &m.own})
	testkit.Must(t, err)
	if view, _ := m.rewrap(exit.Done); view.Rewrapped != 40 || m.opened()[m.next] != 40 {
		t.Errorf("%+v", view)
	}
}

// However many fail, it goes on where others between them do not.
func TestRewrapOutlastsScatteredFailures(t *testing.T) {
	m := newMove(t, 3*(rewrap.Patience+2))
	m.deploy()
	broken := m.broken()
	for n := range rewrap.Patience + 2 {
		broken.Inject(faults.Rule{Operation: "ReEncrypt", Call: 3 * (n + 1), Fault: faults.Answer(http.StatusBadRequest, "KMSInvalidStateException", "")})
	}
	if view, _ := m.rewrap(exit.Uncertain); view.Rewrapped != 2*(rewrap.Patience+2) || len(view.Failed) != rewrap.Patience+2 {
		t.Errorf("%+v", view)
	}
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
