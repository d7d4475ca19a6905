package sim

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
)

// actor makes calls: a client's request, or an act of the operator's.
type actor struct {
	Name  string
	index int
	run   *run
	work  func(context.Context) // what it does
	then  func()                // right after it has ended
	again func() *actor         // its repetition, nil if it is not repeated
	world *World
	time  int // how many calls it has time for; 0 means any number
	limit time.Duration

	cancel  context.CancelFunc
	made    map[string]int
	stays   map[string]*Fault
	met     []met
	last    map[string]failed // of the calls of this name
	ok      map[string]bool   // whether the last of the calls of this name was answered
	calls   int
	deepest int // the greatest depth of a call that was answered: the round trips
	through bool
	// afterRepair means that it began when a restored table was repaired.
	afterRepair bool

	began, ended     time.Time
	beganAt, endedAt int // numbers in the order of all beginnings and ends
	ids              int
	result           func() string
	repeats          *actor // whose work it does again, without faults
}

func (w *World) newActor(name string) *actor {
	a := &actor{
		Name: name, index: w.made, world: w, limit: limit, made: map[string]int{}, stays: map[string]*Fault{}, ok: map[string]bool{}, last: map[string]failed{}, cancel: func() {},
		work: func(context.Context) {}, then: func() {}, again: func() *actor { return nil }, result: func() string { return "" },
	}
	w.made++
	return a
}

// limit is the time that a request or an act of the operator has.
const limit = 10 * time.Second

func (a *actor) act() {
	ctx, cancel := context.WithTimeout(context.Background(), a.limit)
	defer cancel()
	a.cancel = cancel
	a.work(ctx)
}

// took is how long the actor worked, in virtual time.
func (a *actor) took() time.Duration { return a.ended.Sub(a.began) }

// overlaps reports whether the two worked at the same time.
func (a *actor) overlaps(b *actor) bool { return a != b && !a.before(b) && !b.before(a) }

// before reports whether a had ended when b began.
func (a *actor) before(b *actor) bool { return a.through && a.endedAt < b.beganAt }

// The names in the functions' environment.
const (
	accessTable, credentialsTable, jobsTable, controlTable = "access", "credentials", "sync-jobs", "control"
	bucket                                                 = "files"
	keyARN                                                 = "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000001"
)

func variable(name string) string {
	return map[string]string{
		"ACCESS_TABLE": accessTable, "CREDENTIALS_TABLE": credentialsTable, "SYNC_JOBS_TABLE": jobsTable, "CONTROL_TABLE": controlTable,
		"SEALING_KEY_ARN": keyARN, "FILES_BUCKET": bucket,
	}[name]
}

// environment is a function's environment. Its calls pass through the client.
func environment(client aws.HTTPClient, log *slog.Logger) *boot.Environment {
	return boot.NewEnvironment(aws.Config{
		Region: "us-east-1", HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider("an-id", "a-secret", ""),
	}, log, variable)
}

// Assemble makes a function's operation, as in its main.go.
type Assemble func(*boot.Environment) (api.Verifier, *slog.Logger, api.Operation)

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

type exchange struct {
	*actor
	event  functest.Event
	asked  bool // Ask checks the response
	raw    []byte
	log    string
	answer functest.Answer
	before objects // the stored file right before and after
	after  objects
	judge  func()
	// leastStored and mostStored are the numbers of credentials in the workspace while it ran.
	leastStored, mostStored int
}

// met is a fault that an actor's call met.
type met struct {
	call  string
	fault *Fault
	// logged is what the log has of the error, nil if that is not known.
	logged map[string]any
}

func (m met) String() string { return m.fault.Name }

// failed is the time when a call failed, and whether it lost its connection.
type failed struct {
	at   time.Time
	lost bool
}

// during returns the actor. If the call is applied after its client has given up, it
// returns a stand-in actor that never ends.
func (m met) during(a *actor) *actor {
	if !m.fault.is(appliedLate) {
		return a
	}
	return &actor{Name: a.Name + ", late", through: true, beganAt: a.beganAt, endedAt: last}
}

// request makes an actor that sends the request to the instance.
func (w *World) request(a *actor, i *instance, e functest.Event, judge func(*exchange)) *exchange {
	x := &exchange{actor: a, event: e, leastStored: math.MaxInt}
	x.judge = func() { judge(x) }
	a.work = func(ctx context.Context) {
		i.log.Reset()
		raw, err := i.handler.Invoke(ctx, e.Payload())
		if err != nil {
			w.problem("%s: the function returned an error: %v", a.Name, err)
		}
		x.raw, x.log = raw, i.log.String()
	}
	a.then = func() { x.read(w) }
	a.result = x.summary
	w.exchanges = append(w.exchanges, x)
	return x
}

// client makes an actor that sends the request to a new instance, and repeats it once all
// actors have ended.
func (w *World) client(name string, event func() functest.Event, judge func(*exchange), repeats bool) *actor {
	a := w.newActor(name)
	w.request(a, w.newInstance(a), event(), judge)
	if repeats {
		a.again = func() *actor { return w.client(name+again, event, judge, false) }
	}
	return a
}

// again is part of the name of a repetition.
const again = ", again"

// earlier sends a request to a new instance before all actors begin.
func (w *World) earlier(name string, e functest.Event, judge func(*exchange)) *exchange {
	a := w.newActor(name)
	x := w.request(a, w.newInstance(a), e, judge)
	w.actBefore(a)
	return x
}

// actBefore lets the actor act before the others begin.
func (w *World) actBefore(a *actor) {
	a.began = time.Now()
	a.act()
	a.ended, a.through = time.Now(), true
	a.then()
	w.earliest++
	a.beganAt, a.endedAt = w.earliest-last, w.earliest-last
}

var (
	id   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hash = regexp.MustCompile(`[0-9a-f]{64}`)
)

// alias shortens the item of a call. An id that the scenario named gets its name; any
// other id gets a number.
func (w *World) alias(a *actor, item string) string {
	short := func(long string) string {
		if w.names[long] == "" {
			a.ids++
			w.names[long] = a.Name + strconv.Itoa(a.ids)
		}
		return w.names[long]
	}
	return hash.ReplaceAllStringFunc(id.ReplaceAllStringFunc(item, short), short)
}

// Name gives an id a name in traces.
func (w *World) Name(id, name string) { w.names[id] = name }

func hashOf(token string) string { return string(auth.HashKey(token)) }
