package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
)

// read reads the answer right after it was given.
func (x *exchange) read(w *World) {
	var reader sync.WaitGroup // Fatalf ends a goroutine of its own
	reader.Go(func() { x.answer = functest.ReadAnswer(noting{w.t, w, x.Name + ": "}, x.raw, x.log) })
	reader.Wait()
	if x.answer.RequestID != x.event.RequestID {
		w.problem("%s: X-Request-Id %q, want %q", x.Name, x.answer.RequestID, x.event.RequestID)
	}
	if strings.Contains(x.log, `"stack"`) {
		w.problem("%s: a panic: %s", x.Name, x.log)
	}
	for place, text := range map[string]string{"the answer": string(x.raw), "the log": x.log} {
		if found := kit.LeaksIn([]byte(text)); len(found) > 0 || strings.Contains(text, quoted) {
			w.problem("%s: %s contains %v: %s", x.Name, place, found, text)
		}
	}
	if strings.Contains(x.log, functest.Private) {
		w.problem("%s: the log contains what is the caller's own: %s", x.Name, x.log)
	}
}

func (x *exchange) summary() string {
	text := fmt.Sprint(x.answer.Status)
	if x.answer.Header["Idempotent-Replayed"] != "" {
		text += " replayed"
	}
	if x.answer.Reason != "" {
		text += " " + x.answer.Reason
	}
	return strings.TrimSpace(text + " " + strings.Join(x.answer.Issues, " "))
}

// judge looks at everything once all is settled.
func (r *run) judge() {
	for _, x := range r.exchanges {
		if !x.through || x.raw == nil {
			continue
		}
		r.judgeLog(x)
		if !x.asked {
			r.judgeFailure(x)
			r.judgeLatency(x)
			r.judgeKey(x)
		}
		x.judge()
	}
	for _, finally := range r.finally {
		finally()
	}
	r.checkHistory()
}

// judgeKey notes whether the request's key was accepted.
func (r *run) judgeKey(x *exchange) {
	key := keyObject(x.token())
	switch {
	case x.answer.Status == http.StatusUnauthorized && x.answer.Reason != "management_key_required":
		r.showed(x.actor, seenOff(key))
	case x.answer.Status != http.StatusInternalServerError:
		r.showed(x.actor, seenOn(key))
	}
}

// token is the request's API key.
func (x *exchange) token() string {
	return strings.TrimPrefix(x.event.Header["Authorization"][0], "Bearer ")
}

// judgeFailure refuses a 500 without a fault that stays, and an answer that the
// calls cannot have given.
func (r *run) judgeFailure(x *exchange) {
	if x.answer.Status == http.StatusInternalServerError {
		// If the clock needs a retry, only one retry is left for a fault.
		if !x.metFaultThatStays() && r.Clock == 0 && x.took() < limit-time.Second {
			r.problem("%s: 500 without a fault that stays: %s", x.Name, x.log)
		}
		return
	}
	if x.answer.Status == http.StatusUnauthorized && !x.knowsCaller() {
		return
	}
	for name, ok := range x.ok {
		if strings.HasPrefix(name, "GetItem "+accessTable) && strings.Contains(name, "key#") && !ok && x.answer.Status != http.StatusUnauthorized {
			r.problem("%s: %d, though the key could not be looked up", x.Name, x.answer.Status)
		}
	}
	if x.answer.Status == http.StatusCreated && x.answer.Header["Idempotent-Replayed"] == "" {
		r.judgeAnswers(x.actor, "201")
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

// metFaultThatStays reports whether repeating a call did not help.
func (a *actor) metFaultThatStays() bool {
	met := map[string]int{}
	for _, m := range a.met {
		if m.fault.is(lastsTwoSeconds) {
			continue
		}
		if met[m.call]++; m.fault.Stays || !m.fault.is(recovers) || met[m.call] > 2 {
			return true
		}
	}
	return false
}

// judgeLog checks the request's log line. The names in it are those of the function's
// operation; infra/test/contract compares them with infra/openapi.yaml. The judge knows by
// itself who has an audit line: each known caller of an operation that is no GET.
func (r *run) judgeLog(x *exchange) {
	line, audit := x.answer.Line, x.answer.Audit
	want := map[string]any{
		"level": "INFO", "duration_ms": float64(x.took().Microseconds()) / 1000,
		"operation": r.operation.ID, "route": x.event.Method + " " + x.event.Resource,
	}
	if line["error"] != nil {
		want["level"] = "ERROR"
	}
	if !x.asked {
		want["aws_calls"] = float64(x.calls)
		if x.beganAt < 0 { // its calls are not counted
			delete(want, "aws_calls")
		}
		if (line["error"] != nil) != (x.answer.Status == http.StatusInternalServerError) {
			r.problem("%s: status %d, and the log line has the error %v", x.Name, x.answer.Status, line["error"])
		}
	}
	r.judgeLoggedError(x)
	if !x.asked || line["error"] == nil {
		want["key"] = hashOf(x.token())[:12]
	}
	if x.answer.Reason != "" {
		want["reason"] = x.answer.Reason
	}
	if x.knowsCaller() && !x.asked {
		want["account"] = string(r.Tenant.ID)
	}
	r.compare(x, "log line", line, want)
	audited := x.knowsCaller() && r.operation.Method != http.MethodGet
	if (audit != nil) != audited {
		r.problem("%s: the caller of %v is known: %t, the audit line: %v", x.Name, line["operation"], x.knowsCaller(), audit)
	}
	if audit == nil {
		return
	}
	want = map[string]any{
		"level": "INFO", "status": line["status"], "outcome": "refused", "source_ip": "192.0.2.1", "operation": line["operation"],
		"request_id": line["request_id"], "key": line["key"], "account": line["account"],
	}
	switch {
	case x.answer.Status < http.StatusMultipleChoices:
		want["outcome"] = "done"
	case x.answer.Status == http.StatusInternalServerError:
		want["outcome"] = "uncertain"
	}
	r.compare(x, "audit line", audit, want)
}

// judgeLoggedError requires that the log describes the one fault that a request failed of.
func (r *run) judgeLoggedError(x *exchange) {
	if x.answer.Status != http.StatusInternalServerError || len(x.met) == 0 || r.Clock != 0 {
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
		r.compare(x, "error in the log", logged, map[string]any{"code": "deadline"})
	case x.took() < limit-time.Second:
		r.compare(x, "error in the log", logged, last.logged)
	}
}

func (r *run) compare(x *exchange, kind string, line, want map[string]any) {
	for name, value := range want {
		if line[name] != value {
			r.problem("%s: %s of the %s is %v, want %v: %v", x.Name, name, kind, line[name], value, line)
		}
	}
}

func (x *exchange) knowsCaller() bool { return x.answer.Line["account"] != nil }

// judgeLatency holds a request that was alone to bounds of virtual time.
func (r *run) judgeLatency(x *exchange) {
	if len(r.World.actors) != 1 || x.actor != r.World.actors[0] || r.Clock != 0 || len(x.met) > 1 && !r.Frozen {
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
		r.problem("%s: it took %v, at most %v are allowed after %v", x.Name, x.took(), most, x.met)
	}
	if len(x.met) == 0 && r.Calls != nil {
		x.checkCost(r)
	}
}

// checkCost compares the calls of a request with the documented ones.
func (x *exchange) checkCost(r *run) {
	var made []string
	for name, times := range x.made {
		made = append(made, slices.Repeat([]string{kindOf(name)}, times)...)
	}
	slices.Sort(made)
	if want := slices.Sorted(slices.Values(r.Calls)); !slices.Equal(made, want) {
		r.problem("%s: calls %q, want %q", x.Name, made, want)
	}
	if x.answer.Line["aws_calls"] != float64(len(made)) {
		r.problem("%s: the log line has %v calls, want %d", x.Name, x.answer.Line["aws_calls"], len(made))
	}
	if x.deepest != r.RoundTrips {
		r.problem("%s: %d of the calls are one after the other, want %d", x.Name, x.deepest, r.RoundTrips)
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
