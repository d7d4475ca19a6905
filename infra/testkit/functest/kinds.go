package functest

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"signalbox.dev/infra/testkit/faults"
)

// quoting is a service's error message: it repeats parts of the request.
const quoting = "The request is not acceptable: " + quoted

// page is the answer of something in between.
const page = "<html><body>" + quoted + "</body></html>"

// faultKind is one fault that a call may meet.
type faultKind struct {
	name string
	// passing faults are survived: the call is made again, and a request that meets
	// one once ends as if it had not.
	passing bool
	// harmless faults are survived even where they stay.
	harmless bool
	// fatal faults end the request's time: they cannot be met twice.
	fatal bool
	// minor faults leave nothing behind that another fault would not.
	minor bool
	fault func(*Instance) faults.Fault
}

// faultsOf returns all faults that the call may meet.
func faultsOf(s step) []faultKind {
	all := append(common(), proxyAnswers(s)...)
	if s.operation != "DeleteObject" { // whose answer has no body
		all = append(all,
			minor(passing("answer empty", faults.EmptyAnswer())),
			minor(passing("answer null", faults.Otherwise(http.StatusOK, "null"))),
			minor(passing("no content", faults.Otherwise(http.StatusNoContent, ""))))
	}
	switch s.operation {
	case "GetItem":
		all = append(all, lasting("another item", faults.AnotherItem()))
	case "PutItem", "UpdateItem", "DeleteItem":
		all = append(all, passing("in conflict", faults.Conflict()))
		if s.operation == "UpdateItem" {
			all = append(all, lasting("empty object", faults.Pretend(http.StatusOK, "{}")))
			all = append(all, throttles()...)
		}
	case "BatchGetItem":
		all = append(all, passing("unprocessed", faults.Unprocessed()), passing("half unprocessed", faults.UnprocessedRest()),
			lasting("no responses", faults.Otherwise(http.StatusOK, "{}")))
	case "TransactWriteItems":
		all = append(all, cancellations(strings.Count(s.kind, "+")+1)...)
	case "GenerateDataKey":
		all = append(all, lasting("empty object", faults.Pretend(http.StatusOK, "{}")))
		for _, code := range []string{"DisabledException", "KMSInvalidStateException", "KeyUnavailableException"} {
			all = append(all, lasting(code, faults.Answer(http.StatusBadRequest, code, quoting)))
		}
	case "ListObjectVersions":
		all = append(all, noBucket(),
			lasting("no listing", faults.Otherwise(http.StatusOK, "<html/>")),
			passing("an error with status 200", faults.Otherwise(http.StatusOK, "<Error><Code>InternalError</Code></Error>")))
	case "DeleteObject":
		bare := passing("headers lost", faults.NoHeaders())
		bare.harmless = true
		all = append(all, noBucket(), bare, passing("answer of another kind", faults.Otherwise(http.StatusOK, "{}")))
		for _, code := range []string{"ConditionalRequestConflict", "OperationAborted"} {
			all = append(all, passing(code, faults.Answer(http.StatusConflict, code, quoting)))
		}
	case "DeleteObjects":
		all = append(all, noBucket(), passing("versions refused", faults.RefuseVersions("InternalError")),
			passing("nothing confirmed", faults.Pretend(http.StatusOK, "<DeleteResult/>")))
	}
	return all
}

// common returns the faults that every call may meet.
func common() []faultKind {
	return []faultKind{
		passing("refused", faults.Refuse()),
		passing("answer lost", faults.LoseAnswer()),
		minor(passing("throttled", faults.Throttle())),
		minor(passing("timed out", faults.TimeOut())),
		minor(passing("timed out, applied", faults.TimeOutAnswer())),
		minor(passing("answer cut", faults.CutAnswer())),
		minor(passing("answer garbled", faults.Garble())),
		minor(passing("server error", faults.Answer(http.StatusInternalServerError, "InternalServerError", quoting))),
		lasting("denied", faults.Answer(http.StatusForbidden, "AccessDeniedException", quoting)),
		minor(passing("bad gateway", faults.Pretend(http.StatusBadGateway, page))),
		minor(lasting("nothing there", faults.Answer(http.StatusNotFound, "ResourceNotFoundException", quoting))),
		{name: "deadline", fatal: true, fault: (*Instance).Deadline},
		{name: "deadline, applied", fatal: true, fault: func(f *Instance) faults.Fault {
			return func(r *http.Request, apply faults.Apply) (*http.Response, error) {
				if answer, err := apply(); err == nil {
					_ = answer.Body.Close()
				}
				return f.Deadline()(r, apply)
			}
		}},
	}
}

// proxyAnswers returns answers of something in between. To S3's client such a page
// is an error without a code, which it does not retry.
func proxyAnswers(s step) []faultKind {
	kind := passing
	if strings.Contains(s.operation, "Object") {
		kind = lasting
	}
	return []faultKind{
		minor(kind("a proxy's not found", faults.Pretend(http.StatusNotFound, page))),
		minor(kind("a proxy's redirect", faults.Pretend(http.StatusMovedPermanently, page))),
	}
}

// throttles returns DynamoDB's answers to a write that is too much for its item,
// its table or the account.
func throttles() []faultKind {
	var all []faultKind
	for _, code := range []string{"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"} {
		for _, reasons := range [][]string{
			{"TableWriteKeyRangeThroughputExceeded"},
			{"TableWriteMaxOnDemandThroughputExceeded"},
			{"TableWriteAccountLimitExceeded"},
			{"TableWriteProvisionedThroughputExceeded"},
			{"TableWriteKeyRangeThroughputExceeded", "TableWriteMaxOnDemandThroughputExceeded"},
		} {
			name := "throttled: " + code + " " + strings.Join(reasons, ", ")
			all = append(all, minor(passing(name, faults.ThrottleFor(code, reasons...))))
		}
	}
	return all
}

// cancellations returns the answers to a cancelled transaction of that many items:
// each reason for each item, alone and beside a throttle of another item.
func cancellations(items int) []faultKind {
	var all []faultKind
	for item := range items {
		for _, reason := range faults.CancellationReasons() {
			// The condition on the record failed, and there is no record: it has expired since.
			passes := isPassing(reason) || reason == "ConditionalCheckFailed" && item == items-1
			reasons := slices.Repeat([]string{"None"}, items)
			reasons[item] = reason
			all = append(all, cancelled(passes, reasons))
			for beside := range items {
				if beside != item && reason != "ThrottlingError" {
					mixed := slices.Clone(reasons)
					mixed[beside] = "ThrottlingError"
					all = append(all, minor(cancelled(passes, mixed)))
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

func cancelled(passes bool, reasons []string) faultKind {
	made := lasting("cancelled: "+strings.Join(reasons, ", "), faults.Cancel(reasons...))
	made.passing = passes
	return made
}

// isPassing reports whether a transaction that was cancelled for the reason may
// succeed when it is made again.
func isPassing(reason string) bool {
	switch reason {
	case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
		return true
	default:
		return false
	}
}

func noBucket() faultKind {
	return minor(lasting("no bucket", faults.Answer(http.StatusNotFound, "NoSuchBucket", quoting)))
}

func passing(name string, fault faults.Fault) faultKind {
	made := lasting(name, fault)
	made.passing = true
	return made
}

func lasting(name string, fault faults.Fault) faultKind {
	return faultKind{name: name, fault: func(*Instance) faults.Fault { return fault }}
}

func minor(a faultKind) faultKind {
	a.minor = true
	return a
}

// untilTimeIsUp returns the fault with a limit: when the request has met it too
// often, its time runs out.
func untilTimeIsUp(f *Instance, fault faults.Fault) faults.Fault {
	var met atomic.Int64
	return func(r *http.Request, apply faults.Apply) (*http.Response, error) {
		if met.Add(1) > patience {
			f.runOut()
		}
		return fault(r, apply)
	}
}
