package stage

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"signalbox.dev/shared/enginetest/faults"
)

// quoting is what services say of a failure: they repeat parts of the request.
const quoting = "The request is not acceptable: " + quoted

// ailment is one thing that may go wrong with a call.
type ailment struct {
	name string
	// passing ailments are outlived: the call is made again, and a request that
	// met one of them once ends as if it had not.
	passing bool
	// fatal ailments end the request's time: they cannot be met twice.
	fatal bool
	// minor ailments leave nothing behind that another of them would not.
	minor bool
	fault func(*Function) faults.Fault
}

// ailmentsOf are all that may go wrong with the call.
func ailmentsOf(s step) []ailment {
	all := common()
	if s.operation != "DeleteObject" { // whose answer has no body to lose
		all = append(all, minor(passing("answer empty", faults.EmptyAnswer())))
	}
	switch s.operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		all = append(all, passing("in conflict", faults.Conflict()))
	case "BatchGetItem":
		all = append(all, passing("unprocessed", faults.Unprocessed()), passing("half unprocessed", faults.UnprocessedRest()))
	case "TransactWriteItems":
		all = append(all, cancellations(strings.Count(s.kind, "+")+1)...)
	case "GenerateDataKey":
		for _, code := range []string{"DisabledException", "KMSInvalidStateException", "KeyUnavailableException"} {
			all = append(all, lasting(code, faults.Answer(http.StatusBadRequest, code, quoting)))
		}
	case "ListObjectVersions":
		all = append(all, noBucket())
	case "DeleteObject":
		all = append(all, noBucket())
		for _, code := range []string{"ConditionalRequestConflict", "OperationAborted"} {
			all = append(all, passing(code, faults.Answer(http.StatusConflict, code, quoting)))
		}
	case "DeleteObjects":
		all = append(all, noBucket(), passing("versions refused", faults.RefuseVersions("InternalError")))
	}
	return all
}

// common is what may go wrong with every call.
func common() []ailment {
	return []ailment{
		passing("refused", faults.Refuse()),
		passing("answer lost", faults.LoseAnswer()),
		minor(passing("throttled", faults.Throttle())),
		minor(passing("timed out", faults.TimeOut())),
		minor(passing("timed out, applied", faults.TimeOutAnswer())),
		minor(passing("answer cut", faults.CutAnswer())),
		minor(passing("answer garbled", faults.Garble())),
		minor(passing("server error", faults.Answer(http.StatusInternalServerError, "InternalServerError", quoting))),
		lasting("denied", faults.Answer(http.StatusForbidden, "AccessDeniedException", quoting)),
		minor(lasting("nothing there", faults.Answer(http.StatusNotFound, "ResourceNotFoundException", quoting))),
		{name: "deadline", fatal: true, fault: func(f *Function) faults.Fault {
			return func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
				f.RunOut()
				return faults.Stall()(r, apply)
			}
		}},
		{name: "deadline, applied", fatal: true, fault: func(f *Function) faults.Fault {
			return func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
				return faults.StallAnswer()(r, func() (*http.Response, error) {
					answer, err := apply()
					f.RunOut()
					return answer, err
				})
			}
		}},
	}
}

// cancellations are the reasons for which a transaction of that many items is
// cancelled, on account of each of them.
func cancellations(items int) []ailment {
	var all []ailment
	for item := range items {
		for _, code := range []string{
			"ConditionalCheckFailed", "TransactionConflict", "ThrottlingError",
			"ProvisionedThroughputExceeded", "ItemCollectionSizeLimitExceeded", "ValidationError",
		} {
			reasons := slices.Repeat([]string{"None"}, items)
			reasons[item] = code
			made := lasting("cancelled: "+strings.Join(reasons, ", "), faults.Cancel(reasons...))
			// The record's condition without a record to show: it has expired since.
			made.passing = code == "TransactionConflict" || code == "ConditionalCheckFailed" && item == items-1
			all = append(all, made)
		}
	}
	return append(all,
		passing("transaction in progress", faults.Answer(http.StatusBadRequest, "TransactionInProgressException", quoting)),
		lasting("another transaction's token", faults.Answer(http.StatusBadRequest, "IdempotentParameterMismatchException", quoting)),
	)
}

func noBucket() ailment {
	return minor(lasting("no bucket", faults.Answer(http.StatusNotFound, "NoSuchBucket", quoting)))
}

func passing(name string, fault faults.Fault) ailment {
	made := lasting(name, fault)
	made.passing = true
	return made
}

func lasting(name string, fault faults.Fault) ailment {
	return ailment{name: name, fault: func(*Function) faults.Fault { return fault }}
}

func minor(a ailment) ailment {
	a.minor = true
	return a
}

// wearing is the fault, until the request has met it too often: then its time
// has run out.
func wearing(f *Function, fault faults.Fault) faults.Fault {
	var met atomic.Int64
	return func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		if met.Add(1) > patience {
			f.RunOut()
		}
		return fault(r, apply)
	}
}
