package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"
)

// limits are the limiter's headers of a response.
type limits struct{ quota, window, remaining, reset, retry int }

// limitsOf reads the headers; both notations must agree.
func limitsOf(t *testing.T, r response) limits {
	t.Helper()
	var l limits
	scan := func(name, format string, into ...any) {
		if _, err := fmt.Sscanf(r.Header.Get(name), format, into...); err != nil {
			t.Fatalf("%s: %q: %v", name, r.Header.Get(name), err)
		}
	}
	scan("Ratelimit-Policy", `"delete-file";q=%d;w=%d`, &l.quota, &l.window)
	scan("Ratelimit", `"delete-file";r=%d;t=%d`, &l.remaining, &l.reset)
	for name, want := range map[string]int{
		"X-Ratelimit-Limit": l.quota, "X-Ratelimit-Remaining": l.remaining, "X-Ratelimit-Reset": l.reset,
	} {
		if got := r.Header.Get(name); got != strconv.Itoa(want) {
			t.Errorf("%s is %q, want %d as in the other notation", name, got, want)
		}
	}
	if r.Status == http.StatusTooManyRequests {
		scan("Retry-After", "%d", &l.retry)
	}
	return l
}

// limiter is the rate limit of DELETE at the suite's server.
type limiter struct{ perMinute, burst int }

// limiterOf reads the limiter from the description of a stack. A description without
// parameters, such as that of `make run`, has the template's defaults.
func limiterOf(file string) (limiter, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the caller's own path
	if err != nil {
		return limiter{}, err
	}
	described := struct{ Parameters map[string]string }{map[string]string{"DeleteRatePerMinute": "60", "DeleteBurst": strconv.Itoa(burst)}}
	if err := json.Unmarshal(text, &described); err != nil {
		return limiter{}, fmt.Errorf("reading %s: %w", file, err)
	}
	perMinute, err := strconv.Atoi(described.Parameters["DeleteRatePerMinute"])
	if err != nil {
		return limiter{}, err
	}
	size, err := strconv.Atoi(described.Parameters["DeleteBurst"])
	return limiter{perMinute, size}, err
}

// seconds is the time in which so many slots return, rounded up.
func (l limiter) seconds(slots int) int { return (60*slots + l.perMinute - 1) / l.perMinute }

// returned is how many slots can have returned since then.
func (l limiter) returned(since time.Time) int {
	return int(time.Since(since) * time.Duration(l.perMinute) / time.Minute)
}

// refusedAtOnce sends a request so often at one instant that the limiter refuses
// some, and returns these and how many it accepted.
func refusedAtOnce(t *testing.T, r request) (refused []response, accepted int) {
	t.Helper()
	if the.burst > 200 {
		t.Skipf("DeleteBurst is %d: too many requests would be needed", the.burst)
	}
	responses, _ := atOnce(t, 3*the.burst, func(int) request { return r })
	for _, got := range responses {
		if got.Status == http.StatusTooManyRequests {
			refused = append(refused, got)
		}
	}
	if len(refused) == 0 {
		t.Fatalf("none of %d requests was refused", len(responses))
	}
	return refused, len(responses) - len(refused)
}

// TestLimiterHeaders: 200, 404 and 429 have the limiter's headers, and each key has its own
// limit.
func TestLimiterHeaders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	began := time.Now()
	// within reports whether got is want, or less by the time that has passed.
	within := func(got, want int) bool {
		return got <= want && got >= want-int(time.Since(began).Seconds())-1
	}
	for used, r := range []request{del(n.file(t, n.workspace)).As(n.standard), del("file_unknown").As(n.standard)} {
		got := limitsOf(t, r.Do(t))
		left := the.burst - used - 1
		if got.quota != the.burst || got.window != the.seconds(the.burst) || !within(got.reset, the.seconds(used+1)) ||
			got.remaining < left || got.remaining > min(the.burst-1, left+the.returned(began)) {
			t.Errorf("after %d: %+v", used+1, got)
		}
	}
	refused, _ := refusedAtOnce(t, del(n.file(t, n.workspace)).In(n.second).As(n.standard))
	// A slow request may read the clock before a request that is counted first.
	slow := int(time.Since(began).Seconds()) + 1
	for _, r := range refused {
		if got := limitsOf(t, r); got.remaining != 0 || got.reset < the.seconds(the.burst)-slow || got.reset > the.seconds(the.burst)+slow || got.retry < 1 || got.retry > the.seconds(1)+slow {
			t.Errorf("refused: %+v", got)
		}
	}
	if got := limitsOf(t, del("file_unknown").As(n.management).Do(t).Is(t, http.StatusNotFound)); got.remaining != the.burst-1 {
		t.Errorf("another key: %+v", got)
	}
}

// TestLimitIsTheKeys: the limit of a key counts over all workspaces.
func TestLimitIsTheKeys(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	first := limitsOf(t, del(n.file(t, n.workspace)).As(n.management).Do(t).Is(t, http.StatusOK))
	second := limitsOf(t, del(n.file(t, n.second)).In(n.second).As(n.management).Do(t).Is(t, http.StatusOK))
	if first.remaining-second.remaining != 1 {
		t.Errorf("%d left, then %d", first.remaining, second.remaining)
	}
}

// TestBurstIsExact: an idle key may make exactly a burst of requests at one instant.
func TestBurstIsExact(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	began := time.Now()
	_, accepted := refusedAtOnce(t, del("file_unknown").As(n.standard))
	if accepted < the.burst || accepted > the.burst+the.returned(began) {
		t.Errorf("%d accepted, want %d and at most %d that returned", accepted, the.burst, the.returned(began))
	}
}

// TestDeletesAtOnce: if 100 requests delete a file, exactly one succeeds. Ten keys
// take part, since each has its own limit.
func TestDeletesAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	var tokens []string
	for range 10 {
		tokens = append(tokens, n.ManagementKey(t))
	}
	file := n.file(t, n.workspace)
	_, got := atOnce(t, 100, func(i int) request { return del(file).As(tokens[i%len(tokens)]) })
	want := map[int]int{http.StatusOK: 1, http.StatusNotFound: 99}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n.exists(t, n.workspace, file) {
		t.Error("the file is still there")
	}
}

// deletesEveryVersion tests a server with a versioned bucket: hidden versions and
// their marker are deleted too, a file with a longer id is not.
func deletesEveryVersion(t *testing.T, s server) {
	n := s.tenant(t)
	file := n.file(t, n.workspace)
	longer := file + "b"
	n.upload(t, n.workspace, file)
	n.upload(t, n.workspace, longer)
	n.Bucket().Hide(t, objectKey(n.workspace, file))
	del(file).As(n.management).At(s.client).Do(t).Is(t, http.StatusOK)
	if n.exists(t, n.workspace, file) {
		t.Error("versions are left")
	}
	del(file).As(n.management).At(s.client).Do(t).Is(t, http.StatusNotFound)
	del(longer).As(n.management).At(s.client).Do(t).Is(t, http.StatusOK)
}
