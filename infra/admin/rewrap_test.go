package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/rewrap"
)

func TestRewrapMovesEveryCredential(t *testing.T) {
	m := newMove(t, 130)
	before := m.rows()
	m.deploy()
	if survey := m.must("credential", "rewrap", "--to", m.next, "--dry-run"); !strings.Contains(survey, "130") || !strings.Contains(survey, "to be moved") {
		t.Errorf("the dry run says\n%s", survey)
	}
	if diff := cmp.Diff(before, m.rows()); diff != "" {
		t.Errorf("the dry run changed (-before +after):\n%s", diff)
	}
	view, got := m.rewrap(exit.Done)
	if view.Rewrapped != 130 || view.AlreadyThere != 0 || view.Overtaken != 0 || len(view.Failed) != 0 {
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
		t.Errorf("more than the wrapping changed (-want +got):\n%s", diff)
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
	m.back()
}

// back moves everything back, as an operator may who has changed his mind.
func (m *move) back() {
	m.Helper()
	moved := m.next
	m.sealing, m.next = "", m.own
	m.writeStack()
	if view, _ := m.rewrap(exit.Done, "--from", moved); view.Rewrapped != 130 || m.opened()[m.own] != 130 {
		m.Errorf("back: %+v", view)
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
	enough := m.stored(20)
	go func() { <-enough; interrupt() }()
	var stdout, stderr bytes.Buffer
	args := []string{"--local", m.dir, "credential", "rewrap", "--to", m.next}
	if code := newApp(nil, &stdout, &stderr).run(ctx, args); code != exit.Uncertain || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	if audits := (answer{stderr: stderr.String()}).audits(); len(audits) != 2 || audits[1]["outcome"] != "uncertain" {
		t.Errorf("audit %v", audits)
	}
	m.goesOn(60)
}

// goesOn runs the command to its end after one that did not come to it.
func (m *move) goesOn(total int) {
	m.Helper()
	under := m.opened()
	if under[m.own] == 0 || under[m.next] == 0 {
		m.Errorf("not in the middle: %v", under)
	}
	// The engine may take a write whose client is gone after these were read.
	if view, _ := m.rewrap(exit.Done); view.Rewrapped > under[m.own] || view.Rewrapped+view.AlreadyThere != total {
		m.Errorf("%+v after %v", view, under)
	}
	if after := m.opened(); after[m.next] != total {
		m.Errorf("under the keys are %v", after)
	}
}

func TestAKilledRewrapGoesOn(t *testing.T) {
	m := newMove(t, 60)
	m.deploy()
	m.killed(20, "--rate", "100")
	m.goesOn(60)
}

// killed runs the command as a process and kills it when it has stored so many.
func (m *move) killed(after int64, args ...string) {
	m.Helper()
	enough := m.stored(after)
	command := m.process(args...)
	if err := command.Start(); err != nil {
		m.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case <-enough:
	case err := <-ended:
		m.Fatalf("it ended before it was killed: %v", err)
	}
	if err := command.Process.Kill(); err != nil {
		m.Fatal(err)
	}
	<-ended
	m.before = nil
	m.writeStack()
}

// process is the command as a process of its own.
func (m *move) process(args ...string) *exec.Cmd {
	m.Helper()
	return exec.Command("admin", append([]string{"--local", m.dir, "credential", "rewrap", "--to", m.next}, args...)...) //nolint:gosec // this very binary, see TestMain
}

func TestRewrapWhileCredentialsComeAndGo(t *testing.T) {
	m := newMove(t, 100)
	m.deploy()
	var doomed []string
	for id, row := range m.rows() {
		if len(doomed) < 20 {
			doomed = append(doomed, string(row.Workspace)+" "+string(id))
		}
	}
	ended := make(chan rewrap.Result)
	go func() {
		view, _ := m.rewrap(exit.Done, "--rate", "200")
		ended <- view
	}()
	for n := range 20 {
		m.create(n)
		workspace, id, _ := strings.Cut(doomed[n], " ")
		m.remove(workspace, id)
	}
	view := <-ended
	if left := m.opened(); left[m.next] != 100 || left[m.own] != 0 || len(view.Failed) > 0 {
		t.Errorf("left %v after %+v", left, view)
	}
}

func TestTwoRewrapsAtOnce(t *testing.T) {
	m := newMove(t, 100)
	m.deploy()
	var moved atomic.Int32
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			view, _ := m.rewrap(exit.Done)
			moved.Add(int32(view.Rewrapped)) //nolint:gosec // a hundred
			if view.Rewrapped+view.AlreadyThere != 100 {
				t.Errorf("%+v", view)
			}
		})
	}
	both.Wait()
	if left := m.opened(); left[m.next] != 100 || moved.Load() != 100 {
		t.Errorf("moved %d, left %v", moved.Load(), left)
	}
}

func TestProgressOfARewrap(t *testing.T) {
	m := newMove(t, 20)
	m.deploy()
	now := time.Now()
	m.app = func(stdin string, stdout, stderr *bytes.Buffer) *app {
		a := newApp(strings.NewReader(stdin), stdout, stderr)
		a.now = func() time.Time { now = now.Add(output.ProgressEvery); return now }
		return a
	}
	if _, got := m.rewrap(exit.Done); !strings.Contains(got.stderr, "\n7 of 20\n") || strings.Contains(got.stderr, "\r") {
		t.Errorf("a file gets\n%q", got.stderr)
	}
	more := newMove(t, 20)
	more.deploy()
	more.app = func(stdin string, stdout, stderr *bytes.Buffer) *app {
		a := newApp(strings.NewReader(stdin), stdout, stderr)
		a.terminal = true
		return a
	}
	if _, got := more.rewrap(exit.Done); !strings.Contains(got.stderr, fmt.Sprintf("(%d/%d", 20, 20)) || len(got.audits()) != 2 {
		t.Errorf("a terminal gets\n%q", got.stderr)
	}
}
