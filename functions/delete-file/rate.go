package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/limits"
)

// limitName names the limiter's policy in headers and in its items.
const limitName = "delete-file"

// rateOf reads the rate from the stage's variables. If a parameter of the stack
// changes, they change for the next request. A function's environment is fixed when
// its version is published.
func rateOf(r *api.Request) (limits.Rate, error) {
	perMinute, err := strconv.ParseInt(r.StageVariable("deleteRatePerMinute"), 10, 64)
	if err != nil {
		return limits.Rate{}, errors.New("stage variable deleteRatePerMinute is not a number")
	}
	burst, err := strconv.ParseInt(r.StageVariable("deleteBurst"), 10, 64)
	if err != nil {
		return limits.Rate{}, errors.New("stage variable deleteBurst is not a number")
	}
	return limits.NewRate(perMinute, burst)
}

// rateHeaders are the limiter's headers: the fields of
// draft-ietf-httpapi-ratelimit-headers-10, and the older ones that more clients
// read.
func rateHeaders(d limits.Decision) map[string]string {
	remaining, reset := strconv.FormatInt(d.Remaining, 10), seconds(d.Reset)
	burst := strconv.FormatInt(d.Burst, 10)
	header := map[string]string{
		"RateLimit-Policy":      fmt.Sprintf(`"%s";q=%s;w=%s`, limitName, burst, seconds(d.Window)),
		"RateLimit":             fmt.Sprintf(`"%s";r=%s;t=%s`, limitName, remaining, reset),
		"X-RateLimit-Limit":     burst,
		"X-RateLimit-Remaining": remaining,
		"X-RateLimit-Reset":     reset,
	}
	if !d.Allowed {
		header["Retry-After"] = seconds(max(d.RetryAfter, time.Second))
	}
	return header
}

// seconds rounds up, because a client that waits for the result must wait long enough.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
