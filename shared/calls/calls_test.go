package calls_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"signalbox.dev/shared/calls"
)

func TestTogetherPanicsInTheCaller(t *testing.T) {
	for depth := range 4 {
		var done atomic.Int32
		func() {
			defer func() {
				p, ok := recover().(calls.Panic)
				if !ok || p.Value != "boom" || !strings.Contains(string(p.Stack), "calls_test.boom") {
					t.Errorf("depth %d: recovered %T with value %v and stack %s", depth, p, p.Value, p.Stack)
				}
			}()
			nested(t.Context(), depth, &done)
		}()
		if int(done.Load()) != depth+1 {
			t.Errorf("depth %d: Together waited for %d other functions", depth, done.Load())
		}
	}
}

// nested panics under depth calls of Together within one another.
func nested(ctx context.Context, depth int, done *atomic.Int32) {
	calls.Together(ctx,
		func(ctx context.Context) {
			if depth == 0 {
				boom()
			}
			nested(ctx, depth-1, done)
		},
		func(context.Context) { done.Add(1) },
	)
}

func boom() { panic("boom") }

// A damaged attribute leaves nothing in the row, and the others are decoded. A sound row is decoded
// once: a router decodes a hundred for a request.
func TestDecode(t *testing.T) {
	type row struct {
		Account string   `dynamodbav:"account"`
		Deleted *int64   `dynamodbav:"deleted"`
		List    []string `dynamodbav:"list"`
	}
	sound := map[string]types.AttributeValue{
		"account": calls.Text("a"), "deleted": calls.Number(7), "list": &types.AttributeValueMemberL{Value: []types.AttributeValue{calls.Text("x")}},
	}
	for name, value := range map[string]types.AttributeValue{
		"account": calls.Number(7), "deleted": calls.Text("x"), "list": &types.AttributeValueMemberL{Value: []types.AttributeValue{calls.Text("x"), &types.AttributeValueMemberM{}}},
	} {
		damaged, without := maps.Clone(sound), maps.Clone(sound)
		damaged[name] = value
		delete(without, name)
		var got, want row
		err := calls.Decode(damaged, &got, "account")
		if _ = calls.Decode(without, &want, "account"); err == nil || err.Error() != name+" is of another type" || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	once := testing.AllocsPerRun(10, func() { _ = attributevalue.UnmarshalMap(sound, new(row)) })
	if n := testing.AllocsPerRun(10, func() { _ = calls.Decode(sound, new(row), "account") }); n > once {
		t.Errorf("%v allocations for a sound row, %v for the decoder", n, once)
	}
}

func TestDescribeLeavesOutWhatAWSWrote(t *testing.T) {
	const marker = "sk-marker"
	sending := func(err error) error {
		return &smithyhttp.RequestSendError{Err: &url.Error{Op: "Get", URL: "http://an-engine:3002/" + marker, Err: err}}
	}
	for want, err := range map[string]error{
		"code=ValidationException status=400 aws_request_id=request-1": responded(400, &smithy.GenericAPIError{Code: "ValidationException", Message: marker}),
		"operation=PutItem code=ValidationException":                   &smithy.GenericAPIError{Code: "ValidationException", Message: "value " + marker},
		"host=an-engine:3002 network=dial tcp: connection refused":     sending(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
		"host=an-engine:3002": sending(errors.New("malformed HTTP response " + marker)),
	} {
		got := calls.Describe(&smithy.OperationError{ServiceID: "DynamoDB", OperationName: "PutItem", Err: err}).String()
		if strings.Contains(got, marker) || !strings.Contains(got, want) {
			t.Errorf("Describe = %s, want %s", got, want)
		}
	}
	if got := calls.Describe(errors.New("our own words")).String(); !strings.Contains(got, "our own words") {
		t.Errorf("Describe = %s", got)
	}
}

// responded is an error of a service.
func responded(status int, err error) error {
	return &awshttp.ResponseError{RequestID: "request-1", ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
	}}
}

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "deadline"},
		{context.Canceled, "canceled"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "timeout"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "connection"},
		{responded(0, errors.New("reset")), "connection"},
		{responded(200, errors.New("syntax")), "malformed_response"},
		{responded(400, &smithy.GenericAPIError{Code: "ValidationException"}), "ValidationException"},
	} {
		err := &smithy.OperationError{ServiceID: "KMS", OperationName: "Decrypt", Err: c.err}
		if got := calls.Code(err); got != c.want || calls.IsMalformed(err) != (c.want == "malformed_response") {
			t.Errorf("%v: code %s, want %s", err, got, c.want)
		}
	}
	err := &smithy.OperationError{ServiceID: "KMS", OperationName: "Decrypt", Err: responded(503, errors.New("syntax"))}
	if got := calls.Describe(err).String(); !strings.Contains(got, "503") || !strings.Contains(got, "request-1") {
		t.Errorf("Describe = %s", got)
	}
}

// The two most common faults of a first deployment: the log says which.
func TestNoCredentialsAndNoTable(t *testing.T) {
	const marker = "sk-marker"
	unsigned, missing := config(service{}, calls.RefuseMalformed), config(service{status: 400, body: `{"__type":"ResourceNotFoundException"}`}, calls.RefuseMalformed)
	unsigned.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("a program wrote " + marker)
	})
	for want, err := range map[string]error{
		"code=credentials text=no AWS credentials":   getItem(t.Context(), unsigned),
		"code=ResourceNotFoundException table=t":     getItem(t.Context(), missing),
		"code=ResourceNotFoundException status=400 ": batch(t.Context(), missing),
	} {
		if got := calls.Describe(err).String(); !strings.Contains(got, want) || strings.Contains(got, marker) {
			t.Errorf("Describe = %s, want %s", got, want)
		}
	}
}

func TestWhyCancelled(t *testing.T) {
	for _, c := range []struct {
		reasons string
		want    calls.Cancellation
	}{
		{"None ConditionalCheckFailed", calls.Refused},
		{"ConditionalCheckFailed TransactionConflict", calls.Refused},
		{"None ValidationError ThrottlingError", calls.Refused},
		{"None TransactionConflict", calls.InConflict},
		{"TransactionConflict RequestLimitExceeded", calls.Throttled},
		{"ProvisionedThroughputExceeded TransactionConflict", calls.Throttled},
		{"ThrottlingError None", calls.Throttled},
	} {
		cancelled := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{}, {Code: aws.String("")}}}
		for code := range strings.FieldsSeq(c.reasons) {
			cancelled.CancellationReasons = append(cancelled.CancellationReasons, types.CancellationReason{Code: &code})
		}
		if got := calls.WhyCancelled(cancelled); got != c.want {
			t.Errorf("%s: %v, want %v", c.reasons, got, c.want)
		}
		for i, reason := range append(cancelled.CancellationReasons, types.CancellationReason{}) {
			if _, unmet := calls.Unmet(cancelled, i); unmet != (aws.ToString(reason.Code) == "ConditionalCheckFailed") {
				t.Errorf("%s: the condition of item %d is unmet: %t", c.reasons, i, unmet)
			}
		}
	}
	another := errors.New("another")
	if _, unmet := calls.Unmet(another, 0); calls.WhyCancelled(another) != calls.NotCancelled || unmet {
		t.Errorf("another error: %v, %t", calls.WhyCancelled(another), unmet)
	}
}

// service is an HTTP client that returns one response; with status 0 it cannot be reached.
type service struct {
	status int
	body   string
	ends   error // the error after the body, if any
}

func (s service) Do(r *http.Request) (*http.Response, error) {
	if s.status == 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return &http.Response{
		StatusCode: s.status, Request: r, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(io.MultiReader(strings.NewReader(s.body), iotest.ErrReader(cmp.Or(s.ends, io.EOF)))), ContentLength: -1,
	}, nil
}

func config(s service, option func(*middleware.Stack) error) aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		HTTPClient: s, RetryMaxAttempts: 1, APIOptions: []func(*middleware.Stack) error{option},
	}
}

// retrying is a configuration with our retry policy. attempt answers each attempt.
func retrying(option func(*middleware.Stack) error, attempt smithyhttp.ClientDoFunc) aws.Config {
	c := config(service{}, option)
	c.RetryMaxAttempts, c.Retryer, c.HTTPClient = 0, calls.Retryer, attempt
	return c
}

func getItem(ctx context.Context, c aws.Config) error {
	_, err := calls.Get(ctx, dynamodb.NewFromConfig(c), "t", key)
	return err
}

func deleteObject(ctx context.Context, c aws.Config) error {
	_, err := s3.NewFromConfig(c).DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	return err
}

func putObject(ctx context.Context, c aws.Config) error {
	_, err := s3.NewFromConfig(c).PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	return err
}

func listVersions(ctx context.Context, c aws.Config) error {
	_, err := s3.NewFromConfig(c).ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: aws.String("b")})
	return err
}

var key = map[string]types.AttributeValue{"pk": calls.Text("a")}

func scan(choose types.Select) func(context.Context, aws.Config) error {
	return func(ctx context.Context, c aws.Config) error {
		_, err := dynamodb.NewFromConfig(c).Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("t"), Select: choose, ExclusiveStartKey: key})
		return err
	}
}

func query(ctx context.Context, c aws.Config) error {
	_, err := dynamodb.NewFromConfig(c).Query(ctx, &dynamodb.QueryInput{TableName: aws.String("t"), ExclusiveStartKey: key})
	return err
}

// count counts, with the capacity that it takes.
func count(ctx context.Context, c aws.Config) error {
	out, err := dynamodb.NewFromConfig(c).Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String("t"), Select: types.SelectCount, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err == nil && out.Count != 3 {
		return errors.New("another count")
	}
	return err
}

// batch reads items of two tables.
func batch(ctx context.Context, c aws.Config) error {
	keys := types.KeysAndAttributes{Keys: []map[string]types.AttributeValue{key}}
	_, err := dynamodb.NewFromConfig(c).BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"t": keys, "u": keys}})
	return err
}

// Only a form of success that the service sends is accepted; an error is unchanged. The cases of
// the functions play most of the others at each call.
func TestMalformedResponsesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		call    func(context.Context, aws.Config) error
		service service
		code    string
	}{
		"an object after a pause":   {getItem, service{status: 200, body: " \t\r\n{}"}, ""},
		"white space":               {getItem, service{status: 200, body: " \n"}, "malformed_response"},
		"out of time":               {getItem, service{status: 200, body: `{"Item":`, ends: context.DeadlineExceeded}, "deadline"},
		"a page without a list":     {scan(""), service{status: 200, body: `{"Count":3}`}, "malformed_response"},
		"an empty page":             {query, service{status: 200, body: `{"Count":0,"Items":[],"LastEvaluatedKey":{"pk":{"S":"b"}}}`}, ""},
		"a page that does not move": {query, service{status: 200, body: `{"Count":0,"Items":[],"LastEvaluatedKey":{"pk":{"S":"a"}}}`}, "malformed_response"},
		"a scan that does not move": {scan(""), service{status: 200, body: `{"Count":0,"Items":[],"LastEvaluatedKey":{"pk":{"S":"a"}}}`}, "malformed_response"},
		"a null list":               {query, service{status: 200, body: `{"Count":0,"Items":null}`}, "malformed_response"},
		"a count":                   {count, service{status: 200, body: ` {"Count":3,"ConsumedCapacity":{"CapacityUnits":0.5}}`}, ""},
		"a scan without capacity":   {scan(types.SelectCount), service{status: 200, body: `{"Count":3}`}, "malformed_response"},
		"a batch of no items":       {batch, service{status: 200, body: `{"Responses":{"t":[],"u":[]},"UnprocessedKeys":{}}`}, ""},
		"XML":                       {listVersions, service{status: 200, body: "<ListVersionsResult/>"}, ""},
		"text":                      {listVersions, service{status: 200, body: "fine"}, "malformed_response"},
		"a redirection":             {listVersions, service{status: 300, body: "<Error><Code>Elsewhere</Code></Error>"}, "Elsewhere"},
		"deleted":                   {deleteObject, service{status: 204, body: ""}, ""},
		"stored":                    {putObject, service{status: 200, body: ""}, ""},
		"stored, another status":    {putObject, service{status: 204, body: ""}, "malformed_response"},
	} {
		err := c.call(t.Context(), config(c.service, calls.RefuseMalformed))
		if got := calls.Code(err); got != c.code {
			t.Errorf("%s: %v, code %q; want %q", name, err, got, c.code)
		}
	}
}

// If an item is deleted between two attempts, the output must not contain it.
func TestAFailedAttemptLeavesNothingInTheOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		responses := []service{{status: 200, body: `{"Item":{"pk":{"S":"a"},`}, {status: 200, body: "{}"}}
		c := retrying(calls.RefuseMalformed, func(r *http.Request) (*http.Response, error) {
			first := responses[0]
			responses = responses[1:]
			return first.Do(r)
		})
		item, err := calls.Get(t.Context(), dynamodb.NewFromConfig(c), "t", key)
		if err != nil || item != nil || len(responses) > 0 {
			t.Errorf("item %v, %v, %d responses are left", item, err, len(responses))
		}
	})
}

// After an attempt without an answer there is time for another one. The SDK does not retry
// its own deadline error.
func TestAnAttemptThatTakesTooLongIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := retrying(calls.BoundAttempts(time.Second), func(r *http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return service{status: 200, body: "{}"}.Do(r)
		})
		if err := getItem(t.Context(), c); err != nil || attempts != 2 {
			t.Errorf("%v after %d attempts", err, attempts)
		}
	})
}
