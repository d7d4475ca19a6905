package sim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
)

// question is a request of Ask, with the response that it must get.
type question struct {
	functest.Event

	want  string
	texts []string
}

func (q question) event() functest.Event { return q.Event }

// Ask sends a request before all actors begin. No fault happens to its calls. want is
// the response by the contract: the status, then the reason of a 401 or the paths of a
// 400's issues. Each text must occur in the response or in the log. The request is sent
// with the tenant's management key if it has no Authorization header. The same instance
// gets all the requests.
func (w *World) Ask(want string, e functest.Event, texts ...string) functest.Answer {
	if _, ok := e.Header["Authorization"]; !ok {
		e = e.As(w.Tenant.Management)
	}
	a := w.newActor("request " + strings.TrimSpace(want))
	if w.asked == nil {
		w.asked = w.newInstance(a)
	}
	x := w.newExchange(a, w.asked, question{e, strings.TrimSpace(want), texts})
	w.actBefore(a)
	return x.answer
}

func (q question) judge(w *World, x *exchange) {
	shown := x.answer.Body + x.log
	missing := slices.DeleteFunc(slices.Clone(q.texts), func(text string) bool { return strings.Contains(shown, text) })
	if x.result() != q.want || len(missing) > 0 {
		w.problem("%s, asked for %.300s: it got %s, without %q: %.500s %s", x.Name, x.event.Payload(), x.result(), missing, x.answer.Body, x.log)
	}
	damaged := strings.Contains(strings.Join(q.texts, " "), "stored ")
	if logged := strings.Contains(x.log, `"error":`); logged != (x.answer.Status == http.StatusInternalServerError || damaged) {
		w.problem("%s: an error is logged: %t: %s", x.Name, logged, x.log)
	}
	if logged := strings.Contains(x.log, `"stored":true`); logged != damaged {
		w.problem("%s: a damaged row is logged: %t: %s", x.Name, logged, x.log)
	}
	perMinute, _ := strconv.ParseInt(x.event.Stage["deleteRatePerMinute"], 10, 64)
	burst, err := strconv.ParseInt(x.event.Stage["deleteBurst"], 10, 64)
	if err == nil && perMinute > 0 && x.answer.Line["operation"] == "deleteFile" {
		w.judgeLimit(x, Delete{Token: x.token(), PerMinute: perMinute, Burst: burst})
	}
}

// Unreadable calls ask while a row has a version that this program does not know.
func (w *World) Unreadable(table string, key kit.Row, ask func()) {
	rows := w.Rows(table)
	defer rows.Put(w.t, rows.Get(w.t, key))
	rows.Set(w.t, key, "v", kit.Number("9"))
	ask()
}
