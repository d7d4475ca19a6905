package sim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox.dev/infra/test/awsmodel"
)

// gcra is the state of the limiter for one request, by ITU-T I.371 in Unix nanoseconds. The
// stored state is the theoretical arrival time of the next request.
type gcra struct {
	interval, tolerance, now, burst int64
	header                          map[string]string // of the response
}

func newGCRA(x *exchange, d Delete) gcra {
	interval := (time.Minute.Nanoseconds() + d.PerMinute - 1) / d.PerMinute
	return gcra{interval, (d.Burst - 1) * interval, x.began.UnixNano(), d.Burst, x.answer.Header}
}

// passes is the stored state after a request that passes, and whether it passes.
func (g gcra) passes(arrival int64) (passes bool, next int64) {
	return arrival <= g.now+g.tolerance, max(arrival, g.now) + g.interval
}

// saysPassed reports whether the headers are right after a request that passed.
func (g gcra) saysPassed(next int64) bool {
	return g.says(g.burst-(next-g.now+g.interval-1)/g.interval, next-g.now)
}

// saysRefused reports whether the request must be refused, and the headers say so.
func (g gcra) saysRefused(arrival int64) bool {
	wait := max(arrival-g.tolerance-g.now, time.Second.Nanoseconds())
	return arrival > g.now+g.tolerance && g.says(0, arrival-g.now) && g.header["Retry-After"] == seconds(wait)
}

func (g gcra) says(remaining, reset int64) bool {
	burst, r, t := strconv.FormatInt(g.burst, 10), strconv.FormatInt(remaining, 10), seconds(reset)
	return g.header["RateLimit-Policy"] == `"delete-file";q=`+burst+";w="+seconds(g.burst*g.interval) &&
		g.header["RateLimit"] == `"delete-file";r=`+r+";t="+t &&
		g.header["X-RateLimit-Limit"] == burst && g.header["X-RateLimit-Remaining"] == r && g.header["X-RateLimit-Reset"] == t
}

func seconds(ns int64) string {
	return strconv.FormatInt((ns+time.Second.Nanoseconds()-1)/time.Second.Nanoseconds(), 10)
}

// judgeLimit holds the limiter to GCRA.
func (w *World) judgeLimit(x *exchange, d Delete) {
	w.limited[d.Token] = true
	w.judgeLimitHeaders(x)
	g, limit := newGCRA(x, d), limitObject(d.Token)
	counted := perhaps(on(limit, "counts at "+w.offset(g.now), g.passes))
	own := false
	for _, m := range x.met {
		if strings.Contains(m.call, "limit#") {
			w.showed(m.during(x.actor), counted) // by an attempt whose answer was lost
			own = own || m.fault.ownThrottle()
		}
	}
	// A throttled item is the caller's doing: one call, then 429.
	if own && (len(x.met) > 1 || x.answer.Status != http.StatusTooManyRequests) && x.knowsCaller() && !slices.ContainsFunc(x.met, func(m met) bool { return !m.fault.ownThrottle() }) {
		w.problem("%s: %d after %v", x.Name, x.answer.Status, x.met)
	}
	switch x.answer.Status {
	case http.StatusOK, http.StatusNotFound:
		w.showed(x.actor, on(limit, "passes at "+w.offset(g.now), func(arrival int64) (bool, int64) {
			passes, next := g.passes(arrival)
			return passes && g.saysPassed(next), next
		}))
	case http.StatusTooManyRequests:
		if !own {
			w.showed(x.actor, shows(limit, "is refused at "+w.offset(g.now), g.saysRefused))
		}
	default:
		w.showed(x.actor, counted)
	}
}

// judgeLimitHeaders requires the limiter's headers on each response that it decided.
func (w *World) judgeLimitHeaders(x *exchange) {
	counted := slices.Contains([]int{http.StatusOK, http.StatusNotFound, http.StatusTooManyRequests}, x.answer.Status)
	for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if (x.answer.Header[name] != "") != counted {
			w.problem("%s: %d with %s %q", x.Name, x.answer.Status, name, x.answer.Header[name])
		}
	}
	if after := x.answer.Header["Retry-After"]; (after != "") != (x.answer.Status == http.StatusTooManyRequests) || strings.HasPrefix(after, "0") {
		w.problem("%s: %d with Retry-After %q", x.Name, x.answer.Status, after)
	}
}

// judgeArrivals notes the state that the limiter has stored at the end.
func (w *World) judgeArrivals() {
	for token := range w.limited {
		stored, _ := awsmodel.Integer(w.model.Item(controlTable, "limit#delete-file#"+hashOf(token), "")["tat"])
		w.showed(atTheEnd, shows(limitObject(token), "the stored arrival time is "+w.offset(stored), func(arrival int64) bool { return arrival == stored }))
	}
}

func limitObject(token string) string { return "the limit of key " + hashOf(token)[:12] }

// offset is a time in Unix nanoseconds, from the beginning of the run.
func (w *World) offset(at int64) string { return time.Duration(at - w.began.UnixNano()).String() }
