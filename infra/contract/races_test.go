package contract_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

// TestDeletesAtOnce: of 100 callers who delete one file exactly one is told
// that it did. Ten keys take part, since each has its own limit.
func TestDeletesAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	var tokens []string
	for range 10 {
		tokens = append(tokens, n.key(t, managementKey()))
	}
	file := n.file(t, n.workspace)
	got := count(atOnce(t, 100, func(i int) request { return del(file).as(tokens[i%len(tokens)]) }))
	want := map[int]int{http.StatusOK: 1, http.StatusNotFound: 99}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n.exists(t, n.workspace, file) {
		t.Error("the file is still there")
	}
}

// TestCreatesAtOnceUnderOneKey: 200 callers with one idempotency key get one
// credential, each of them its 201.
func TestCreatesAtOnceUnderOneKey(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	firsts, bodies := 0, map[string]bool{}
	for _, r := range atOnce(t, 200, func(int) request {
		return post(bodyWith("")).as(n.management).idempotent(idempotencyKey)
	}) {
		bodies[string(r.is(t, http.StatusCreated).body)] = true
		if _, replayed := r.header["Idempotent-Replayed"]; !replayed {
			firsts++
		}
	}
	if len(bodies) != 1 || firsts != 1 {
		t.Errorf("got %d different answers, %d of them first ones, want 1 and 1", len(bodies), firsts)
	}
}

// TestCreatesAtOnce: 200 credentials in one workspace, no two with one place.
func TestCreatesAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	places, ids := map[int]bool{}, map[string]bool{}
	for _, r := range atOnce(t, 200, func(int) request { return post(bodyWith("")).as(n.management) }) {
		c := r.created(t)
		places[c.SortOrder], ids[c.ID] = true, true
	}
	if len(ids) != 200 || len(places) != 200 {
		t.Errorf("got %d ids and the places %v", len(ids), slices.Sorted(maps.Keys(places)))
	}
}
