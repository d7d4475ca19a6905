package sim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox.dev/infra/test/kit/faults"
)

// Fault may happen to a call instead of its plain answer.
type Fault struct {
	Name string
	// Stays means that each repetition of the call meets it too.
	Stays bool
	until time.Time // for how long, if it is set

	traits trait
	do     faults.Fault
}

type trait uint8

const (
	// final means that the request fails.
	final trait = 0
	// recovers means that the call is repeated, and that the request then ends as if there
	// was no fault.
	recovers trait = 1 << (iota - 1)
	// main faults are tried beside other requests too; the other faults have no further
	// effects on storage.
	main
	// usable means that the fault is an answer that the code may use.
	usable
	// attemptTimesOut means that the client waits for the time-out of an attempt.
	attemptTimesOut
	// requestTimesOut means that the client waits until its time is up.
	requestTimesOut
	// appliedLate means that the call is applied after its client has given up.
	appliedLate
	// lastsTwoSeconds means that the call and its repetitions meet the fault for two seconds.
	lastsTwoSeconds
)

func fault(name string, traits trait, do faults.Fault) *Fault {
	return &Fault{Name: name, traits: traits, do: do}
}

func (f *Fault) is(t trait) bool { return f != nil && f.traits&t != 0 }

// The time-out of attempts in the HTTP client of package boot. The tests of boot check it.
const silence = 2 * time.Second

// quoted is in each message of AWS, because services repeat parts of the request.
const (
	quoted  = "xqQUOTEDqx"
	quoting = "The request is not acceptable: " + quoted
	page    = "<html><body>" + quoted + "</body></html>"
)

// reply makes the fault happen to the call.
func (f *Fault) reply(r *run, c *call) reply {
	if f.is(appliedLate) {
		ghost := *c
		ghost.late, ghost.born, ghost.patience, ghost.answer = true, len(r.steps), 0, make(chan reply, 1)
		r.mu.Lock()
		r.waiting = append(r.waiting, &ghost)
		r.mu.Unlock()
	}
	request := c.request.Clone(c.request.Context())
	request.Body = io.NopCloser(bytes.NewReader(c.body))
	response, err := f.do(request, c.send)
	return reply{response, err, f}
}

// staying is the same fault at each attempt.
func (f *Fault) staying() *Fault {
	other := *f
	other.Name, other.Stays, other.traits = f.Name+" each time", true, f.traits&^recovers
	return &other
}

// menus are the faults of each kind of call, made once.
var menus = map[string][]*Fault{}

// faults are all faults that the call may meet, once and each time.
func (c *call) faults() []*Fault {
	items := strings.Count(c.label.Item, " + ") + 1
	recorded := strings.Contains(c.label.Item, "idem#")
	returns := bytes.Contains(c.body, []byte("UPDATED_NEW")) || bytes.Contains(c.body, []byte("COUNT"))
	key := fmt.Sprint(c.label.Operation, items, recorded, returns)
	if menus[key] == nil {
		for _, f := range makeFaults(c.label.Operation, items, recorded, returns) {
			menus[key] = append(menus[key], f)
			if !f.is(requestTimesOut | appliedLate | lastsTwoSeconds) {
				menus[key] = append(menus[key], f.staying())
			}
		}
	}
	return menus[key]
}

// makeFaults makes the faults of an operation on a number of items. recorded means that
// one of them is an idempotency record. returns means that a write asks for the changed
// item, or a Query for a count; any other write accepts an empty answer.
func makeFaults(operation string, items int, recorded, returns bool) []*Fault {
	all := append(common(), proxies(operation)...)
	add := func(name string, traits trait, do faults.Fault) { all = append(all, fault(name, traits, do)) }
	if operation != "DeleteObject" && operation != "PutObject" { // these two have answers without a body
		add("answer empty", recovers, faults.EmptyAnswer())
		add("answer null", recovers, faults.Otherwise(http.StatusOK, "null"))
		add("no content", recovers, faults.Otherwise(http.StatusNoContent, ""))
	}
	if strings.Contains(operation, "Object") {
		add("no bucket", final, faults.Answer(http.StatusNotFound, "NoSuchBucket", quoting))
	}
	if operation == "GenerateDataKey" || returns {
		add("empty object", final, faults.Pretend(http.StatusOK, "{}"))
	}
	switch operation {
	case "Query":
		if returns {
			add("no capacity", recovers, faults.Pretend(http.StatusOK, `{"Count":100,"ScannedCount":100}`))
			add("no capacity units", recovers, faults.Pretend(http.StatusOK, `{"Count":100,"ScannedCount":100,"ConsumedCapacity":{}}`))
		}
	case "GetItem":
		add("another item", final, faults.AnotherItem())
	case "PutItem", "UpdateItem", "DeleteItem":
		add("in conflict", recovers|main, faults.Conflict())
		if operation == "UpdateItem" {
			for _, reasons := range [][]string{
				{ofItem},
				{"TableWriteMaxOnDemandThroughputExceeded"},
				{"TableWriteAccountLimitExceeded"},
				{"TableWriteProvisionedThroughputExceeded"},
				{ofItem, "TableWriteMaxOnDemandThroughputExceeded"},
			} {
				for _, code := range []string{"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"} {
					add(code+" for "+strings.Join(reasons, " and "), recovers, faults.ThrottleFor(code, reasons...))
				}
			}
		}
	case "BatchGetItem":
		add("unprocessed", recovers|main, faults.Unprocessed())
		add("half unprocessed", recovers|usable, faults.UnprocessedRest())
		add("no responses", recovers, faults.Otherwise(http.StatusOK, "{}"))
		add("no table", recovers, faults.Otherwise(http.StatusOK, `{"Responses":{}}`))
	case "BatchWriteItem":
		add("unprocessed", recovers|main, faults.Unprocessed())
	case "TransactWriteItems":
		all = append(all, cancellations(items, recorded)...)
	case "GenerateDataKey":
		for _, code := range []string{"DisabledException", "KMSInvalidStateException", "KeyUnavailableException"} {
			add(code, final, faults.Answer(http.StatusBadRequest, code, quoting))
		}
	case "ListObjectVersions":
		add("no listing", final, faults.Otherwise(http.StatusOK, "<html/>"))
		add("more follows nowhere", final, faults.Otherwise(http.StatusOK,
			"<ListVersionsResult><Name>"+bucket+"</Name><IsTruncated>true</IsTruncated></ListVersionsResult>"))
		add("an error with status 200", recovers, faults.Otherwise(http.StatusOK, "<Error><Code>InternalError</Code></Error>"))
	case "DeleteObject":
		add("absent is a failed precondition", recovers|usable, unmetPrecondition)
		add("headers lost", recovers, faults.NoHeaders())
		add("answer of another kind", recovers, faults.Otherwise(http.StatusOK, "{}"))
		for _, code := range []string{"ConditionalRequestConflict", "OperationAborted"} {
			add(code, recovers|main, faults.Answer(http.StatusConflict, code, quoting))
		}
	case "DeleteObjects":
		add("versions refused for 2 s", recovers|lastsTwoSeconds, faults.RefuseVersions("SlowDown"))
		add("versions refused", recovers|main, faults.RefuseVersions("InternalError"))
		add("versions denied", recovers, faults.RefuseVersions("AccessDenied"))
		add("nothing confirmed", recovers, faults.Pretend(http.StatusOK, "<DeleteResult/>"))
	}
	return all
}

// meanings explain the names that need it, for the legend of a table.
var meanings = map[string]string{
	"answer empty":            "the call is applied; its answer has headers and no body",
	"answer null":             "the call is applied; the body of its answer is null",
	"another item":            "the answer has an item of another key",
	"applied, answer lost":    "the call is applied; the connection breaks before the answer",
	"connection purged":       "the connection was closed while Lambda had the process frozen; the call is not applied",
	"given up, applied later": "the attempt times out; the service applies it at a later step",
	"headers lost":            "the call is applied; its answer has no headers, so it does not show a delete marker or a version",
	"nothing confirmed":       "DeleteObjects answers 200, names no version, and deletes nothing",
	"silent":                  "the call is not applied, and the attempt times out",
}

// The faults that a scenario may require.
var (
	gone     = fault("connection purged", recovers|main, faults.Refuse()) // while Lambda had the process frozen
	timeIsUp = fault("no answer until time is up", requestTimesOut, faults.TimeOut())
)

// common are the faults that every call may meet.
func common() []*Fault {
	return []*Fault{
		gone,
		fault("applied, answer lost", recovers|main, faults.LoseAnswer()),
		fault("given up, applied later", recovers|main|attemptTimesOut|appliedLate, faults.TimeOut()),
		fault("silent", recovers|attemptTimesOut, faults.TimeOut()),
		fault("applied, silent", recovers|attemptTimesOut, faults.TimeOutAnswer()),
		fault("throttled", recovers, faults.Throttle()),
		fault("answer cut", recovers, faults.CutAnswer()),
		fault("answer garbled", recovers, faults.Garble()),
		fault("server error", recovers, faults.Answer(http.StatusInternalServerError, "InternalServerError", quoting)),
		fault("bad gateway", recovers, faults.Pretend(http.StatusBadGateway, page)),
		fault("denied", final|main, faults.Answer(http.StatusForbidden, "AccessDeniedException", quoting)),
		fault("nothing there", final, faults.Answer(http.StatusNotFound, "ResourceNotFoundException", quoting)),
		timeIsUp,
		fault("applied, no answer until time is up", main|requestTimesOut, faults.TimeOutAnswer()),
	}
}

// proxies are answers of a proxy on the way. S3's client reads such a page as an error
// without a code, and does not retry it.
func proxies(operation string) []*Fault {
	ends := recovers
	if strings.Contains(operation, "Object") {
		ends = final
	}
	return []*Fault{
		fault("a proxy's not found", ends, faults.Pretend(http.StatusNotFound, page)),
		fault("a proxy's redirect", ends, faults.Pretend(http.StatusMovedPermanently, page)),
	}
}

// ofItem is the reason of a throttle that only the item's own writes cause.
const ofItem = "TableWriteKeyRangeThroughputExceeded"

// ownThrottle reports whether the fault throttles the item alone.
func (f *Fault) ownThrottle() bool {
	return strings.HasSuffix(strings.TrimSuffix(f.Name, " each time"), " for "+ofItem)
}

// cancellations are the errors of a cancelled transaction with so many items. Each reason
// comes for each item, alone and beside a throttle of another item. Only the condition of
// an idempotency record fails, because the record may expire afterwards.
func cancellations(items int, recorded bool) []*Fault {
	var all []*Fault
	for item := range items {
		for _, reason := range faults.CancellationReasons() {
			if reason == "ConditionalCheckFailed" && !recorded {
				continue
			}
			traits := final
			switch reason {
			case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
				traits = recovers
			case "ConditionalCheckFailed":
				if item == items-1 {
					traits = recovers
				}
			}
			reasons := slices.Repeat([]string{"None"}, items)
			reasons[item] = reason
			all = append(all, cancelled(traits, reasons))
			if reason == "TransactionConflict" && item == 0 {
				all[len(all)-1].traits |= main
			}
			for beside := range items {
				if beside != item && reason != "ThrottlingError" {
					mixed := slices.Clone(reasons)
					mixed[beside] = "ThrottlingError"
					all = append(all, cancelled(traits, mixed))
				}
			}
		}
	}
	return append(all,
		fault("cancelled for no reason", final, faults.Cancel()),
		fault("transaction in progress", recovers, faults.Answer(http.StatusBadRequest, "TransactionInProgressException", quoting)),
		fault("another transaction's token", final, faults.Answer(http.StatusBadRequest, "IdempotentParameterMismatchException", quoting)),
	)
}

func cancelled(traits trait, reasons []string) *Fault {
	return fault("cancelled ("+strings.Join(reasons, " ")+")", traits, faults.Cancel(reasons...))
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
