package cases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
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

// Fault may happen to a call instead of its plain answer. If it does not recover, the operation fails.
type Fault struct {
	Name string
	// Recovers means that the call is repeated, and the operation then ends as without a fault.
	Recovers bool
	// Usable means that the fault is an answer that the code may use.
	Usable bool
	// Applied means that AWS has applied the call, Refused that its answer says that it has not.
	Applied, Refused bool
	// OwnThrottle means that only the writes of the call's item are throttled.
	OwnThrottle bool
	// Cancelled means that DynamoDB has cancelled the transaction.
	Cancelled bool
	// Unconfirmed means that an answer to DeleteObjects, with status 200, leaves versions out.
	Unconfirmed bool

	main            bool // tried at every call; the others once for each kind of call
	variant         bool // one of many forms of an error: tried once for each operation
	sameForReads    bool // differs from another fault only if the call is a write
	attemptTimesOut bool // the client waits for the time-out of an attempt
	requestTimesOut bool // the client waits until the operation's time is up
	interrupts      bool // the operation's process is told to end
	appliedLate     bool // the call is applied after its client has given up
	lastsTwoSeconds bool // the call and its repetitions meet the fault for two seconds

	do faults.Fault
}

var isRead = regexp.MustCompile(`^(Get|Query|Scan|BatchGet|List|Decrypt|Describe)`)

// The time-out of attempts in the HTTP client of package boot. The tests of boot check it.
const silence = 2 * time.Second

// quoted is in each message of AWS, because services repeat parts of the request.
const (
	quoted  = "xqQUOTEDqx"
	quoting = "The request is not acceptable: " + quoted
	page    = "<html><body>" + quoted + "</body></html>"
)

// catalogue returns all faults that the call may meet.
func catalogue(c Call) []*Fault {
	operation, kinds, _ := strings.Cut(c.Kind, " ")
	items, recorded := strings.Count(kinds, "+")+1, strings.Contains(kinds, "idem#") // the last is an idempotency record
	if operation == "TransactWriteItems" {
		items = strings.Count(string(c.body), `"TableName":`)
	}
	// A write asks for the changed item, or a Query for a count. Any other write accepts an empty answer.
	returns := bytes.Contains(c.body, []byte("UPDATED_NEW")) || bytes.Contains(c.body, []byte("COUNT"))
	all := common()
	if isRead.MatchString(operation) {
		all = slices.DeleteFunc(all, func(f *Fault) bool { return f.sameForReads })
	}
	all = slices.Concat(all, proxies(operation), empty(operation, returns))
	switch operation {
	case "Query":
		if returns {
			all = append(all,
				&Fault{Name: "no capacity", Recovers: true, do: faults.Pretend(http.StatusOK, `{"Count":100,"ScannedCount":100}`)},
				&Fault{Name: "no capacity units", Recovers: true, do: faults.Pretend(http.StatusOK, `{"Count":100,"ScannedCount":100,"ConsumedCapacity":{}}`)})
		}
	case "GetItem":
		all = append(all, &Fault{Name: "item of another key", do: faults.AnotherItem()})
	case "PutItem", "UpdateItem", "DeleteItem":
		all = append(all, errorsOf(http.StatusBadRequest, Fault{Recovers: true, Refused: true, main: true}, "TransactionConflictException")...)
		if operation == "UpdateItem" {
			all = append(all, throttles()...)
		}
	case "BatchWriteItem":
		all = append(all, unprocessed)
	case "BatchGetItem":
		all = append(all, unprocessed,
			&Fault{Name: "half unprocessed", Recovers: true, Usable: true, do: faults.UnprocessedRest()},
			&Fault{Name: "no responses", Recovers: true, Applied: true, do: faults.Otherwise(http.StatusOK, "{}")},
			&Fault{Name: "no table", Recovers: true, Applied: true, do: faults.Otherwise(http.StatusOK, `{"Responses":{}}`)})
	case "TransactWriteItems":
		all = append(all, cancellations(items, recorded)...)
	case "GenerateDataKey":
		all = append(all, errorsOf(http.StatusBadRequest, Fault{Refused: true}, "DisabledException", "KMSInvalidStateException", "KeyUnavailableException")...)
	case "ListObjectVersions":
		all = append(all,
			&Fault{Name: "no listing", Applied: true, do: faults.Otherwise(http.StatusOK, "<html/>")},
			&Fault{Name: "more follows nowhere", Applied: true, do: listing("$BUCKET", "<IsTruncated>true</IsTruncated>")},
			&Fault{Name: "another bucket's listing", do: listing("another-bucket", "<IsTruncated>false</IsTruncated>")},
			&Fault{Name: "an error with status 200", Recovers: true, Applied: true, do: faults.Otherwise(http.StatusOK, "<Error><Code>InternalError</Code></Error>")})
	case "ListMultipartUploads":
		all = append(all,
			&Fault{Name: "another bucket's listing", do: faults.Pretend(http.StatusOK, "<ListMultipartUploadsResult><Bucket>another-bucket</Bucket></ListMultipartUploadsResult>")},
			&Fault{Name: "no listing", do: faults.Pretend(http.StatusOK, "<html/>")})
	case "AbortMultipartUpload":
		all = append(all, &Fault{Name: "nothing to abort", Recovers: true, Usable: true, Applied: true, do: faults.Otherwise(http.StatusNotFound, "<Error><Code>NoSuchUpload</Code></Error>")})
	case "DeleteObject":
		all = append(all,
			&Fault{Name: "absent is a failed precondition", Recovers: true, Usable: true, do: unmetPrecondition},
			&Fault{Name: "applied, answer without headers", Recovers: true, Usable: true, Applied: true, do: faults.NoHeaders()},
			&Fault{Name: "answer of another kind", Recovers: true, Applied: true, do: faults.Otherwise(http.StatusOK, "{}")})
		all = append(all, errorsOf(http.StatusConflict, Fault{Recovers: true, Refused: true, main: true}, "ConditionalRequestConflict", "OperationAborted")...)
	case "DeleteObjects":
		all = append(all,
			&Fault{Name: "versions refused for 2 s", Recovers: true, Unconfirmed: true, lastsTwoSeconds: true, do: faults.RefuseVersions("SlowDown")},
			&Fault{Name: "versions fail for 2 s", Recovers: true, Unconfirmed: true, lastsTwoSeconds: true, do: faults.RefuseVersions("InternalError")},
			&Fault{Name: "versions refused", Recovers: true, Unconfirmed: true, main: true, do: faults.RefuseVersions("InternalError")},
			&Fault{Name: "versions denied", Recovers: true, Unconfirmed: true, do: faults.RefuseVersions("AccessDenied")},
			&Fault{Name: "200 that names no version", Recovers: true, Unconfirmed: true, do: faults.Pretend(http.StatusOK, "<DeleteResult/>")})
	}
	return all
}

func errorsOf(status int, like Fault, codes ...string) (all []*Fault) {
	for _, code := range codes {
		f := like
		f.Name, f.do = code, faults.Answer(status, code, quoting)
		all = append(all, &f)
	}
	return all
}

// empty are answers without content.
func empty(operation string, returns bool) (all []*Fault) {
	if operation != "DeleteObject" && operation != "PutObject" && operation != "AbortMultipartUpload" { // their answers have no body
		all = append(all,
			&Fault{Name: "applied, empty answer", Recovers: true, Applied: true, do: faults.EmptyAnswer()},
			&Fault{Name: "applied, null answer", Recovers: true, Applied: true, do: faults.Otherwise(http.StatusOK, "null")},
			&Fault{Name: "no content", Recovers: true, Applied: true, do: faults.Otherwise(http.StatusNoContent, "")})
	}
	if strings.Contains(operation, "Object") {
		all = append(all, &Fault{Name: "no bucket", Refused: true, do: faults.Answer(http.StatusNotFound, "NoSuchBucket", quoting)})
	}
	if operation == "GenerateDataKey" || returns {
		all = append(all, &Fault{Name: "empty object", Recovers: operation == "Query", do: faults.Pretend(http.StatusOK, "{}")})
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
			all = append(all, &Fault{
				Name: code + " for " + strings.Join(reasons, " and "), Recovers: true, Refused: true, variant: true,
				OwnThrottle: slices.Equal(reasons, []string{ofItem}), do: faults.ThrottleFor(code, reasons...),
			})
		}
	}
	return all
}

var (
	unprocessed = &Fault{Name: "unprocessed", Recovers: true, Refused: true, main: true, do: faults.Unprocessed()}
	// The faults that a trial may require.
	gone = &Fault{Name: "not applied, connection closed", Recovers: true, main: true, do: faults.Refuse()} // while Lambda had the process frozen
	lost = &Fault{Name: "applied, connection breaks", Recovers: true, Applied: true, main: true, sameForReads: true, do: faults.LoseAnswer()}
)

// common are the faults that every call may meet.
func common() []*Fault {
	return []*Fault{
		gone,
		lost,
		{Name: "attempt times out, applied later", Recovers: true, main: true, sameForReads: true, attemptTimesOut: true, appliedLate: true, do: faults.TimeOut()},
		{Name: "not applied, attempt times out", Recovers: true, attemptTimesOut: true, do: faults.TimeOut()},
		{Name: "applied, attempt times out", Recovers: true, Applied: true, sameForReads: true, attemptTimesOut: true, do: faults.TimeOutAnswer()},
		{Name: "throttled", Recovers: true, Refused: true, do: faults.Throttle()},
		{Name: "answer cut", Recovers: true, Applied: true, do: faults.CutAnswer()},
		{Name: "answer garbled", Recovers: true, Applied: true, do: faults.Garble()},
		{Name: "server error", Recovers: true, do: faults.Answer(http.StatusInternalServerError, "InternalServerError", quoting)},
		{Name: "applied, server error", Recovers: true, Applied: true, sameForReads: true, do: faults.Otherwise(http.StatusInternalServerError, page)},
		{Name: "bad gateway", Recovers: true, do: faults.Pretend(http.StatusBadGateway, page)},
		{Name: "denied", Refused: true, main: true, do: faults.Answer(http.StatusForbidden, "AccessDeniedException", quoting)},
		{Name: "nothing there", Refused: true, do: faults.Answer(http.StatusNotFound, "ResourceNotFoundException", quoting)},
		{Name: "no answer until time is up", requestTimesOut: true, do: faults.TimeOut()},
		{Name: "interrupted", interrupts: true, do: faults.TimeOut()},
		{Name: "applied, interrupted", Applied: true, sameForReads: true, interrupts: true, do: faults.TimeOutAnswer()},
		{Name: "applied, no answer until time is up", Applied: true, main: true, sameForReads: true, requestTimesOut: true, do: faults.TimeOutAnswer()},
	}
}

// proxies are answers of a proxy on the way. S3's client reads such a page as an error
// without a code, and does not retry it.
func proxies(operation string) []*Fault {
	ofS3 := strings.Contains(operation, "Object") || strings.Contains(operation, "Upload")
	listing := operation == "ListObjectVersions" || operation == "ListMultipartUploads"
	return []*Fault{
		{Name: "HTML with 200", Recovers: !listing, Unconfirmed: operation == "DeleteObjects", do: faults.Pretend(http.StatusOK, page)},
		{Name: "a proxy's not found", Recovers: !ofS3, do: faults.Pretend(http.StatusNotFound, page)},
		{Name: "a proxy's redirect", Recovers: !ofS3, do: faults.Pretend(http.StatusMovedPermanently, page)},
	}
}

// ofItem is the reason of a throttle that only the item's own writes cause.
const ofItem = "TableWriteKeyRangeThroughputExceeded"

// cancellations are the errors of a cancelled transaction with so many items. Each reason
// comes for each item, alone and with a throttle of another item. Only the condition of
// an idempotency record fails, because the record may expire afterwards.
func cancellations(items int, recorded bool) (all []*Fault) {
	passing := []string{"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"}
	for item := range items {
		reasons := append(slices.Clone(passing), "ItemCollectionSizeLimitExceeded", "ValidationError")
		if recorded {
			reasons = append(reasons, "ConditionalCheckFailed")
		}
		for _, reason := range reasons {
			recovers := slices.Contains(passing, reason) || reason == "ConditionalCheckFailed" && item == items-1
			codes := slices.Repeat([]string{"None"}, items)
			codes[item] = reason
			f := cancelled(recovers, codes)
			f.main = reason == "TransactionConflict" && item == 0
			all = append(all, f)
			for other := range items {
				if other != item && reason != "ThrottlingError" {
					mixed := slices.Clone(codes)
					mixed[other] = "ThrottlingError"
					all = append(all, cancelled(recovers, mixed))
				}
			}
		}
	}
	return append(all,
		&Fault{Name: "cancelled for no reason", Refused: true, Cancelled: true, variant: true, do: faults.Cancel()},
		&Fault{Name: "transaction in progress", Recovers: true, do: faults.Answer(http.StatusBadRequest, "TransactionInProgressException", quoting)},
		&Fault{Name: "another transaction's token", do: faults.Answer(http.StatusBadRequest, "IdempotentParameterMismatchException", quoting)},
	)
}

func cancelled(recovers bool, codes []string) *Fault {
	return &Fault{Name: "cancelled (" + strings.Join(codes, " ") + ")", Recovers: recovers, Refused: true, Cancelled: true, variant: true, do: faults.Cancel(codes...)}
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
	case f.requestTimesOut:
		as["code"] = "deadline"
	case f.interrupts:
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
