package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox.dev/infra/admin/rewrap"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

var demoSize = flag.Int("credentials", 1000, "how many credentials BenchmarkRewrap moves")

// BenchmarkRewrap shows a whole rewrap, with the command as a process of its
// own: killed when a third is moved, run again while credentials are created
// and deleted, and once more when nothing is left to do. Before and after, every
// credential is opened. `make rewrap-demo` runs it once with 100,000.
func BenchmarkRewrap(b *testing.B) {
	for b.Loop() {
		m := newMove(b, 0)
		b.Logf("sealed and stored %d credentials in %s", *demoSize, m.took(func() { m.seed(*demoSize) }))
		m.deploy()
		m.killed(int64(*demoSize/3), "--rate", "1000000")
		under := m.opened()
		b.Logf("killed: %d under the old key, %d under the next, and all of them open", under[m.own], under[m.next])

		view := m.runBusy()
		b.Logf("resumed: %d rewrapped, %d already there, %d gone meanwhile, %d failed, in %.1f s: %.0f a second",
			view.Rewrapped, view.AlreadyThere, view.Overtaken, len(view.Failed), view.Seconds, float64(view.Rewrapped)/view.Seconds)
		b.ReportMetric(float64(view.Rewrapped)/view.Seconds, "credentials/s")

		again := m.run(m.process("--rate", "1000000", "--json"))
		b.Logf("once more: %d rewrapped, %d already there, in %.1f s", again.Rewrapped, again.AlreadyThere, again.Seconds)
		under = m.opened()
		b.Logf("at the end: %d under the old key, %d under the next, and all of them open", under[m.own], under[m.next])
		if under[m.own] != 0 || again.Rewrapped != 0 || len(view.Failed)+len(again.Failed) > 0 {
			b.Error("not all were moved")
		}
	}
}

func (m *move) took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began).Round(time.Second / 10)
}

// seed stores many credentials as the API does, side by side.
func (m *move) seed(n int) {
	m.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				m.add(m.own)
			}
		})
	}
	all.Wait()
}

// add stores a credential in some workspace, sealed under the key.
func (m *move) add(key string) {
	m.Helper()
	store := byok.NewStore(m.db, m.engines.Tables.Credentials, m.engines.Tables.Control, seal.NewSealer(m.kms, key))
	draft, err := store.Seal(m.Context(), m.account, ids.New[ids.Workspace](), byok.New{
		Settings: byok.Settings{Provider: "openai", Name: "demo"}, Key: secret.New([]byte(providerKey)),
	})
	if err == nil {
		err = store.Create(m.Context(), draft)
	}
	if err != nil {
		m.Error(err)
	}
}

// runBusy runs the command while credentials are created and deleted.
func (m *move) runBusy() rewrap.Result {
	m.Helper()
	var doomed []record
	for _, row := range m.rows() {
		if row.Seal.KeyARN == m.own && len(doomed) < 200 {
			doomed = append(doomed, row)
		}
	}
	var busy sync.WaitGroup
	busy.Go(func() {
		for _, row := range doomed {
			m.add(m.next)
			m.remove(string(row.Workspace), string(row.ID))
		}
	})
	view := m.run(m.process("--rate", "1000000", "--json"))
	busy.Wait()
	return view
}

// run is a whole run of the command, which must succeed.
func (m *move) run(command *exec.Cmd) rewrap.Result {
	m.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	var view rewrap.Result
	if err := command.Run(); err != nil {
		m.Fatalf("%v: %s", err, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), &view); err != nil {
		m.Fatal(err)
	}
	return view
}
