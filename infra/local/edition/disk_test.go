package edition_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"signalbox.dev/infra/local/edition"
)

// A full disk is named once, and so is its end, when the engine starts again.
func TestAFullDiskIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		var lines strings.Builder
		restarts := 0
		stop := edition.WatchDisk(full.Load, &lines, func() { restarts++ })
		for _, now := range []bool{false, true, false, false, true} {
			full.Store(now)
			time.Sleep(3 * time.Second) // of the bubble
		}
		stop()
		const filled, room = "The disk is full: make room; until then requests that write get a 500.\n", "The disk has room again.\n"
		if got := lines.String(); got != filled+room+filled || restarts != 1 {
			t.Errorf("%d restarts, %q", restarts, got)
		}
	})
}
