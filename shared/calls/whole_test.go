package calls_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/shared/calls"
)

// service is an HTTP client that returns one response; with status 0 it is out of reach.
type service struct {
	status int
	body   string
	ends   error // after the body, where it is not its end
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

func getItem(ctx context.Context, c aws.Config) error {
	_, err := dynamodb.NewFromConfig(c).GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	})
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

// Only a success that the service gives is accepted; an error is unchanged.
func TestWhole(t *testing.T) {
	for name, c := range map[string]struct {
		call    func(context.Context, aws.Config) error
		service service
		code    string
	}{
		"an object":                 {getItem, service{status: 200, body: "{}"}, ""},
		"an object after a pause":   {getItem, service{status: 200, body: " \t\r\n{}"}, ""},
		"nothing":                   {getItem, service{status: 200, body: ""}, "malformed_response"},
		"white space":               {getItem, service{status: 200, body: " \n"}, "malformed_response"},
		"null":                      {getItem, service{status: 200, body: "null"}, "malformed_response"},
		"another status of success": {getItem, service{status: 202, body: "{}"}, "malformed_response"},
		"an error":                  {getItem, service{status: 400, body: `{"__type":"ValidationException"}`}, "ValidationException"},
		"out of reach":              {getItem, service{}, "connection"},
		"out of time":               {getItem, service{status: 200, body: `{"Item":`, ends: context.DeadlineExceeded}, "deadline"},
		"XML":                       {listVersions, service{status: 200, body: "<ListVersionsResult/>"}, ""},
		"text":                      {listVersions, service{status: 200, body: "fine"}, "malformed_response"},
		"a redirection":             {listVersions, service{status: 300, body: "<Error><Code>Elsewhere</Code></Error>"}, "Elsewhere"},
		"deleted":                   {deleteObject, service{status: 204, body: ""}, ""},
		"deleted, another status":   {deleteObject, service{status: 200, body: ""}, "malformed_response"},
		"stored":                    {putObject, service{status: 200, body: ""}, ""},
		"stored, another status":    {putObject, service{status: 204, body: ""}, "malformed_response"},
	} {
		err := c.call(t.Context(), config(c.service, calls.Whole))
		if got := calls.Code(err); err == nil && c.code != "" || err != nil && got != c.code {
			t.Errorf("%s: %v, code %q; want %q", name, err, got, c.code)
		}
		if c.service.status == 0 && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: the cause is lost: %v", name, err)
		}
	}
}

func TestCallsOfARequestAreCounted(t *testing.T) {
	c := config(service{status: 200, body: "{}"}, calls.Counted)
	call := func(ctx context.Context) {
		if err := getItem(ctx, c); err != nil {
			t.Error(err)
		}
	}
	ctx, count := calls.Start(t.Context())
	call(ctx)
	calls.Together(ctx, call, call)
	call(t.Context()) // not counted
	if count.Made() != 3 {
		t.Errorf("%d calls, want 3", count.Made())
	}
}
