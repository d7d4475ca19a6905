package contract_test

import (
	"sync"
	"testing"
)

// atOnce sends n requests, all let go at the same instant, and checks each
// answer like any other.
func atOnce(t *testing.T, n int, nth func(i int) request) []response {
	t.Helper()
	requests, answers, errs := make([]request, n), make([]response, n), make([]error, n)
	start := make(chan struct{})
	var done sync.WaitGroup
	for i := range n {
		requests[i] = nth(i)
		done.Go(func() {
			<-start
			answers[i], errs[i] = requests[i].send()
		})
	}
	close(start)
	done.Wait()
	for i := range n {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		answers[i].checkEnvelope(t, requests[i])
	}
	return answers
}

// count tells how many answers have which status.
func count(answers []response) map[int]int {
	counts := map[int]int{}
	for _, r := range answers {
		counts[r.status]++
	}
	return counts
}
