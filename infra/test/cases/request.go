package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"go.yaml.in/yaml/v3"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/infra/test/record"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
	"signalbox.dev/shared/calls"
)

// Assemble makes a function's operation, as in its main.go.
type Assemble func(*boot.Environment) (api.Verifier, *slog.Logger, api.Operation)

// Request is a request to a function.
type Request struct {
	functest.Event

	Assemble Assemble
	// Earlier is a request that the instance has served before, as often as there are Pauses: each
	// is the time from its beginning to the next request.
	Earlier functest.Event
	Pauses  []time.Duration
}

// instance is one instance of a function, with its log. Its calls go through next.
type instance struct {
	handler   lambda.Handler
	operation api.Operation
	log       bytes.Buffer
	next      aws.HTTPClient
}

func (env *Environment) newInstance(assemble Assemble) *instance {
	i := &instance{next: env.plain()}
	next := httpFunc(func(r *http.Request) (*http.Response, error) { return i.next.Do(r) })
	through := record.Client{HTTPClient: next, Caller: function(), Resources: env.resources()}
	keys, log, operation := assemble(env.functionEnvironment(through, slog.New(slog.NewJSONHandler(&i.log, nil))))
	i.handler, i.operation = api.Handler(keys, log, operation), operation
	return i
}

// function is the logical id of the function whose folder the test is in: GetSyncJobFunction for
// functions/get-sync-job.
func function() (id string) {
	folder, _ := os.Getwd() // without it the id is that of no function
	for word := range strings.SplitSeq(filepath.Base(folder), "-") {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id + "Function"
}

// Request makes the operation of a client that sends the request to a new instance. Its result is the
// status, then "replayed", "answer_lost", the reason or the paths of the issues. Shown is the functest.Answer.
func (env *Environment) Request(name string, r Request) Operation {
	return Operation{Name: name, Failed: "500", Run: func(ctx context.Context, through aws.HTTPClient) Result {
		i := env.newInstance(r.Assemble)
		for _, pause := range r.Pauses {
			began := time.Now()
			env.ask(ctx, i, r.Earlier)
			_ = calls.Wait(ctx, time.Until(began.Add(pause))) // the operation fails if its time is up
		}
		i.next = through
		began := time.Now()
		x := env.ask(ctx, i, r.Event)
		if c, ok := through.(*client); ok {
			env.judgeLine(x, c)
		}
		return Result{Text: x.result(), Shown: x.answer, Began: began}
	}}
}

// exchange is a request and its response.
type exchange struct {
	event     functest.Event
	operation api.Operation
	log       string
	answer    functest.Answer
	took      time.Duration
}

// ask sends a request to an instance, and checks what holds for each response.
func (env *Environment) ask(ctx context.Context, i *instance, e functest.Event) exchange {
	i.log.Reset()
	began := time.Now()
	raw, err := i.handler.Invoke(ctx, e.Payload())
	x := exchange{event: e, operation: i.operation, log: i.log.String(), took: time.Since(began)}
	if err != nil {
		env.Broken("result", "the function returned an error: %v", err)
	}
	var reader sync.WaitGroup // Fatalf ends a goroutine of its own
	reader.Go(func() { x.answer = functest.ReadAnswer(noting{env.t, env, "line"}, raw, x.log) })
	reader.Wait()
	if x.answer.RequestID != e.RequestID {
		env.Broken("result", "X-Request-Id is %q, want %q", x.answer.RequestID, e.RequestID)
	}
	if strings.Contains(x.log, `"stack"`) {
		env.Broken("line", "a panic: %s", x.log)
	}
	for kind, text := range map[string]string{"result": string(raw), "line": x.log} {
		if found := kit.LeaksIn([]byte(text)); len(found) > 0 || strings.Contains(text, quoted) {
			env.Broken(kind, "it contains %v: %s", found, text)
		}
	}
	if strings.Contains(x.log, functest.Private) {
		env.Broken("line", "the log contains what is the caller's own: %s", x.log)
	}
	return x
}

func (x exchange) result() string {
	text := fmt.Sprint(x.answer.Status)
	if x.answer.Header["Idempotent-Replayed"] != "" {
		text += " replayed"
	}
	if x.answer.Reason != "" {
		text += " " + x.answer.Reason
	}
	if x.answer.Status == http.StatusNotFound && x.answer.Line["answer_lost"] == true {
		text += " answer_lost"
	}
	return strings.TrimSpace(text + " " + strings.Join(x.answer.Issues, " "))
}

// mostAttempts bounds the attempts of a request, because a busy service must not be asked without a
// pause. About 28 fit into two seconds of refusals with random pauses; without a pause hundreds do.
const mostAttempts = 60

// judgeLine checks the request's log line and audit line. infra/test/contract compares the
// names in them with infra/openapi.yaml.
func (env *Environment) judgeLine(x exchange, c *client) {
	line, failed := x.answer.Line, x.answer.Line["error"] != nil
	token := strings.TrimPrefix(x.event.Header["Authorization"][0], "Bearer ")
	want := map[string]any{
		"level": "INFO", "operation": x.operation.ID, "route": x.event.Method + " " + x.event.Resource,
		"aws_calls": float64(c.attempts), "key": string(auth.HashKey(token))[:12],
	}
	if !env.OnEngines() {
		want["duration_ms"] = float64(x.took.Microseconds()) / 1000
	}
	if failed {
		want["level"] = "ERROR"
	}
	if c.attempts > mostAttempts {
		env.Broken("line", "aws_calls is %d, at most %d are allowed", c.attempts, mostAttempts)
	}
	if x.answer.Reason != "" {
		want["reason"] = x.answer.Reason
	}
	env.compare("log line", line, want)
	if failed != (x.answer.Status == http.StatusInternalServerError) {
		env.Broken("line", "status %d, and the log line has the error %v", x.answer.Status, line["error"])
	}
	known := line["account"] != nil
	if audited := known && x.operation.Method != http.MethodGet; audited != (x.answer.Audit != nil) {
		env.Broken("line", "the caller is known: %t, the audit line: %v", known, x.answer.Audit)
	}
	env.judgeLoggedError(x, c)
}

// judgeLoggedError requires that the log describes the one fault that a request failed of.
func (env *Environment) judgeLoggedError(x exchange, c *client) {
	if x.answer.Status != http.StatusInternalServerError || len(c.met) == 0 {
		return
	}
	first, last := c.met[0], c.met[len(c.met)-1]
	for _, m := range c.met {
		if m.Kind != first.Kind || m.logged == nil || m.logged["code"] != first.logged["code"] {
			return
		}
	}
	logged, _ := x.answer.Line["error"].(map[string]any)
	switch code := last.logged["code"]; {
	case code == "deadline" || code == "canceled": // of this call or of a later one
		env.compare("error in the log", logged, map[string]any{"code": code})
	case c.lifetime.Err() == nil && x.took < 9*time.Second:
		env.compare("error in the log", logged, last.logged)
	}
}

func (env *Environment) compare(kind string, line, want map[string]any) {
	for name, value := range want {
		if line[name] != value {
			env.Broken("line", "%s of the %s is %v, want %v: %v", name, kind, line[name], value, line)
		}
	}
}

// Command makes an operation on the nouns, as a worker or an operator does it. Its result is "done",
// "failed", or the text of one of the refusals.
func (env *Environment) Command(name string, do func(context.Context, Clients) error, refusals ...error) Operation {
	return Operation{Name: name, Failed: "failed", Unconditional: true, Run: func(ctx context.Context, through aws.HTTPClient) Result {
		err := do(ctx, env.Over(through))
		if err == nil {
			return Result{Text: "done"}
		}
		for _, refusal := range refusals {
			if errors.Is(err, refusal) {
				return Result{Text: refusal.Error(), Shown: err}
			}
		}
		return Result{Text: "failed", Shown: err}
	}}
}

// Short runs an operation that has time for a number of attempts.
func (env *Environment) Short(op Operation, attempts int) Result {
	r, _ := env.run(&op, nil, disturbance{maxAttempts: attempts})
	return r
}

// OnModel runs a plain test of a function in an Environment on the model.
func OnModel(t *testing.T, versioning string, page int, test func(*Environment)) {
	t.Helper()
	for _, problem := range inEnvironment(t, false, &setup{versioning, page, page, map[int]prepared{}}, test) {
		t.Error(problem)
	}
}

// Asker returns a function that sends requests to one instance. want is the response by the
// contract: the status, then the reason of a 401 or the paths of a 400's issues. Each text
// must occur in the response or in the log. The request is sent with the tenant's management key
// if it has no Authorization header.
func (env *Environment) Asker(assemble Assemble) func(want string, e functest.Event, texts ...string) functest.Answer {
	i := env.newInstance(assemble)
	return func(want string, e functest.Event, texts ...string) functest.Answer {
		if _, ok := e.Header["Authorization"]; !ok {
			e = e.As(env.Tenant.Management)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		clear(env.model.Units)
		x := env.ask(ctx, i, e)
		env.judgeUnits()
		shown := x.answer.Body + x.log
		missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return strings.Contains(shown, text) })
		if x.result() != strings.TrimSpace(want) || len(missing) > 0 {
			env.Broken("result", "asked for %.300s: it got %s, want %s, without %q: %.500s %s", e.Payload(), x.result(), want, missing, x.answer.Body, x.log)
		}
		damaged := strings.Contains(strings.Join(texts, " "), "stored ")
		if logged := strings.Contains(x.log, `"error":`); logged != (x.answer.Status == http.StatusInternalServerError || damaged) {
			env.Broken("line", "%s: an error is logged: %t: %s", want, logged, x.log)
		}
		if logged := strings.Contains(x.log, `"stored":true`); logged != damaged {
			env.Broken("line", "%s: a damaged row is logged: %t: %s", want, logged, x.log)
		}
		return x.answer
	}
}

// largest are the units of the function's largest request, by table, as template.yaml has them.
var largest = sync.OnceValue(func() (units map[string]awsmodel.Units) {
	text, err := os.ReadFile("../../template.yaml")
	_, own, _ := strings.Cut(string(text), "\n  "+function()+":\n")
	_, own, _ = strings.Cut(own, "Largest: ")
	own, _, _ = strings.Cut(own, "\n")
	if err = errors.Join(err, yaml.Unmarshal([]byte(own), &units)); err != nil {
		panic(err)
	}
	return units
})

// judgeUnits compares the units of a request with those of the largest.
func (env *Environment) judgeUnits() {
	for table, used := range env.model.Units {
		if most := largest()[env.resources()[table]]; used[0] > most[0] || used[1] > most[1] {
			env.Broken("calls", "reads and writes of %s take %v units, at most %v by template.yaml", table, used, most)
		}
	}
}

// Body decodes the JSON of a response.
func Body[T any](env *Environment, r Result) (body T) {
	answer, _ := r.Shown.(functest.Answer)
	if err := json.Unmarshal([]byte(answer.Body), &body); err != nil {
		env.Broken("result", "the body of %s is %s", r.Text, answer.Body)
	}
	return body
}
