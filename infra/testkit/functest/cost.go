package functest

import (
	"slices"
	"strings"
	"testing"
)

// CheckCost checks what a request cost: which calls it made, in any order, and how
// many of them the caller waited for one after another. The log line must say
// the same.
func CheckCost(t testing.TB, a Answer, roundTrips int, calls ...string) {
	t.Helper()
	var made []string
	for _, s := range stepsOf(a.Calls) {
		made = append(made, s.name())
	}
	slices.Sort(made)
	slices.Sort(calls)
	if !slices.Equal(made, calls) {
		t.Errorf("calls %s, want %s", strings.Join(made, ", "), strings.Join(calls, ", "))
	}
	if a.Line["aws_calls"] != float64(len(a.Calls)) || a.Line["round_trips"] != float64(roundTrips) {
		t.Errorf("the log line says %v calls, %v of them in line; want %d, %d",
			a.Line["aws_calls"], a.Line["round_trips"], len(a.Calls), roundTrips)
	}
}
