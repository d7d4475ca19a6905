package contract_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// replays fails the test unless got is the remembered answer of first.
func replays(t *testing.T, got, first response) {
	t.Helper()
	if string(got.is(t, http.StatusCreated).body) != string(first.body) {
		t.Errorf("got %s, want the first answer %s", got.body, first.body)
	}
	if v := got.header.Values("Idempotent-Replayed"); !slices.Equal(v, []string{"true"}) {
		t.Errorf("Idempotent-Replayed is %q on a replay", v)
	}
}

// fresh fails the test unless the response is a new credential.
func fresh(t *testing.T, got response) response {
	t.Helper()
	if v, found := got.is(t, http.StatusCreated).header["Idempotent-Replayed"]; found {
		t.Errorf("Idempotent-Replayed is %q on a first answer", v)
	}
	return got
}

func TestReplay(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	first := fresh(t, post(bodyWith(`,"name":"one","disabled":true`)).as(n.management).idempotent(idempotencyKey).do(t))
	for name, body := range map[string]string{
		"the same":      bodyWith(`,"name":"one","disabled":true`),
		"other order":   `{"name":"one","disabled":true,"provider":"openai","key":"` + providerKey + `"}`,
		"white space":   strings.ReplaceAll(bodyWith(`,"name":"one","disabled":true`), ",", " ,\n\t"),
		"other escapes": strings.ReplaceAll(bodyWith(`,"name":"one","disabled":true`), "one", `\u006fne`),
	} {
		t.Run(name, func(t *testing.T) {
			replays(t, post(body).as(n.management).idempotent(idempotencyKey).do(t), first)
		})
	}
	for name, body := range map[string]string{
		"other key":           strings.Replace(bodyWith(`,"name":"one","disabled":true`), providerKey, providerKey+"x", 1),
		"other name":          bodyWith(`,"name":"two","disabled":true`),
		"member left out":     bodyWith(`,"name":"one"`),
		"default written out": bodyWith(`,"name":"one","disabled":true,"is_required":false`),
		"null written out":    bodyWith(`,"name":"one","disabled":true,"allowed_models":null`),
	} {
		t.Run(name, func(t *testing.T) {
			post(body).as(n.management).idempotent(idempotencyKey).do(t).refuses(t, "")
		})
	}
	t.Run("nothing was written", func(t *testing.T) {
		if got := post(bodyWith("")).as(n.management).do(t).created(t).SortOrder; got != 1 {
			t.Errorf("the next credential is at %d, want 1", got)
		}
	})
}

// TestReplayScope: an idempotency key belongs to the API key that sent it.
func TestReplayScope(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	first := fresh(t, post(bodyWith("")).as(n.management).idempotent(idempotencyKey).do(t))
	second := fresh(t, post(bodyWith("")).as(n.key(t, managementKey())).idempotent(idempotencyKey).do(t))
	if first.created(t).ID == second.created(t).ID {
		t.Error("two API keys share one remembered answer")
	}
	post(bodyWith("")).as(n.standard).idempotent(idempotencyKey).do(t).is(t, http.StatusForbidden)
}

// TestOnlySuccessIsRemembered: after a 400 the key is free for the request as
// it should have been.
func TestOnlySuccessIsRemembered(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	post(bodyWith(`,"workspace_id":"`+other.workspace+`"`)).as(n.management).idempotent(idempotencyKey).do(t).
		refuses(t, "/workspace_id")
	post(bodyWith(`,"name":1`)).as(n.management).idempotent(idempotencyKey).do(t).refuses(t, "/name")
	fresh(t, post(bodyWith("")).as(n.management).idempotent(idempotencyKey).do(t))
}

// TestReplayOrder: the request's own syntax, then replay, then what storage
// shows. A replay asks for nothing that has changed since; a revoked key
// replays nothing.
func TestReplayOrder(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	body := bodyWith(`,"workspace_id":"` + n.second + `"`)
	first := fresh(t, post(body).as(n.management).idempotent(idempotencyKey).do(t))
	n.deleteWorkspace(t, n.second)
	replays(t, post(body).as(n.management).idempotent(idempotencyKey).do(t), first)
	post(body).as(n.management).do(t).refuses(t, "/workspace_id")
	post(body).as(n.management).idempotent(idempotencyKey).with("Content-Type", "text/plain").do(t).refuses(t, "")
	n.disable(t, n.management)
	post(body).as(n.management).idempotent(idempotencyKey).do(t).because(t, "disabled")
}

// TestIdempotencyKey: 1 to 255 visible ASCII characters, sent once.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for name, c := range map[string]struct {
		values []string
		right  bool
	}{
		"shortest":           {[]string{"!"}, true},
		"longest":            {[]string{strings.Repeat("~", 255)}, true},
		"a quoted one":       {[]string{`"a,b"`}, true},
		"empty":              {[]string{""}, false},
		"one too many":       {[]string{strings.Repeat("~", 256)}, false},
		"space inside":       {[]string{"a b"}, false},
		"tab inside":         {[]string{"a\tb"}, false},
		"not ASCII":          {[]string{"clé"}, false},
		"sent twice":         {[]string{"a", "b"}, false},
		"sent twice, alike":  {[]string{"a", "a"}, false},
		"sent twice, second": {[]string{"a", ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(bodyWith("")).as(n.management).with("Idempotency-Key", c.values...).do(t)
			if c.right {
				fresh(t, r)
			} else {
				r.refuses(t, "")
			}
		})
	}
}

// TestSortOrder: from 0, per workspace and provider.
func TestSortOrder(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	second := `,"workspace_id":"` + n.second + `"`
	for _, c := range []struct {
		body string
		want int
	}{
		{bodyWith(""), 0},
		{bodyWith(""), 1},
		{bodyWith(second), 0},
		{strings.Replace(bodyWith(""), "openai", "anthropic/2", 1), 0},
		{bodyWith(`,"workspace_id":"` + n.workspace + `"`), 2},
		{strings.Replace(bodyWith(second), "openai", "anthropic/2", 1), 0},
		{bodyWith(second), 1},
	} {
		if got := post(c.body).as(n.management).do(t).created(t).SortOrder; got != c.want {
			t.Errorf("got sort_order %d, want %d", got, c.want)
		}
	}
}
