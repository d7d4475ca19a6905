package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// newRewrap returns a fixture whose next sealing key is not deployed yet, with so many credentials.
func newRewrap(d *fixture, next string, credentials int) *fixture {
	d.Helper()
	d.next = next
	for range credentials {
		d.seal(ids.New[ids.Workspace](), "n")
	}
	return d
}

// deploy makes the next key the one that seals new credentials.
func (d *fixture) deploy() {
	d.Helper()
	d.sealing = d.next
	d.writeStack()
}

// rewrap runs the command, which must end with the code, and reads its summary.
func (d *fixture) rewrap(code int, args ...string) (acts.RewrapResult, answer) {
	d.Helper()
	got := d.want(code, append([]string{"--json", "credential", "rewrap", "--to", d.next, "--rate", "5000"}, args...)...)
	var view acts.RewrapResult
	if err := json.Unmarshal([]byte(got.stdout), &view); err != nil {
		d.Fatalf("%v in %q; %s", err, got.stdout, got.stderr)
	}
	return view, got
}

func (d *fixture) sealed() []kit.Credential {
	d.Helper()
	return kit.Credentials(d, d.table(d.engines.Tables.Credentials).All(d))
}

// opened opens every stored credential, like a router, and counts them by key.
func (d *fixture) opened() map[string]int {
	d.Helper()
	under := map[string]int{}
	for _, row := range d.sealed() {
		under[row.Seal.KeyARN]++
		key, err := row.Open(d.Context(), seal.NewOpener(awsclients.KMS(d.engines.Config), row.Seal.KeyARN))
		if err != nil || string(key.Reveal()) != providerKey {
			d.Errorf("credential %s opens as %q, %v", row.ID, key.Reveal(), err)
		}
	}
	return under
}

// A rewrap is interrupted when a third is moved. Then two run at once. Every credential is moved,
// and opens at any time.
func TestAnInterruptedRewrapGoesOn(t *testing.T) {
	t.Parallel()
	const all = 30
	engines := kit.Start(t)
	d := newRewrap(newOnEngines(t, engines.NewTables(t, 2)...), engines.Key(t), all)
	d.deploy()
	if shown := d.must("credential", "rewrap", "--to", d.next, "--dry-run"); !strings.Contains(shown, strconv.Itoa(all)) || !strings.Contains(shown, "to be rewrapped") || d.opened()[d.next] > 0 {
		t.Errorf("the dry run shows\n%s", shown)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	d.broken().Inject(faults.Rule{Operation: "ReEncrypt", Call: all / 3, Fault: faults.Then(interrupt)})
	got := d.run(ctx, nil, "credential", "rewrap", "--to", d.next, "--rate", "1000000")
	if audits := got.audits(); got.code != acts.Uncertain || !strings.Contains(got.stderr, "interrupted") || audits[1]["outcome"] != "uncertain" || audits[1]["failed"] != 0.0 {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	d.change = nil
	under := d.opened()
	if under[d.engines.Tables.SealingKey] == 0 || under[d.next] == 0 {
		t.Errorf("by key: %v, want some under each", under)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { d.rewrap(acts.Done) })
	}
	both.Wait()
	again, _ := d.rewrap(acts.Done)
	if under := d.opened(); under[d.engines.Tables.SealingKey] != 0 || under[d.next] != all || again.Rewrapped != 0 || again.AlreadyThere != all {
		t.Errorf("at the end: %v; once more: %+v", under, again)
	}
}

func TestRewrapRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	d := newRewrap(newFixture(t), kit.ModelKeys[1], 1)
	d.want(acts.Refused, "credential", "rewrap", "--to", d.next)                    // not deployed
	d.want(acts.Usage, "credential", "rewrap", "--to", d.engines.Tables.SealingKey) // --from is missing
	d.deploy()
	for _, to := range []string{"", "alias/next", "x" + d.next, d.next + "/x", d.next + " --rate 0", d.next + " --from x"} {
		d.want(acts.Usage, strings.Fields("credential rewrap --to "+to)...)
	}
	d.want(acts.Refused, "credential", "rewrap", "--to", d.engines.Tables.SealingKey, "--from", d.next)
	if under := d.opened(); under[d.engines.Tables.SealingKey] != 1 {
		t.Errorf("by key: %v", under)
	}
	// A table that cannot be read does not count as empty.
	d.broken().Inject(faults.Rule{Operation: "Scan", Fault: faults.Refuse()})
	d.want(acts.Failed, "credential", "rewrap", "--to", d.next, "--dry-run")
}

// A rewrap goes on after any number of failures, if other moves succeed between them. It gives up
// if nothing can succeed.
func TestRewrapGivesUpIfNothingCanSucceed(t *testing.T) {
	t.Parallel()
	const failures = acts.FailuresInARow + 2
	d := newRewrap(newFixture(t), kit.ModelKeys[1], 3*failures)
	d.deploy()
	broken := d.broken()
	for n := range failures {
		broken.Inject(faults.Rule{Operation: "ReEncrypt", Call: 3 * (n + 1), Fault: faults.Answer(http.StatusBadRequest, "KMSInvalidStateException", "")})
	}
	view, _ := d.rewrap(acts.Uncertain)
	if view.Rewrapped != 2*failures || len(view.Failed) != failures {
		t.Fatalf("%+v", view)
	}
	failed := view.Failed[0]
	stays := slices.ContainsFunc(d.sealed(), func(c kit.Credential) bool {
		return c.ID == failed.ID && c.Workspace == failed.Workspace && c.Seal.KeyARN == d.engines.Tables.SealingKey
	})
	if !stays || !strings.Contains(failed.Reason, "KMSInvalidStateException") {
		t.Errorf("failed %+v; stored as it was: %t", failed, stays)
	}
	d.broken().Inject(faults.Rule{Operation: "ReEncrypt", Fault: faults.Answer(http.StatusBadRequest, "DisabledException", "")})
	if view, got := d.rewrap(acts.Uncertain); view.Rewrapped != 0 || len(view.Failed) < acts.FailuresInARow || !strings.Contains(got.stderr, "gave up") {
		t.Errorf("%+v; stderr %s", view, got.stderr)
	}
}

// A segment that cannot be read stops no other, and the command says what to do.
func TestADeniedSegmentStopsNoOther(t *testing.T) {
	t.Parallel()
	const all = 40
	d := newRewrap(newFixture(t), kit.ModelKeys[1], all)
	d.deploy()
	d.broken().Inject(faults.Rule{Operation: "Scan", Call: 9, Fault: faults.Answer(http.StatusForbidden, "AccessDeniedException", "no")}) // eight have counted
	view, got := d.rewrap(acts.Uncertain)
	if view.Rewrapped < all/2 || d.opened()[d.next] != view.Rewrapped || !strings.Contains(got.stderr, "AccessDenied") || !strings.Contains(got.stderr, "rewrapped. Repeat the command") {
		t.Errorf("%+v: %s", view, got.stderr)
	}
}

// Rows that were sealed under a foreign key are not moved. Even many of them do not stop
// the moves of the others.
func TestRewrapTakesFromKnownKeysOnly(t *testing.T) {
	t.Parallel()
	d := newRewrap(newFixture(t), kit.ModelKeys[1], 5)
	foreign := kit.ModelKeys[2]
	d.sealing = foreign
	planted := map[ids.Credential]bool{}
	for range acts.FailuresInARow + 2 {
		planted[d.seal(ids.New[ids.Workspace](), "n")] = true
	}
	d.deploy()
	if survey := d.must("credential", "rewrap", "--to", d.next, "--dry-run"); !strings.Contains(survey, "refused") {
		t.Errorf("the dry run shows\n%s", survey)
	}
	view, _ := d.rewrap(acts.Uncertain)
	if view.Rewrapped != 5 || len(view.Failed) != len(planted) || d.opened()[foreign] != len(planted) {
		t.Errorf("%+v", view)
	}
	shown := d.want(acts.Uncertain, "credential", "rewrap", "--to", d.next)
	for id := range planted {
		if !strings.Contains(shown.stdout, string(id[:8])) || !strings.Contains(shown.stderr, "not all") {
			t.Errorf("%s: shown\n%s%s", id, shown.stdout, shown.stderr)
		}
	}
	// It keeps to the rate with each page and each move, and reports its progress.
	began := time.Now()
	now := began
	d.change = func(a *app) {
		a.now = func() time.Time { now = now.Add(acts.ProgressEvery); return now }
	}
	view, got := d.rewrap(acts.Done, "--from", d.engines.Tables.SealingKey, "--from", foreign, "--rate", "10")
	if view.Rewrapped != len(planted) || d.opened()[d.next] != 5+len(planted) || time.Since(began) < 2100*time.Millisecond || !strings.Contains(got.stderr, `"note":"7 of 12"`) {
		t.Errorf("with the key named: %+v, in %s; stderr %s", view, time.Since(began), got.stderr)
	}
	if audits := got.audits(); len(audits) != 2 || audits[0]["outcome"] != "begun" || audits[1]["to"] != d.next || audits[1]["rewrapped"] != float64(len(planted)) {
		t.Errorf("audit %v", audits)
	}
}
