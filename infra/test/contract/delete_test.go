package contract_test

import (
	"cmp"
	"maps"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// limiter is the rate limit of DELETE at a server.
type limiter struct{ perMinute, burst int }

// limiterOf reads the limiter from the parameters of a stack. A stack without parameters,
// such as that of `make run`, has the template's defaults.
func limiterOf(parameters map[string]string) (l limiter, err error) {
	if l.perMinute, err = strconv.Atoi(cmp.Or(parameters["DeleteRatePerMinute"], "60")); err != nil {
		return l, err
	}
	l.burst, err = strconv.Atoi(cmp.Or(parameters["DeleteBurst"], "20"))
	return l, err
}

// beyondLimit sends requests at one instant, so many that the limiter refuses some, and
// returns how many it accepted.
func beyondLimit(t *testing.T, nth func(i int) request) (accepted int) {
	t.Helper()
	if the.burst > 200 {
		t.Skipf("DeleteBurst is %d: too many requests would be needed", the.burst)
	}
	responses, statuses := atOnce(t, 3*the.burst, nth)
	if statuses[http.StatusTooManyRequests] == 0 {
		t.Fatalf("none of %d requests was refused: %v", len(responses), statuses)
	}
	return len(responses) - statuses[http.StatusTooManyRequests]
}

// TestBurstIsExact: an idle key may make exactly a burst of requests at one instant, over
// all workspaces. The limit comes before a malformed id. Another key has its own limit.
func TestBurstIsExact(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	began := time.Now()
	workspaces := []string{n.workspace, n.second, "no-uuid"}
	accepted := beyondLimit(t, func(i int) request { return del("no-file").In(workspaces[i%3]).As(n.standard) })
	returned := int(time.Since(began) * time.Duration(the.perMinute) / time.Minute)
	if accepted < the.burst || accepted > the.burst+returned {
		t.Errorf("%d accepted, want %d and at most %d that returned", accepted, the.burst, returned)
	}
	del("no-file").As(n.management).Do(t).Is(t, http.StatusNotFound)
	n.Disable(t, n.standard)
	refused, err := del("no-file").As(n.standard).Do(t).Is(t, http.StatusUnauthorized).Failure()
	if err != nil || refused.Error.Metadata.Reason != "disabled" {
		t.Errorf("a disabled key beyond its limit got %+v, %v", refused, err)
	}
}

// TestDeletesAtOnce: if 40 requests delete a file, exactly one succeeds. Four keys
// take part, since each has its own limit.
func TestDeletesAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	var tokens []string
	for range 4 {
		tokens = append(tokens, n.ManagementKey(t))
	}
	file := n.file(t, n.workspace)
	_, got := atOnce(t, 40, func(i int) request { return del(file).As(tokens[i%len(tokens)]) })
	want := map[int]int{http.StatusOK: 1, http.StatusNotFound: 39}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n.Bucket().Look(t, objectKey(n.workspace, file)).Left > 0 {
		t.Error("the file is still there")
	}
}

// deletesEveryVersion tests a server with a versioned bucket: hidden versions and
// their marker are deleted too, and nothing of a file whose id begins with this one.
func deletesEveryVersion(t *testing.T, s server) {
	n := s.tenant(t)
	file := n.file(t, n.workspace)
	for _, id := range []string{file, file + "0"} {
		n.upload(t, n.workspace, id)
		n.Bucket().Hide(t, objectKey(n.workspace, id))
	}
	del(file).As(n.management).At(s.client).Do(t).Is(t, http.StatusOK)
	if left := n.Bucket().Look(t, objectKey(n.workspace, file)); left.Left != 0 || left.Siblings != 2 {
		t.Errorf("left are %+v, want the two of the longer id alone", left)
	}
}
