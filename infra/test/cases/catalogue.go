package cases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing/iotest"
	"time"

	"signalbox.dev/infra/test/kit/faults"
)

// Fault may happen to a call instead of its plain answer.
type Fault struct {
	Name   string
	traits trait
	do     faults.Fault
}

type trait uint16

const (
	// final means that the act fails: the call is not repeated.
	final trait = 0
	// recovers means that the call is repeated, and that the act then ends as without a fault.
	recovers trait = 1 << (iota - 1)
	// main faults are tried at every call; the others once for each kind of call.
	main
	// usable means that the fault is an answer that the code may use.
	usable
	// attemptTimesOut means that the client waits for the time-out of an attempt.
	attemptTimesOut
	// requestTimesOut means that the client waits until the act's time is up.
	requestTimesOut
	// interrupts means that the act's process is told to end.
	interrupts
	// appliedLate means that the call is applied after its client has given up.
	appliedLate
	// lastsTwoSeconds means that the call and its repetitions meet the fault for two seconds.
	lastsTwoSeconds
	// applied means that AWS has applied the call.
	applied
	// sameForReads means that the fault differs from another one in that only.
	sameForReads
)

var isRead = regexp.MustCompile(`^(Get|Query|Scan|BatchGet|List|Decrypt|Describe)`)

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

// Applied reports whether AWS has applied the call that met the fault.
func (f *Fault) Applied() bool { return f.is(applied) }

// Recovers reports whether a repeated call gets its answer.
func (f *Fault) Recovers() bool { return f.is(recovers) }

// Usable reports whether the fault is an answer that the code may use.
func (f *Fault) Usable() bool { return f.is(usable) }

// Refused reports whether the client knows that AWS has not applied the call.
func (f *Fault) Refused() bool {
	return f.Name == "denied" || f.Name == "nothing there"
}

// isReason reports whether the fault is one of many reasons of the same error.
func (f *Fault) isReason() bool {
	return strings.HasPrefix(f.Name, "cancelled") || strings.Contains(f.Name, " for ")
}

// OwnThrottle reports whether the fault throttles the item alone.
func (f *Fault) OwnThrottle() bool { return strings.HasSuffix(f.Name, " for "+ofItem) }

// menus are the faults of each kind of call, made once.
var catalogues = map[string][]*Fault{}

// menu is all that may happen to the call with this body.
func catalogue(c Call, body []byte) []*Fault {
	operation, kinds, _ := strings.Cut(c.Kind, " ")
	items, recorded := strings.Count(kinds, "+")+1, strings.Contains(kinds, "idem#")
	returns := bytes.Contains(body, []byte("UPDATED_NEW")) || bytes.Contains(body, []byte("COUNT"))
	if operation == "TransactWriteItems" {
		items = strings.Count(string(body), `"TableName":`)
	}
	key := fmt.Sprint(operation, items, recorded, returns)
	if catalogues[key] == nil {
		catalogues[key] = makeFaults(operation, items, recorded, returns)
	}
	return catalogues[key]
}

// makeFaults makes the faults of an operation on a number of items. recorded means that
// the last item is an idempotency record. returns means that a write asks for the changed
// item, or a Query for a count; any other write accepts an empty answer.
func makeFaults(operation string, items int, recorded, returns bool) []*Fault {
	all := common()
	if isRead.MatchString(operation) {
		all = slices.DeleteFunc(all, func(f *Fault) bool { return f.is(sameForReads) })
	}
	all = slices.Concat(all, proxies(operation), empty(operation, returns))
	switch operation {
	case "Query":
		if returns {
			all = append(all,
				fault("no capacity", recovers, faults.Pretend(http.StatusOK, `{"Count":100,"ScannedCount":100}`)),
				fault("no capacity units", recovers, faults.Pretend(http.StatusOK, `{"Count":100,"ScannedCount":100,"ConsumedCapacity":{}}`)))
		}
	case "GetItem":
		all = append(all, fault("item of another key", final, faults.AnotherItem()))
	case "UpdateItem":
		all = append(all, conflict())
		all = append(all, throttles()...)
	case "PutItem", "DeleteItem":
		all = append(all, conflict())
	case "BatchGetItem":
		all = append(all, unprocessed(),
			fault("half unprocessed", recovers|usable, faults.UnprocessedRest()),
			fault("no responses", recovers|applied, faults.Otherwise(http.StatusOK, "{}")),
			fault("no table", recovers|applied, faults.Otherwise(http.StatusOK, `{"Responses":{}}`)))
	case "BatchWriteItem":
		all = append(all, unprocessed())
	case "TransactWriteItems":
		all = append(all, cancellations(items, recorded)...)
	case "GenerateDataKey":
		all = append(all, errorsOf(http.StatusBadRequest, final, "DisabledException", "KMSInvalidStateException", "KeyUnavailableException")...)
	case "ListObjectVersions":
		all = append(all,
			fault("no listing", applied, faults.Otherwise(http.StatusOK, "<html/>")),
			fault("more follows nowhere", applied, listing("$BUCKET", "<IsTruncated>true</IsTruncated>")),
			fault("another bucket's listing", final, listing("another-bucket", "<IsTruncated>false</IsTruncated>")),
			fault("an error with status 200", recovers|applied, faults.Otherwise(http.StatusOK, "<Error><Code>InternalError</Code></Error>")))
	case "ListMultipartUploads":
		all = append(all,
			fault("another bucket's listing", final, faults.Pretend(http.StatusOK, "<ListMultipartUploadsResult><Bucket>another-bucket</Bucket></ListMultipartUploadsResult>")),
			fault("no listing", final, faults.Pretend(http.StatusOK, "<html/>")))
	case "AbortMultipartUpload":
		all = append(all, fault("nothing to abort", recovers|usable|applied, faults.Otherwise(http.StatusNotFound, "<Error><Code>NoSuchUpload</Code></Error>")))
	case "DeleteObject":
		all = append(all,
			fault("absent is a failed precondition", recovers|usable, unmetPrecondition),
			fault("applied, answer without headers", recovers|usable|applied, faults.NoHeaders()),
			fault("answer of another kind", recovers|applied, faults.Otherwise(http.StatusOK, "{}")))
		all = append(all, errorsOf(http.StatusConflict, recovers|main, "ConditionalRequestConflict", "OperationAborted")...)
	case "DeleteObjects":
		all = append(all,
			fault("versions refused for 2 s", recovers|lastsTwoSeconds, faults.RefuseVersions("SlowDown")),
			fault("versions refused", recovers|main, faults.RefuseVersions("InternalError")),
			fault("versions denied", recovers, faults.RefuseVersions("AccessDenied")),
			fault("200 that names no version", recovers, faults.Pretend(http.StatusOK, "<DeleteResult/>")))
	}
	return all
}

func conflict() *Fault {
	return fault("in conflict", recovers|main, faults.Answer(http.StatusBadRequest, "TransactionConflictException", quoting))
}

func unprocessed() *Fault { return fault("unprocessed", recovers|main, faults.Unprocessed()) }

func errorsOf(status int, traits trait, codes ...string) (all []*Fault) {
	for _, code := range codes {
		all = append(all, fault(code, traits, faults.Answer(status, code, quoting)))
	}
	return all
}

// empty are answers without content.
func empty(operation string, returns bool) (all []*Fault) {
	if operation != "DeleteObject" && operation != "PutObject" && operation != "AbortMultipartUpload" { // their answers have no body
		all = append(all,
			fault("applied, empty answer", recovers|applied, faults.EmptyAnswer()),
			fault("applied, null answer", recovers|applied, faults.Otherwise(http.StatusOK, "null")),
			fault("no content", recovers|applied, faults.Otherwise(http.StatusNoContent, "")))
	}
	if strings.Contains(operation, "Object") {
		all = append(all, fault("no bucket", final, faults.Answer(http.StatusNotFound, "NoSuchBucket", quoting)))
	}
	if operation == "GenerateDataKey" || returns {
		ends := final
		if operation == "Query" {
			ends = recovers
		}
		all = append(all, fault("empty object", ends, faults.Pretend(http.StatusOK, "{}")))
	}
	return all
}

// throttles are DynamoDB's errors for a throttled item, table or account.
func throttles() (all []*Fault) {
	for _, reasons := range [][]string{
		{ofItem},
		{"TableWriteMaxOnDemandThroughputExceeded"},
		{"TableWriteAccountLimitExceeded"},
		{"TableWriteProvisionedThroughputExceeded"},
		{ofItem, "TableWriteMaxOnDemandThroughputExceeded"},
	} {
		for _, code := range []string{"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"} {
			all = append(all, fault(code+" for "+strings.Join(reasons, " and "), recovers, faults.ThrottleFor(code, reasons...)))
		}
	}
	return all
}

// The faults that a verdict may require.
var (
	gone     = fault("not applied, connection closed", recovers|main, faults.Refuse()) // while Lambda had the process frozen
	lost     = fault("applied, connection breaks", recovers|main|applied|sameForReads, faults.LoseAnswer())
	timeIsUp = fault("no answer until time is up", requestTimesOut, faults.TimeOut())
)

// common are the faults that every call may meet.
func common() []*Fault {
	return []*Fault{
		gone,
		lost,
		fault("attempt times out, applied later", sameForReads|recovers|main|attemptTimesOut|appliedLate, faults.TimeOut()),
		fault("not applied, attempt times out", recovers|attemptTimesOut, faults.TimeOut()),
		fault("applied, attempt times out", sameForReads|recovers|attemptTimesOut|applied, faults.TimeOutAnswer()),
		fault("throttled", recovers, faults.Throttle()),
		fault("answer cut", recovers|applied, faults.CutAnswer()),
		fault("answer garbled", recovers|applied, faults.Garble()),
		fault("server error", recovers, faults.Answer(http.StatusInternalServerError, "InternalServerError", quoting)),
		fault("applied, server error", sameForReads|recovers|applied, faults.Otherwise(http.StatusInternalServerError, page)),
		fault("bad gateway", recovers, faults.Pretend(http.StatusBadGateway, page)),
		fault("denied", final|main, faults.Answer(http.StatusForbidden, "AccessDeniedException", quoting)),
		fault("nothing there", final, faults.Answer(http.StatusNotFound, "ResourceNotFoundException", quoting)),
		timeIsUp,
		fault("interrupted", interrupts, faults.TimeOut()),
		fault("applied, interrupted", sameForReads|interrupts|applied, faults.TimeOutAnswer()),
		fault("applied, no answer until time is up", sameForReads|main|requestTimesOut|applied, faults.TimeOutAnswer()),
	}
}

// proxies are answers of a proxy on the way. S3's client reads such a page as an error
// without a code, and does not retry it.
func proxies(operation string) []*Fault {
	ends, html := recovers, recovers
	if strings.Contains(operation, "Object") || strings.Contains(operation, "Upload") {
		ends = final
	}
	if operation == "ListObjectVersions" || operation == "ListMultipartUploads" {
		html = final
	}
	return []*Fault{
		fault("HTML with 200", html, faults.Pretend(http.StatusOK, page)),
		fault("a proxy's not found", ends, faults.Pretend(http.StatusNotFound, page)),
		fault("a proxy's redirect", ends, faults.Pretend(http.StatusMovedPermanently, page)),
	}
}

// ofItem is the reason of a throttle that only the item's own writes cause.
const ofItem = "TableWriteKeyRangeThroughputExceeded"

// cancellations are the errors of a cancelled transaction with so many items. Each reason
// comes for each item, alone and beside a throttle of another item. Only the condition of
// an idempotency record fails, because the record may expire afterwards.
func cancellations(items int, recorded bool) []*Fault {
	var all []*Fault
	for item := range items {
		for _, reason := range []string{
			"ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded",
			"RequestLimitExceeded", "ItemCollectionSizeLimitExceeded", "ValidationError",
		} {
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

// logged is the fault's error in the log, by the contract: AWS's code, status and request id,
// or the host and a word for a failure of the network.
func (f *Fault) logged(a attempt, r *http.Request, response *http.Response, err error) map[string]any {
	operation, _, _ := strings.Cut(a.call.Kind, " ")
	as := map[string]any{"operation": operation}
	switch {
	case f.is(requestTimesOut):
		as["code"] = "deadline"
	case f.is(interrupts):
		as["code"] = "canceled"
	case response == nil:
		as["code"], as["host"] = "connection", r.URL.Host
		if errors.Is(err, os.ErrDeadlineExceeded) {
			as["code"] = "timeout"
		}
	default:
		body := peek(response)
		found := failed.FindSubmatch(body)
		whole := json.Valid(body) || bytes.HasSuffix(body, []byte("</Error>"))
		if response.StatusCode < http.StatusBadRequest || found == nil || !whole {
			return nil
		}
		as["code"], as["status"] = string(append(found[1], found[2]...)), float64(response.StatusCode)
		as["aws_request_id"] = cmp.Or(response.Header.Get("X-Amzn-Requestid"), response.Header.Get("X-Amz-Request-Id"))
	}
	return as
}

// failed finds the code of a whole response, not those of a transaction's items.
var failed = regexp.MustCompile(`"__type":"[^"]*?([A-Za-z]+)"|<Code>([A-Za-z]+)<`)

// peek reads the body of a response, and leaves the response as it was.
func peek(response *http.Response) []byte {
	body, err := io.ReadAll(response.Body) // the error is that of a cut answer
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(cmp.Or(err, io.EOF))))
	return body
}

// listing is a listing of a bucket; $BUCKET is the requested one.
func listing(bucket, members string) faults.Fault {
	return func(r *http.Request, apply faults.Apply) (*http.Response, error) {
		host, _, _ := strings.Cut(r.URL.Host, ".")
		path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		name := strings.ReplaceAll(bucket, "$BUCKET", cmp.Or(path, host))
		return faults.Pretend(http.StatusOK, "<ListVersionsResult><Name>"+name+"</Name>"+members+"</ListVersionsResult>")(r, apply)
	}
}
