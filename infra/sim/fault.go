package sim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox.dev/infra/testkit/faults"
)

// Fault may happen to a call instead of its plain answer.
type Fault struct {
	Name string
	// Stays means that each repetition of the call meets it too.
	Stays bool

	// passes means that the call is made again, and that the request then ends as
	// without the fault.
	passes bool
	// main faults are tried beside other requests too; the others leave nothing
	// behind that a main one would not.
	main bool
	// answers means that the fault is an answer, which the code may use.
	answers bool
	// late means that the call is applied after its client has given up.
	late bool
	// lasts is how long each repetition of the call meets the fault; it passes then.
	lasts time.Duration
	until time.Time // when that has passed
	// after is how long the client waits; never means until its time is up.
	after time.Duration
	never bool
	do    faults.Fault
}

// The time-out of attempts, which the HTTP client of package boot keeps. Its own
// tests hold it.
const silence = 2 * time.Second

// purged means that the connection was closed while Lambda had the process frozen.
const purged = "connection purged"

const emptyObject = "empty object"

// quoted is in each message of AWS's: services repeat parts of the request.
const (
	quoted  = "xqQUOTEDqx"
	quoting = "The request is not acceptable: " + quoted
	page    = "<html><body>" + quoted + "</body></html>"
)

// reply makes the fault happen to the call.
func (f *Fault) reply(r *run, c *call) reply {
	got := reply{after: f.after, never: f.never}
	if f.late {
		ghost := *c
		ghost.late, ghost.born, ghost.answer = true, len(r.steps), make(chan reply, 1)
		r.mu.Lock()
		r.waiting = append(r.waiting, &ghost)
		r.mu.Unlock()
	}
	request := c.request.Clone(c.request.Context())
	request.Body = io.NopCloser(bytes.NewReader(c.body))
	got.response, got.err = f.do(request, c.send)
	return got
}

// staying is the same fault at each attempt.
func (f *Fault) staying() *Fault {
	other := *f
	other.Name, other.Stays, other.passes = f.Name+" each time", true, false
	return &other
}

func passing(name string, do faults.Fault) *Fault { return &Fault{Name: name, passes: true, do: do} }
func lasting(name string, do faults.Fault) *Fault { return &Fault{Name: name, do: do} }

func (f *Fault) withMain() *Fault                       { f.main = true; return f }
func (f *Fault) withSilence(after time.Duration) *Fault { f.after = after; return f }

// menus are the faults of each kind of call, made once.
var menus = map[string][]*Fault{}

// every returns all faults that the call may meet, once and each time.
func every(c *call) []*Fault {
	items := strings.Count(c.label.Item, " + ") + 1
	recorded := strings.Contains(c.label.Item, "idem#")
	key := fmt.Sprint(c.label.Operation, items, recorded)
	if menus[key] == nil {
		for _, f := range makeFaults(c.label.Operation, items, recorded) {
			menus[key] = append(menus[key], f)
			if !f.never && !f.late && f.lasts == 0 {
				menus[key] = append(menus[key], f.staying())
			}
		}
	}
	if bytes.Contains(c.body, []byte("UPDATED_NEW")) {
		return menus[key]
	}
	// A write that asks for nothing cannot know that an empty answer is none.
	return slices.DeleteFunc(slices.Clone(menus[key]), func(f *Fault) bool {
		return c.label.Operation == "UpdateItem" && strings.HasPrefix(f.Name, emptyObject)
	})
}

// few returns the main faults of the call.
func few(c *call) (all []*Fault) {
	for _, f := range every(c) {
		if f.main && !f.Stays {
			all = append(all, f)
		}
	}
	return all
}

func makeFaults(operation string, items int, recorded bool) []*Fault {
	all := append(common(), proxies(operation)...)
	if operation != "DeleteObject" && operation != "PutObject" { // whose answers have no body
		all = append(all, passing("answer empty", faults.EmptyAnswer()),
			passing("answer null", faults.Otherwise(http.StatusOK, "null")),
			passing("no content", faults.Otherwise(http.StatusNoContent, "")))
	}
	switch operation {
	case "GetItem":
		all = append(all, lasting("another item", faults.AnotherItem()))
	case "PutItem", "UpdateItem", "DeleteItem":
		all = append(all, passing("in conflict", faults.Conflict()).withMain())
		if operation == "UpdateItem" {
			all = append(all, lasting(emptyObject, faults.Pretend(http.StatusOK, "{}")))
			all = append(all, throttles()...)
		}
	case "BatchGetItem":
		half := passing("half unprocessed", faults.UnprocessedRest())
		half.answers = true
		all = append(all, passing("unprocessed", faults.Unprocessed()).withMain(), half,
			lasting("no responses", faults.Otherwise(http.StatusOK, "{}")))
	case "TransactWriteItems":
		all = append(all, cancellations(items, recorded)...)
	case "GenerateDataKey":
		all = append(all, lasting(emptyObject, faults.Pretend(http.StatusOK, "{}")))
		for _, code := range []string{"DisabledException", "KMSInvalidStateException", "KeyUnavailableException"} {
			all = append(all, lasting(code, faults.Answer(http.StatusBadRequest, code, quoting)))
		}
	case "ListObjectVersions":
		all = append(all, noBucket(),
			lasting("no listing", faults.Otherwise(http.StatusOK, "<html/>")),
			lasting("more follows nowhere", faults.Otherwise(http.StatusOK,
				"<ListVersionsResult><Name>"+bucket+"</Name><IsTruncated>true</IsTruncated></ListVersionsResult>")),
			passing("an error with status 200", faults.Otherwise(http.StatusOK, "<Error><Code>InternalError</Code></Error>")))
	case "DeleteObject":
		unmet := passing("absent is a failed precondition", unmetPrecondition)
		unmet.answers = true
		all = append(all, noBucket(), unmet, passing("headers lost", faults.NoHeaders()),
			passing("answer of another kind", faults.Otherwise(http.StatusOK, "{}")))
		for _, code := range []string{"ConditionalRequestConflict", "OperationAborted"} {
			all = append(all, passing(code, faults.Answer(http.StatusConflict, code, quoting)).withMain())
		}
	case "DeleteObjects":
		busy := passing("versions refused for 2 s", faults.RefuseVersions("SlowDown"))
		busy.lasts = 2 * time.Second
		all = append(all, noBucket(), busy, passing("versions refused", faults.RefuseVersions("InternalError")).withMain(),
			passing("versions denied", faults.RefuseVersions("AccessDenied")),
			passing("nothing confirmed", faults.Pretend(http.StatusOK, "<DeleteResult/>")))
	}
	return all
}

// The faults that a scenario may require.
var (
	gone     = passing(purged, faults.Refuse()).withMain()
	timeIsUp = &Fault{Name: "no answer until time is up", never: true, do: faults.TimeOut()}
)

// common are the faults that every call may meet.
func common() []*Fault {
	late := passing("given up, applied later", faults.TimeOut()).withMain().withSilence(silence)
	late.late = true
	applied := lasting("applied, no answer until time is up", faults.TimeOutAnswer()).withMain()
	applied.never = true
	return []*Fault{
		gone,
		passing("applied, answer lost", faults.LoseAnswer()).withMain(),
		late,
		passing("silent", faults.TimeOut()).withSilence(silence),
		passing("applied, silent", faults.TimeOutAnswer()).withSilence(silence),
		passing("throttled", faults.Throttle()),
		passing("answer cut", faults.CutAnswer()),
		passing("answer garbled", faults.Garble()),
		passing("server error", faults.Answer(http.StatusInternalServerError, "InternalServerError", quoting)),
		passing("bad gateway", faults.Pretend(http.StatusBadGateway, page)),
		lasting("denied", faults.Answer(http.StatusForbidden, "AccessDeniedException", quoting)).withMain(),
		lasting("nothing there", faults.Answer(http.StatusNotFound, "ResourceNotFoundException", quoting)),
		timeIsUp, applied,
	}
}

// proxies are answers of something in between. To S3's client such a page is an
// error without a code, which it does not retry.
func proxies(operation string) []*Fault {
	kind := passing
	if strings.Contains(operation, "Object") {
		kind = lasting
	}
	return []*Fault{
		kind("a proxy's not found", faults.Pretend(http.StatusNotFound, page)),
		kind("a proxy's redirect", faults.Pretend(http.StatusMovedPermanently, page)),
	}
}

const ofItem = "TableWriteKeyRangeThroughputExceeded"

// throttles are DynamoDB's answers to a write that is too much for its item, its
// table or the account.
func throttles() []*Fault {
	var all []*Fault
	for _, code := range []string{"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"} {
		for _, reasons := range [][]string{
			{ofItem},
			{"TableWriteMaxOnDemandThroughputExceeded"},
			{"TableWriteAccountLimitExceeded"},
			{"TableWriteProvisionedThroughputExceeded"},
			{ofItem, "TableWriteMaxOnDemandThroughputExceeded"},
		} {
			all = append(all, passing(code+" for "+strings.Join(reasons, " and "), faults.ThrottleFor(code, reasons...)))
		}
	}
	return all
}

// ownThrottle reports whether the fault throttles the item alone.
func (f *Fault) ownThrottle() bool {
	return strings.HasSuffix(strings.TrimSuffix(f.Name, " each time"), " for "+ofItem)
}

// cancellations are the errors of a cancelled transaction with so many items: each
// reason for each item, alone and beside a throttle of another item. A failed condition
// is true of an idempotency record only: it may have expired since.
func cancellations(items int, recorded bool) []*Fault {
	var all []*Fault
	for item := range items {
		for _, reason := range faults.CancellationReasons() {
			if reason == "ConditionalCheckFailed" && !recorded {
				continue
			}
			passes := transient(reason) || reason == "ConditionalCheckFailed" && item == items-1
			reasons := slices.Repeat([]string{"None"}, items)
			reasons[item] = reason
			alone := cancelled(passes, reasons)
			alone.main = reason == "TransactionConflict" && item == 0
			all = append(all, alone)
			for beside := range items {
				if beside != item && reason != "ThrottlingError" {
					mixed := slices.Clone(reasons)
					mixed[beside] = "ThrottlingError"
					all = append(all, cancelled(passes, mixed))
				}
			}
		}
	}
	return append(all,
		lasting("cancelled for no reason", faults.Cancel()),
		passing("transaction in progress", faults.Answer(http.StatusBadRequest, "TransactionInProgressException", quoting)),
		lasting("another transaction's token", faults.Answer(http.StatusBadRequest, "IdempotentParameterMismatchException", quoting)),
	)
}

func cancelled(passes bool, reasons []string) *Fault {
	return &Fault{Name: "cancelled (" + strings.Join(reasons, " ") + ")", passes: passes, do: faults.Cancel(reasons...)}
}

// transient reports whether a transaction that was cancelled for the reason may
// succeed when it is made again.
func transient(reason string) bool {
	switch reason {
	case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
		return true
	default:
		return false
	}
}

// unmetPrecondition is the other answer of S3 to the conditional deletion of an absent
// object.
func unmetPrecondition(r *http.Request, apply faults.Apply) (*http.Response, error) {
	response, err := apply()
	if err == nil && response.StatusCode == http.StatusNotFound {
		return faults.Answer(http.StatusPreconditionFailed, "PreconditionFailed", quoting)(r, apply)
	}
	return response, err
}

func noBucket() *Fault {
	return lasting("no bucket", faults.Answer(http.StatusNotFound, "NoSuchBucket", quoting))
}
