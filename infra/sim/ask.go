package sim

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
)

// Ask sends a request before all actors begin. No fault happens to its calls. want is
// the response by the contract: the status, then the reason of a 401 or the paths of a
// 400's issues. Each text must occur in the response or in the log. The request is sent
// with the tenant's management key if it has no Authorization header. The same instance
// gets all the requests.
func (w *World) Ask(want string, e functest.Event, texts ...string) functest.Answer {
	if _, ok := e.Header["Authorization"]; !ok {
		e = e.As(w.Tenant.Management)
	}
	return w.ask(want, e, e.Payload(), texts)
}

// AskRaw is Ask with an event that the gateway does not send. Its request id is unknown.
func (w *World) AskRaw(want, payload string, texts ...string) functest.Answer {
	return w.ask(want, functest.Event{}, []byte(payload), texts)
}

func (w *World) ask(want string, e functest.Event, payload []byte, texts []string) functest.Answer {
	a := w.newActor("request " + strings.TrimSpace(want))
	if w.asked == nil {
		w.asked = w.newInstance(a)
	}
	x := w.request(a, w.asked, e, func(x *exchange) { w.judgeAsked(x, want, texts) })
	x.payload, x.asked = payload, true
	w.actBefore(a)
	return x.answer
}

func (w *World) judgeAsked(x *exchange, want string, texts []string) {
	shown := x.answer.Body + x.log
	missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return strings.Contains(shown, text) })
	if x.summary() != strings.TrimSpace(want) || len(missing) > 0 {
		w.problem("%s, asked for %.300s: it got %s, without %q: %.500s %s", x.Name, x.payload, x.summary(), missing, x.answer.Body, x.log)
	}
	if logged := strings.Contains(x.log, `"error":`); logged != (x.answer.Status == http.StatusInternalServerError || strings.Contains(strings.Join(texts, " "), "stored ")) {
		w.problem("%s: an error is logged: %t: %s", x.Name, logged, x.log)
	}
	if x.answer.Status == http.StatusCreated {
		_, made := x.created(w)
		w.judgeEcho(x, made)
	}
	perMinute, _ := strconv.ParseInt(x.event.Stage["deleteRatePerMinute"], 10, 64)
	burst, err := strconv.ParseInt(x.event.Stage["deleteBurst"], 10, 64)
	if err == nil && perMinute > 0 && x.token() != "" && x.answer.Line["operation"] == "deleteFile" && x.answer.Line["event"] == nil {
		w.judgeLimit(x, Delete{Token: x.token(), PerMinute: perMinute, Burst: burst})
	}
}

// AskCallers sends the request with Authorization headers of every kind. accepted is the
// response to the tenant's own keys.
func (w *World) AskCallers(accepted string, e functest.Event) {
	t, token := w.t, w.Tenant.Management
	w.Ask("401 missing", e.With("Authorization"))
	for _, header := range []string{"Bearer ", "bearer  ", "BEARER "} {
		w.Ask(accepted, e.With("Authorization", header+token))
	}
	w.Ask("401 malformed", e.With("Authorization", "Bearer "+token, "Bearer "+token))
	const marked = testkit.Marker
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Basic " + marked, "Bearer" + marked, " Bearer " + marked, "Bearer =", "Bearer a=b", "Bearer " + marked + " b", "Bearer " + strings.Repeat("k", 257),
	} {
		w.Ask("401 malformed", e.With("Authorization", header))
	}
	for _, c := range "@[`{:!,;é\"\x7f" {
		w.Ask("401 malformed", e.With("Authorization", "Bearer k"+string(c)))
	}
	for _, unknown := range []string{"AZ", "az", "09", "-._~+/", "k==", strings.Repeat("k", 256), token + "=", w.Tenant.DeletedKey(t)} {
		w.Ask("401 unknown_key", e.As(unknown))
	}
	w.Ask("401 disabled", e.As(w.Tenant.DisabledKey(t)))
	w.Ask("401 expired", e.As(w.Tenant.ExpiredKey(t)))
	w.Ask("401 expired", e.As(w.Tenant.NewKey(t, auth.NewKey{Kind: auth.Management, ExpiresAt: time.Now()})))
	w.Ask(accepted, e.As(w.Tenant.NewKey(t, auth.NewKey{Kind: auth.Management, ExpiresAt: time.Now().Add(time.Second)})))
	both := w.Tenant.ExpiredKey(t)
	w.Tenant.Disable(t, both)
	w.Ask("401 disabled", e.As(both))
	hash := auth.HashKey(token)
	row := testkit.Key("key#"+string(hash), "key")
	for _, damage := range []string{"v=2", "v", "account", "account=NULL", "kind=x", "kind", "disabled", "disabled=x", "workspace=" + string(w.Tenant.Workspace), "name=NULL", "expires_at=x", "expires_at=NULL"} {
		w.Damaged(accessTable, row, damage, func() { w.Ask("401 unknown_key", e, "stored key "+hash.Short()) })
	}
	other := e
	other.Method = http.MethodPatch
	w.Ask("404", other, "httpMethod is not "+e.Method)
	other.Method = ""
	w.Ask("404", other, "httpMethod is missing")
	other = e
	other.Resource += "/"
	w.Ask("404", other, "resource is not "+e.Resource)
	other.Resource = ""
	w.Ask("404", other, "resource is missing")
}

var isNumber = regexp.MustCompile(`^\d+$`)

// Damaged calls ask while an attribute of the row has another value. damage is
// "name=value", with a number, true, NULL or a text, or "name" to remove the attribute.
func (w *World) Damaged(table string, key testkit.Row, damage string, ask func()) {
	rows := w.Rows(table)
	sound := rows.Get(w.t, key)
	defer rows.Put(w.t, sound)
	rows.Change(w.t, key, func(row testkit.Row) {
		name, value, _ := strings.Cut(damage, "=")
		switch {
		case value == "":
			delete(row, name)
		case value == "NULL":
			row[name] = &types.AttributeValueMemberNULL{Value: true}
		case value == "true":
			row[name] = &types.AttributeValueMemberBOOL{Value: true}
		case isNumber.MatchString(value):
			row[name] = testkit.Number(value)
		default:
			row[name] = testkit.Text(value)
		}
	})
	ask()
}
