package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// limits are the limiter's headers of a response, all of which must say the
// same in their two notations.
type limits struct{ quota, window, remaining, reset, retry int }

func (r response) limits(t *testing.T) limits {
	t.Helper()
	var l limits
	scan := func(name, format string, into ...any) {
		if _, err := fmt.Sscanf(r.header.Get(name), format, into...); err != nil {
			t.Fatalf("%s: %q: %v", name, r.header.Get(name), err)
		}
	}
	scan("Ratelimit-Policy", `"delete-file";q=%d;w=%d`, &l.quota, &l.window)
	scan("Ratelimit", `"delete-file";r=%d;t=%d`, &l.remaining, &l.reset)
	for name, want := range map[string]int{
		"X-Ratelimit-Limit": l.quota, "X-Ratelimit-Remaining": l.remaining, "X-Ratelimit-Reset": l.reset,
	} {
		if got := r.header.Get(name); got != strconv.Itoa(want) {
			t.Errorf("%s is %q, want %d as in the other notation", name, got, want)
		}
	}
	if r.status == http.StatusTooManyRequests {
		scan("Retry-After", "%d", &l.retry)
	}
	return l
}

// TestLimiterHeaders: 200, 404 and 429 count down alike, each key for itself.
func TestLimiterHeaders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	const interval = 60 / perMinute
	began := time.Now()
	// since reports whether got is what it was when the test began, less the time
	// that has passed.
	since := func(got, want int) bool {
		return got <= want && got >= want-int(time.Since(began).Seconds())-1
	}
	first := del(n.file(t, n.workspace)).as(n.standard).do(t).is(t, http.StatusOK)
	want := limits{quota: burst, window: burst * interval, remaining: burst - 1, reset: interval}
	if got := first.limits(t); got != want {
		t.Errorf("first delete: got %+v, want %+v", got, want)
	}
	for left := burst - 2; left >= 0; left-- {
		got := del("file_unknown").as(n.standard).do(t).is(t, http.StatusNotFound).limits(t)
		if got.remaining != left || !since(got.reset, (burst-left)*interval) {
			t.Errorf("got %+v, want %d left", got, left)
		}
	}
	for range 3 { // a refusal costs nothing
		got := del(n.file(t, n.workspace)).as(n.standard).do(t).is(t, http.StatusTooManyRequests).limits(t)
		if got.remaining != 0 || !since(got.reset, burst*interval) || !since(got.retry, interval) {
			t.Errorf("refused: %+v", got)
		}
	}
	if got := del("file_unknown").as(n.management).do(t).is(t, http.StatusNotFound).limits(t); got.remaining != burst-1 {
		t.Errorf("another key: %+v", got)
	}
	get(unknownJob).as(n.management).do(t).is(t, http.StatusNotFound)
}

// TestLimitIsTheKeys: over all workspaces of the account.
func TestLimitIsTheKeys(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	first := del(n.file(t, n.workspace)).as(n.management).do(t).is(t, http.StatusOK).limits(t)
	second := del(n.file(t, n.second)).in(n.second).as(n.management).do(t).is(t, http.StatusOK).limits(t)
	if first.remaining-second.remaining != 1 {
		t.Errorf("%d left, then %d", first.remaining, second.remaining)
	}
}

// TestBurstIsExact: of 60 requests at one instant under a key that was idle,
// exactly the burst passes.
func TestBurstIsExact(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	got := count(atOnce(t, 60, func(int) request { return del("file_unknown").as(n.standard) }))
	want := map[int]int{http.StatusNotFound: burst, http.StatusTooManyRequests: 60 - burst}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
