package sim

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/api"
)

// request is a request to the function: a Create, a Delete, a Read, or one of Ask.
type request interface {
	event() functest.Event
	// judge notes the facts that the response shows.
	judge(*World, *exchange)
}

// exchange is the work of a client: a request and its response.
type exchange struct {
	*actor
	request  request
	event    functest.Event
	instance *instance
	repeated bool // it is sent once more when all actors have ended

	raw    []byte
	log    string
	answer functest.Answer

	before, after objects // the stored file, if it is a deletion
	// leastStored and mostStored are the numbers of credentials in the workspace while it ran.
	leastStored, mostStored int
}

// instance is one instance of a function, with its log.
type instance struct {
	handler lambda.Handler
	log     bytes.Buffer
}

func (w *World) newInstance(client aws.HTTPClient) *instance {
	i := &instance{}
	keys, log, op := w.Assemble(environment(client, slog.New(slog.NewJSONHandler(&i.log, nil))))
	i.handler, w.operation = api.Handler(keys, log, op), op
	return i
}

// newExchange makes the request the actor's work.
func (w *World) newExchange(a *actor, i *instance, r request) *exchange {
	x := &exchange{actor: a, request: r, event: r.event(), instance: i, leastStored: math.MaxInt}
	a.work = x
	w.exchanges = append(w.exchanges, x)
	return x
}

// again is part of the name of a repetition.
const again = ", again"

// client makes an actor that sends the request to a new instance.
func (w *World) client(name string, r request, repeated bool) *actor {
	a := w.newActor(name)
	w.newExchange(a, w.newInstance(a), r).repeated = repeated
	return a
}

// sends adds a client to the actors of the run. It repeats its request.
func (w *World) sends(name string, r request) {
	w.actors = append(w.actors, w.client(name, r, true))
}

// earlier sends a request before all actors begin.
func (w *World) earlier(name string, r request) *exchange {
	a := w.newActor(name)
	x := w.newExchange(a, w.newInstance(a), r)
	w.actBefore(a)
	return x
}

func (x *exchange) do(ctx context.Context) {
	x.instance.log.Reset()
	raw, err := x.instance.handler.Invoke(ctx, x.event.Payload())
	if err != nil {
		x.world.problem("%s: the function returned an error: %v", x.Name, err)
	}
	x.raw, x.log = raw, x.instance.log.String()
}

func (x *exchange) again() *actor {
	if !x.repeated {
		return nil
	}
	return x.world.client(x.Name+again, x.request, false)
}

// show reads the response.
func (x *exchange) show() {
	w := x.world
	var reader sync.WaitGroup // Fatalf ends a goroutine of its own
	reader.Go(func() { x.answer = functest.ReadAnswer(noting{w.t, w, x.Name + ": "}, x.raw, x.log) })
	reader.Wait()
	if x.answer.RequestID != x.event.RequestID {
		w.problem("%s: X-Request-Id %q, want %q", x.Name, x.answer.RequestID, x.event.RequestID)
	}
	if strings.Contains(x.log, `"stack"`) {
		w.problem("%s: a panic: %s", x.Name, x.log)
	}
	for in, text := range map[string]string{"the answer": string(x.raw), "the log": x.log} {
		if found := kit.LeaksIn([]byte(text)); len(found) > 0 || strings.Contains(text, quoted) {
			w.problem("%s: %s contains %v: %s", x.Name, in, found, text)
		}
	}
	if strings.Contains(x.log, functest.Private) {
		w.problem("%s: the log contains what is the caller's own: %s", x.Name, x.log)
	}
}

// result is the status, then its reason or the paths of its issues.
func (x *exchange) result() string {
	text := fmt.Sprint(x.answer.Status)
	if x.answer.Header["Idempotent-Replayed"] != "" {
		text += " replayed"
	}
	if x.answer.Reason != "" {
		text += " " + x.answer.Reason
	}
	return strings.TrimSpace(text + " " + strings.Join(x.answer.Issues, " "))
}

// token is the request's API key.
func (x *exchange) token() string {
	return strings.TrimPrefix(x.event.Header["Authorization"][0], "Bearer ")
}

func (x *exchange) knowsCaller() bool { return x.answer.Line["account"] != nil }

func (x *exchange) asked() bool {
	_, asked := x.request.(question)
	return asked
}
