package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/testkit/faults"
)

func TestRewrapMovesEveryCredential(t *testing.T) {
	m := newMove(t, 130)
	before := m.rows()
	m.deploy()
	if survey := m.must("credential", "rewrap", "--to", m.next, "--dry-run"); !strings.Contains(survey, "130") || !strings.Contains(survey, "to be rewrapped") {
		t.Errorf("the dry run shows\n%s", survey)
	}
	if diff := cmp.Diff(before, m.rows()); diff != "" {
		t.Errorf("the dry run changed (-before +after):\n%s", diff)
	}
	view, got := m.rewrap(exit.Done)
	if view.Rewrapped != 130 || view.AlreadyThere != 0 || view.Changed != 0 || len(view.Failed) != 0 {
		t.Errorf("%+v", view)
	}
	var outcomes []any
	for _, line := range got.audits() {
		outcomes = append(outcomes, line["action"], line["outcome"], line["to"], line["rewrapped"])
	}
	if diff := cmp.Diff([]any{"credential.rewrap", "begun", m.next, nil, "credential.rewrap", "done", m.next, 130.0}, outcomes); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
	after := m.rows()
	for id, row := range before {
		row.Seal.KeyARN, row.Seal.WrappedKey = m.next, after[id].Seal.WrappedKey
		before[id] = row
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("more than the wrapped key changed (-want +got):\n%s", diff)
	}
	if under := m.opened(); under[m.next] != 130 {
		t.Errorf("under the keys are %v", under)
	}
	if view, _ := m.rewrap(exit.Done); view.Rewrapped != 0 || view.AlreadyThere != 130 {
		t.Errorf("the second run: %+v", view)
	}
	if shown := m.must("credential", "rewrap", "--to", m.next); !strings.Contains(shown, "already there   130") {
		t.Errorf("shown\n%s", shown)
	}
}

func TestRewrapRefusesWhatCannotBeMeant(t *testing.T) {
	m := newMove(t, 1)
	m.want(exit.Refused, "credential", "rewrap", "--to", m.next) // not deployed
	m.want(exit.Usage, "credential", "rewrap", "--to", m.own)    // from where?
	m.deploy()
	for _, args := range [][]string{
		{}, {"--to", "alias/next"}, {"--to", strings.TrimPrefix(m.next, "arn:aws:kms:us-east-1:000000000000:key/")},
		{"--to", "x" + m.next}, {"--to", m.next + "/x"},
		{"--to", m.next, "--rate", "0"}, {"--to", m.next, "--from", "x"},
	} {
		m.want(exit.Usage, append([]string{"credential", "rewrap"}, args...)...)
	}
	m.want(exit.Refused, "credential", "rewrap", "--to", m.own, "--from", m.next)
	if under := m.opened(); under[m.own] != 1 {
		t.Errorf("under the keys are %v", under)
	}
}

func TestRewrapKeepsToItsRate(t *testing.T) {
	m := newMove(t, 40)
	m.deploy()
	if view, _ := m.rewrap(exit.Done, "--rate", "50"); view.Rewrapped != 40 || view.Seconds < 0.6 { // 5 pass at once
		t.Errorf("%+v", view)
	}
}

func TestAnInterruptedRewrapGoesOn(t *testing.T) {
	m := newMove(t, 60)
	m.deploy()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	m.broken().Inject(faults.Rule{Operation: "UpdateItem", Call: 20, Fault: faults.Then(interrupt)})
	got := m.run(ctx, nil, "credential", "rewrap", "--to", m.next)
	if got.code != exit.Uncertain || !strings.Contains(got.stderr, "interrupted") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if audits := got.audits(); len(audits) != 2 || audits[1]["outcome"] != "uncertain" {
		t.Errorf("audit %v", audits)
	}
	m.change = nil
	m.goesOn(60)
}

// goesOn runs the command to its end after one that did not come to it.
func (m *move) goesOn(total int) {
	m.Helper()
	under := m.opened()
	if under[m.own] == 0 || under[m.next] == 0 {
		m.Errorf("not in the middle: %v", under)
	}
	// The engine may still apply a write after its client is gone.
	if view, _ := m.rewrap(exit.Done); view.Rewrapped > under[m.own] || view.Rewrapped+view.AlreadyThere != total {
		m.Errorf("%+v after %v", view, under)
	}
	if after := m.opened(); after[m.next] != total {
		m.Errorf("under the keys are %v", after)
	}
}

// After two runs at once, while credentials come and go, every credential is moved and opens.
func TestTwoRewrapsAtOnce(t *testing.T) {
	m := newMove(t, 50)
	m.deploy()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if view, _ := m.rewrap(exit.Done, "--rate", "50"); len(view.Failed) > 0 {
				t.Errorf("%+v", view)
			}
		})
	}
	m.replace(20)
	both.Wait()
	if left := m.opened(); left[m.next] != 50 || left[m.own] != 0 {
		t.Errorf("left %v", left)
	}
}

func TestProgressOfARewrap(t *testing.T) {
	m := newMove(t, 20)
	m.deploy()
	now := time.Now()
	m.change = func(a *app) {
		a.now = func() time.Time { now = now.Add(output.ProgressEvery); return now }
	}
	if _, got := m.rewrap(exit.Done); !strings.Contains(got.stderr, "\n7 of 20\n") || strings.Contains(got.stderr, "\r") {
		t.Errorf("a file gets\n%q", got.stderr)
	}
	from := m.next
	m.next = m.own // and back
	m.deploy()
	m.change = func(a *app) { a.terminal = true }
	if _, got := m.rewrap(exit.Done, "--from", from); !strings.Contains(got.stderr, fmt.Sprintf("(%d/%d", 20, 20)) || len(got.audits()) != 2 {
		t.Errorf("a terminal gets\n%q", got.stderr)
	}
}
