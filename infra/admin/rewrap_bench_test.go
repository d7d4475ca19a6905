package main

import (
	"flag"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/testkit"
)

var demoSize = flag.Int("credentials", 1000, "how many credentials BenchmarkRewrap moves")

// BenchmarkRewrap shows a whole rewrap: killed when a third is moved, run again
// while credentials are created and deleted, and once more when nothing is left to
// do. Before and after, every credential is opened. `make rewrap-demo` runs it once
// with 100,000.
func BenchmarkRewrap(b *testing.B) {
	for b.Loop() {
		m := newMove(b, 0)
		began := time.Now()
		m.seed(*demoSize)
		b.Logf("sealed and stored %d credentials in %s", *demoSize, time.Since(began).Round(time.Second/10))
		m.deploy()
		m.kill(*demoSize / 3)
		under := m.opened()
		b.Logf("killed: %d under the old key, %d under the next, and all of them open", under[m.own], under[m.next])

		var busy sync.WaitGroup
		busy.Go(func() { m.replace(200) })
		view, _ := m.rewrap(exit.Done, "--rate", "1000000")
		busy.Wait()
		b.Logf("resumed: %d rewrapped, %d already there, %d gone meanwhile, %d failed, in %.1f s: %.0f a second",
			view.Rewrapped, view.AlreadyThere, view.Changed, len(view.Failed), view.Seconds, float64(view.Rewrapped)/view.Seconds)
		b.ReportMetric(float64(view.Rewrapped)/view.Seconds, "credentials/s")

		again, _ := m.rewrap(exit.Done, "--rate", "1000000")
		b.Logf("once more: %d rewrapped, %d already there, in %.1f s", again.Rewrapped, again.AlreadyThere, again.Seconds)
		under = m.opened()
		b.Logf("at the end: %d under the old key, %d under the next, and all of them open", under[m.own], under[m.next])
		if under[m.own] != 0 || again.Rewrapped != 0 || len(view.Failed)+len(again.Failed) > 0 {
			b.Error("not all were moved")
		}
	}
}

// kill runs the command as a process and kills it once it has moved so many, of
// at least three times as many.
func (m *move) kill(after int) {
	m.Helper()
	rate := strconv.Itoa(after)                                                                                // five seconds' worth is left to move in the test
	command := exec.Command("admin", "--local", m.dir, "credential", "rewrap", "--to", m.next, "--rate", rate) //nolint:gosec // this very binary: TestMain
	testkit.Must(m, command.Start())
	for m.moved() < after {
		time.Sleep(10 * time.Millisecond)
	}
	testkit.Must(m, command.Process.Kill())
	_ = command.Wait() // it was killed
}

// moved counts the credentials under the next key.
func (m *move) moved() (n int) {
	for _, row := range m.rows() {
		if row.Seal.KeyARN == m.next {
			n++
		}
	}
	return n
}

// replace deletes so many credentials and creates as many others.
func (m *move) replace(credentials int) {
	for _, row := range m.rows() {
		if credentials--; credentials < 0 {
			return
		}
		m.create(credentials)
		m.remove(row)
	}
}
