package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// move is a fixture with credentials that move to another sealing key. It has keys of its
// own.
type move struct {
	*fixture
	kms       *kms.Client
	own, next string
}

func newMove(d *fixture, own, next string, credentials int) *move {
	d.Helper()
	m := &move{fixture: d, kms: kms.NewFromConfig(d.engines.Config), own: own, next: next}
	d.engines.Tables.SealingKey = m.own
	m.writeStack()
	var all errgroup.Group
	all.SetLimit(8)
	for range credentials {
		all.Go(func() error { m.seal(ids.New[ids.Workspace](), "n"); return nil })
	}
	_ = all.Wait()
	return m
}

// deploy makes the next key the one that seals new credentials.
func (m *move) deploy() {
	m.Helper()
	m.sealing = m.next
	m.writeStack()
}

// rewrap runs the command, which must end with the code, and reads its summary.
func (m *move) rewrap(code int, args ...string) (acts.RewrapResult, answer) {
	m.Helper()
	got := m.want(code, append([]string{"--json", "credential", "rewrap", "--to", m.next, "--rate", "5000"}, args...)...)
	var view acts.RewrapResult
	if err := json.Unmarshal([]byte(got.stdout), &view); err != nil {
		m.Fatalf("%v in %q; %s", err, got.stdout, got.stderr)
	}
	return view, got
}

func (m *move) rows() map[ids.Credential]kit.Credential {
	m.Helper()
	all := map[ids.Credential]kit.Credential{}
	for _, row := range kit.Credentials(m, m.table(m.engines.Tables.Credentials).All(m)) {
		all[row.ID] = row
	}
	return all
}

// opened opens every stored credential, like a router, and counts them by key.
func (m *move) opened() map[string]int {
	m.Helper()
	under := map[string]int{}
	var all errgroup.Group
	all.SetLimit(8)
	for id, row := range m.rows() {
		under[row.Seal.KeyARN]++
		all.Go(func() error {
			key, err := row.Open(m.Context(), seal.NewOpener(m.kms, row.Seal.KeyARN))
			if err != nil || string(key.Reveal()) != providerKey {
				return fmt.Errorf("credential %s opens as %q, %w", id, key.Reveal(), err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		m.Error(err)
	}
	return under
}

// A rewrap is interrupted when a third is moved. Then two run at once. Every credential is moved,
// and opens at any time.
func TestAnInterruptedRewrapGoesOn(t *testing.T) {
	t.Parallel()
	const all = 30
	engines := kit.Start(t)
	m := newMove(newOnEngines(t, engines.NewTables(t, 2)...), engines.Key(t), engines.Key(t), all)
	m.deploy()
	if shown := m.must("credential", "rewrap", "--to", m.next, "--dry-run"); !strings.Contains(shown, strconv.Itoa(all)) || !strings.Contains(shown, "to be rewrapped") || m.opened()[m.next] > 0 {
		t.Errorf("the dry run shows\n%s", shown)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	m.broken().Inject(faults.Rule{Operation: "ReEncrypt", Call: all / 3, Fault: faults.Then(interrupt)})
	got := m.run(ctx, nil, "credential", "rewrap", "--to", m.next, "--rate", "1000000")
	if audits := got.audits(); got.code != acts.Uncertain || !strings.Contains(got.stderr, "interrupted") || audits[1]["outcome"] != "uncertain" || audits[1]["failed"] != 0.0 {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	m.change = nil
	under := m.opened()
	if under[m.own] == 0 || under[m.next] == 0 {
		t.Errorf("by key: %v, want some under each", under)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { m.rewrap(acts.Done) })
	}
	both.Wait()
	again, _ := m.rewrap(acts.Done)
	if under := m.opened(); under[m.own] != 0 || under[m.next] != all || again.Rewrapped != 0 || again.AlreadyThere != all {
		t.Errorf("at the end: %v; once more: %+v", under, again)
	}
}

func TestRewrapRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	m := newMove(newFixture(t), kit.ModelKeys[0], kit.ModelKeys[1], 1)
	m.want(acts.Refused, "credential", "rewrap", "--to", m.next) // not deployed
	m.want(acts.Usage, "credential", "rewrap", "--to", m.own)    // --from is missing
	m.deploy()
	for _, to := range []string{"", "alias/next", "x" + m.next, m.next + "/x", m.next + " --rate 0", m.next + " --from x"} {
		m.want(acts.Usage, strings.Fields("credential rewrap --to "+to)...)
	}
	m.want(acts.Refused, "credential", "rewrap", "--to", m.own, "--from", m.next)
	if under := m.opened(); under[m.own] != 1 {
		t.Errorf("by key: %v", under)
	}
	// A table that cannot be read does not count as empty.
	m.broken().Inject(faults.Rule{Operation: "Scan", Fault: faults.Refuse()})
	m.want(acts.Failed, "credential", "rewrap", "--to", m.next, "--dry-run")
}

// A rewrap goes on after any number of failures, if other moves succeed between them. It gives up
// if nothing can succeed.
func TestRewrapGivesUpIfNothingCanSucceed(t *testing.T) {
	t.Parallel()
	const failures = acts.FailuresInARow + 2
	m := newMove(newFixture(t), kit.ModelKeys[0], kit.ModelKeys[1], 3*failures)
	m.deploy()
	broken := m.broken()
	for n := range failures {
		broken.Inject(faults.Rule{Operation: "ReEncrypt", Call: 3 * (n + 1), Fault: faults.Answer(http.StatusBadRequest, "KMSInvalidStateException", "")})
	}
	view, _ := m.rewrap(acts.Uncertain)
	if view.Rewrapped != 2*failures || len(view.Failed) != failures {
		t.Fatalf("%+v", view)
	}
	failed := view.Failed[0]
	if row := m.rows()[failed.ID]; row.Workspace != failed.Workspace || row.Seal.KeyARN != m.own || !strings.Contains(failed.Reason, "KMSInvalidStateException") {
		t.Errorf("failed %+v, stored %+v", failed, row)
	}
	m.broken().Inject(faults.Rule{Operation: "ReEncrypt", Fault: faults.Answer(http.StatusBadRequest, "DisabledException", "")})
	if view, got := m.rewrap(acts.Uncertain); view.Rewrapped != 0 || len(view.Failed) < acts.FailuresInARow || !strings.Contains(got.stderr, "gave up") {
		t.Errorf("%+v; stderr %s", view, got.stderr)
	}
}

// A segment that cannot be read stops no other, and the command says what to do.
func TestADeniedSegmentStopsNoOther(t *testing.T) {
	t.Parallel()
	const all = 40
	m := newMove(newFixture(t), kit.ModelKeys[0], kit.ModelKeys[1], all)
	m.deploy()
	m.broken().Inject(faults.Rule{Operation: "Scan", Call: 9, Fault: faults.Answer(http.StatusForbidden, "AccessDeniedException", "no")}) // eight have counted
	view, got := m.rewrap(acts.Uncertain)
	if view.Rewrapped < all/2 || m.opened()[m.next] != view.Rewrapped || !strings.Contains(got.stderr, "AccessDenied") || !strings.Contains(got.stderr, "rewrapped. Repeat the command") {
		t.Errorf("%+v: %s", view, got.stderr)
	}
}

// Rows that were sealed under a foreign key are not moved. Even many of them do not stop
// the moves of the others.
func TestRewrapTakesFromKnownKeysOnly(t *testing.T) {
	t.Parallel()
	m := newMove(newFixture(t), kit.ModelKeys[0], kit.ModelKeys[1], 5)
	foreign := kit.ModelKeys[2]
	m.sealing = foreign
	planted := map[ids.Credential]bool{}
	for range acts.FailuresInARow + 2 {
		planted[m.seal(ids.New[ids.Workspace](), "n")] = true
	}
	m.deploy()
	if survey := m.must("credential", "rewrap", "--to", m.next, "--dry-run"); !strings.Contains(survey, "refused") {
		t.Errorf("the dry run shows\n%s", survey)
	}
	view, _ := m.rewrap(acts.Uncertain)
	if view.Rewrapped != 5 || len(view.Failed) != len(planted) || m.opened()[foreign] != len(planted) {
		t.Errorf("%+v", view)
	}
	shown := m.want(acts.Uncertain, "credential", "rewrap", "--to", m.next)
	for id := range planted {
		if !strings.Contains(shown.stdout, string(id[:8])) || !strings.Contains(shown.stderr, "not all") {
			t.Errorf("%s: shown\n%s%s", id, shown.stdout, shown.stderr)
		}
	}
	// It keeps to the rate with each page and each move, and reports its progress.
	began := time.Now()
	now := began
	m.change = func(a *app) {
		a.now = func() time.Time { now = now.Add(acts.ProgressEvery); return now }
	}
	view, got := m.rewrap(acts.Done, "--from", m.own, "--from", foreign, "--rate", "10")
	if view.Rewrapped != len(planted) || m.opened()[m.next] != 5+len(planted) || time.Since(began) < 2100*time.Millisecond || !strings.Contains(got.stderr, `"note":"7 of 12"`) {
		t.Errorf("with the key named: %+v, in %s; stderr %s", view, time.Since(began), got.stderr)
	}
	if audits := got.audits(); len(audits) != 2 || audits[0]["outcome"] != "begun" || audits[1]["to"] != m.next || audits[1]["rewrapped"] != float64(len(planted)) {
		t.Errorf("audit %v", audits)
	}
}
