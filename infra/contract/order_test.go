package contract_test

import (
	"net/http"
	"testing"
)

// TestOrderOfChecks: each request is wrong in several ways at once and gets the
// answer that comes first in the contract's order.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	spent := n.key(t, managementKey())
	exhaust(t, spent)
	revoked := n.key(t, managementKey())
	exhaust(t, revoked)
	n.disable(t, revoked)
	badKey := []string{"a key with spaces"}

	for name, c := range map[string]struct {
		request
		status int
	}{
		"get: 401 before 404":                     {get("no-uuid").as("unknown"), 401},
		"get: 401 of a standard key before 404":   {get("no-uuid").as(n.standard), 401},
		"get: 404":                                {get("no-uuid").as(n.management), 404},
		"post: 401 before 400":                    {post("").as("unknown"), 401},
		"post: 401 before an idempotency key":     {post("").as("unknown").with("Idempotency-Key", badKey...), 401},
		"post: 401 before a content type":         {post("").as("unknown").with("Content-Type", "text/plain"), 401},
		"post: 403 before 400":                    {post("").as(n.standard), 403},
		"post: 403 before an idempotency key":     {post("").as(n.standard).with("Idempotency-Key", badKey...), 403},
		"post: 403 of a bound key":                {post("").as(n.bound), 403},
		"post: 400":                               {post("").as(n.management), 400},
		"delete: 401 before 429":                  {del("file_x").as(revoked), 401},
		"delete: 401 before 404":                  {del("no-file").as("unknown").in("no-uuid"), 401},
		"delete: 429 before 404 of the id":        {del("no-file").as(spent), 429},
		"delete: 429 before 404 of the workspace": {del("file_x").as(spent).in("no-uuid"), 429},
		"delete: 404":                             {del("no-file").as(n.management), 404},
	} {
		t.Run(name, func(t *testing.T) { c.do(t).is(t, c.status) })
	}
}

// exhaust uses up all that the key may delete at once.
func exhaust(t *testing.T, token string) {
	t.Helper()
	for range burst {
		del("file_unknown").as(token).do(t).is(t, http.StatusNotFound)
	}
}
