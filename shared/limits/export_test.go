package limits

import (
	"fmt"
	"testing"
	"time"
)

// At sets the clock.
func (l *Limiter) At(now func() time.Time) *Limiter {
	l.now = now
	return l
}

// A known caller makes a full memory forget nothing.
func TestTheMemoryIsBounded(t *testing.T) {
	var m memory
	for caller := range 20 * maxCallers {
		m.keep(fmt.Sprint(caller), 1)
		if m.of(fmt.Sprint(caller)) != 1 {
			t.Fatal("the latest caller is forgotten")
		}
	}
	if m.keep(fmt.Sprint(20*maxCallers-1), 2); len(m.tat) != maxCallers {
		t.Errorf("%d callers are kept, want %d", len(m.tat), maxCallers)
	}
}
