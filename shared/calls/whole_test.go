package calls_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/shared/calls"
)

// service answers every request alike; with status 0 it cannot be reached.
type service struct {
	status int
	body   string
}

func (s service) Do(r *http.Request) (*http.Response, error) {
	if s.status == 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return &http.Response{
		StatusCode: s.status, Request: r, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(s.body)), ContentLength: int64(len(s.body)),
	}, nil
}

func getItem(c aws.Config) error {
	_, err := dynamodb.NewFromConfig(c).GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	})
	return err
}

func deleteObject(c aws.Config) error {
	_, err := s3.NewFromConfig(c).DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	return err
}

func putObject(c aws.Config) error {
	_, err := s3.NewFromConfig(c).PutObject(context.Background(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	return err
}

func listVersions(c aws.Config) error {
	_, err := s3.NewFromConfig(c).ListObjectVersions(context.Background(), &s3.ListObjectVersionsInput{Bucket: aws.String("b")})
	return err
}

// Only a success that the service gives is taken for one; an error stays what
// it is.
func TestWhole(t *testing.T) {
	for name, c := range map[string]struct {
		call    func(aws.Config) error
		service service
		code    string
	}{
		"an object":                 {getItem, service{200, "{}"}, ""},
		"an object after a pause":   {getItem, service{200, " \t\r\n{}"}, ""},
		"nothing":                   {getItem, service{200, ""}, "malformed_answer"},
		"white space":               {getItem, service{200, " \n"}, "malformed_answer"},
		"null":                      {getItem, service{200, "null"}, "malformed_answer"},
		"another status of success": {getItem, service{202, "{}"}, "malformed_answer"},
		"an error":                  {getItem, service{400, `{"__type":"ValidationException"}`}, "ValidationException"},
		"out of reach":              {getItem, service{}, "connection"},
		"XML":                       {listVersions, service{200, "<ListVersionsResult/>"}, ""},
		"text":                      {listVersions, service{200, "fine"}, "malformed_answer"},
		"a redirection":             {listVersions, service{300, "<Error><Code>Elsewhere</Code></Error>"}, "Elsewhere"},
		"deleted":                   {deleteObject, service{204, ""}, ""},
		"deleted, another status":   {deleteObject, service{200, ""}, "malformed_answer"},
		"stored":                    {putObject, service{200, ""}, ""},
		"stored, another status":    {putObject, service{204, ""}, "malformed_answer"},
	} {
		err := c.call(aws.Config{
			Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
			HTTPClient: c.service, RetryMaxAttempts: 1, APIOptions: []func(*middleware.Stack) error{calls.Whole},
		})
		if got := calls.Code(err); err == nil && c.code != "" || err != nil && got != c.code {
			t.Errorf("%s: %v, code %q; want %q", name, err, got, c.code)
		}
	}
}
