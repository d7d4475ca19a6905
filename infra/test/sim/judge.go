package sim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// judge looks at everything when the requests have been repeated.
func (w *World) judge() {
	for _, x := range w.exchanges {
		if !x.through || x.raw == nil {
			continue
		}
		w.judgeLine(x)
		w.judgeAudit(x)
		w.judgeLoggedError(x)
		if !x.asked() {
			w.judgeFailure(x)
			w.judgeLatency(x)
			w.judgeKey(x)
		}
		x.request.judge(w, x)
	}
	for _, judge := range w.finally {
		judge()
	}
	w.checkFacts()
}

// judgeLine checks the request's log line. The names in it are those of the function's
// operation; infra/test/contract compares them with infra/openapi.yaml.
func (w *World) judgeLine(x *exchange) {
	line, failed := x.answer.Line, x.answer.Line["error"] != nil
	want := map[string]any{
		"level": "INFO", "duration_ms": float64(x.took().Microseconds()) / 1000,
		"operation": w.operation.ID, "route": x.event.Method + " " + x.event.Resource,
	}
	if failed {
		want["level"] = "ERROR"
	}
	if x.answer.Reason != "" {
		want["reason"] = x.answer.Reason
	}
	if !x.asked() || !failed {
		want["key"] = hashOf(x.token())[:12]
	}
	if !x.asked() {
		if x.beganAt >= 0 { // before the run the calls are not counted
			want["aws_calls"] = float64(x.calls)
		}
		if x.knowsCaller() {
			want["account"] = string(w.Tenant.ID)
		}
		if failed != (x.answer.Status == http.StatusInternalServerError) {
			w.problem("%s: status %d, and the log line has the error %v", x.Name, x.answer.Status, line["error"])
		}
	}
	w.compare(x, "log line", line, want)
}

// judgeAudit requires an audit line of each known caller of an operation that is no GET. The
// tests of shared/api check its fields.
func (w *World) judgeAudit(x *exchange) {
	audited := x.knowsCaller() && w.operation.Method != http.MethodGet
	if (x.answer.Audit != nil) != audited {
		w.problem("%s: the caller of %v is known: %t, the audit line: %v", x.Name, w.operation.ID, x.knowsCaller(), x.answer.Audit)
	}
}

// judgeLoggedError requires that the log describes the one fault that a request failed of.
func (w *World) judgeLoggedError(x *exchange) {
	if x.answer.Status != http.StatusInternalServerError || len(x.met) == 0 {
		return
	}
	first, last := x.met[0], x.met[len(x.met)-1]
	for _, m := range x.met {
		if m.call != first.call || m.logged == nil || m.logged["code"] != first.logged["code"] {
			return
		}
	}
	logged, _ := x.answer.Line["error"].(map[string]any)
	switch {
	case last.logged["code"] == "deadline": // of this call or of a later one
		w.compare(x, "error in the log", logged, map[string]any{"code": "deadline"})
	case x.took() < limit-time.Second:
		w.compare(x, "error in the log", logged, last.logged)
	}
}

func (w *World) compare(x *exchange, kind string, line, want map[string]any) {
	for name, value := range want {
		if line[name] != value {
			w.problem("%s: %s of the %s is %v, want %v: %v", x.Name, name, kind, line[name], value, line)
		}
	}
}

// judgeFailure refuses a 500 without a fault that stays, and an answer that the
// calls cannot have given.
func (w *World) judgeFailure(x *exchange) {
	status := x.answer.Status
	if status == http.StatusInternalServerError {
		if !x.metFaultThatStays() && x.took() < limit-time.Second {
			w.problem("%s: 500 without a fault that stays: %s", x.Name, x.log)
		}
		return
	}
	for name, ok := range x.ok {
		if strings.HasPrefix(name, "GetItem "+accessTable) && strings.Contains(name, "key#") && !ok && status != http.StatusUnauthorized {
			w.problem("%s: %d, though the key could not be looked up", x.Name, status)
		}
	}
	if status == http.StatusCreated && x.answer.Header["Idempotent-Replayed"] == "" {
		w.judgeAnswers(x.actor, "201")
	}
}

// judgeAnswers requires that each call of an actor that succeeded got an answer.
func (w *World) judgeAnswers(a *actor, success string) {
	for name, ok := range a.ok {
		if !ok {
			w.problem("%s: %s, though %s got no answer", a.Name, success, name)
		}
	}
}

// judgeLatency holds a request that was alone to bounds of virtual time.
func (w *World) judgeLatency(x *exchange) {
	if len(w.actors) != 1 || x.actor != w.actors[0] || len(x.met) > 1 && !w.Frozen {
		return
	}
	most := time.Duration(0)
	for _, m := range x.met {
		switch {
		case m.fault.Stays || !m.fault.is(recovers):
			return
		case m.fault == gone:
			most = max(most, 200*time.Millisecond)
		case m.fault.is(attemptTimesOut):
			most = silence + 1500*time.Millisecond
		default:
			most = 1500 * time.Millisecond
		}
	}
	if x.took() > most {
		w.problem("%s: it took %v, at most %v are allowed after %v", x.Name, x.took(), most, x.met)
	}
	if len(x.met) == 0 && w.Calls != nil {
		w.judgeCost(x)
	}
}

// judgeCost compares the calls of a request with the documented ones.
func (w *World) judgeCost(x *exchange) {
	var made []string
	for name, times := range x.made {
		made = append(made, slices.Repeat([]string{kindOf(name)}, times)...)
	}
	slices.Sort(made)
	if want := slices.Sorted(slices.Values(w.Calls)); !slices.Equal(made, want) {
		w.problem("%s: calls %q, want %q", x.Name, made, want)
	}
	if x.deepest != w.RoundTrips {
		w.problem("%s: %d of the calls are one after the other, want %d", x.Name, x.deepest, w.RoundTrips)
	}
}

// kindOf is the operation of a call and the kinds of items that it is about, such as
// "GetItem key#".
func kindOf(name string) string {
	operation, items, _ := strings.Cut(name, " ")
	var kinds []string
	for item := range strings.SplitSeq(items, " + ") {
		parts := strings.Split(item, "/")
		if len(parts) > 1 && strings.Contains(parts[1], "#") {
			kinds = append(kinds, parts[1][:strings.Index(parts[1], "#")+1])
		}
	}
	return strings.TrimSpace(operation + " " + strings.Join(slices.Compact(kinds), "+"))
}

// judgeKey notes whether the request's key was accepted.
func (w *World) judgeKey(x *exchange) {
	key := keyObject(x.token())
	switch {
	case x.answer.Status == http.StatusUnauthorized && x.answer.Reason != "management_key_required":
		w.showed(x.actor, seenOff(key))
	case x.answer.Status != http.StatusInternalServerError:
		w.showed(x.actor, seenOn(key))
	}
}
