package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// limits are the limiter's headers of a response.
type limits struct{ quota, window, remaining, reset, retry int }

// limitsOf reads the headers, whose two notations must agree.
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

// TestLimiterHeaders: 200, 404 and 429 count alike, each key for itself.
func TestLimiterHeaders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	const interval = 60 / perMinute
	began := time.Now()
	// about reports whether got is want, less the time that has passed.
	about := func(got, want int) bool {
		return got <= want && got >= want-int(time.Since(began).Seconds())-1
	}
	first := del(n.file(t, n.workspace)).As(n.standard).Do(t).Is(t, http.StatusOK)
	want := limits{quota: burst, window: burst * interval, remaining: burst - 1, reset: interval}
	if got := limitsOf(t, first); got != want {
		t.Errorf("first delete: got %+v, want %+v", got, want)
	}
	for left := burst - 2; left >= 0; left-- {
		got := limitsOf(t, del("file_unknown").As(n.standard).Do(t).Is(t, http.StatusNotFound))
		if got.remaining != left || !about(got.reset, (burst-left)*interval) {
			t.Errorf("got %+v, want %d left", got, left)
		}
	}
	for range 3 { // a refusal costs nothing
		got := limitsOf(t, del(n.file(t, n.workspace)).As(n.standard).Do(t).Is(t, http.StatusTooManyRequests))
		if got.remaining != 0 || !about(got.reset, burst*interval) || !about(got.retry, interval) {
			t.Errorf("refused: %+v", got)
		}
	}
	if got := limitsOf(t, del("file_unknown").As(n.management).Do(t).Is(t, http.StatusNotFound)); got.remaining != burst-1 {
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

// TestBurstIsExact: of 60 requests at one instant under an idle key exactly the
// burst passes.
func TestBurstIsExact(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	_, got := atOnce(t, 60, func(int) request { return del("file_unknown").As(n.standard) })
	want := map[int]int{http.StatusNotFound: burst, http.StatusTooManyRequests: 60 - burst}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestDeletesAtOnce: of 100 deletes of one file exactly one succeeds. Ten keys
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
// their marker are deleted too, a file whose id only begins alike is not.
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
