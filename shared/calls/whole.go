package calls

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// bodiless are the calls that are answered without a body, each with its status
// of success.
var bodiless = map[string]int{
	"DeleteObject": http.StatusNoContent,
	"PutObject":    http.StatusOK,
}

// Whole is an API option for SDK clients: it refuses an answer of success that
// the service never gives. The SDK reads one without a body, and of S3 one of
// plain text, as an output without members: an item that does not exist, a
// listing that shows nothing.
func Whole(stack *middleware.Stack) error {
	check := middleware.DeserializeMiddlewareFunc("RefuseHollowAnswer",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			answer, ok := out.RawResponse.(*smithyhttp.Response)
			if err == nil && ok && answer.StatusCode < http.StatusMultipleChoices && !isWhole(awsmiddleware.GetOperationName(ctx), answer) {
				err = &smithy.DeserializationError{Err: errors.New("an answer that the service does not give")}
			}
			return out, metadata, err
		})
	return stack.Deserialize.Add(check, middleware.After)
}

// isWhole looks at the first byte of the body after white space, which S3 may
// send while it works: JSON objects and XML are all that services write.
func isWhole(operation string, answer *smithyhttp.Response) bool {
	if status, ok := bodiless[operation]; ok {
		return answer.StatusCode == status
	}
	first := []byte{' '}
	for bytes.Contains([]byte(" \t\r\n"), first) {
		if _, err := io.ReadFull(answer.Body, first); err != nil {
			return false
		}
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), answer.Body), answer.Body}
	return answer.StatusCode == http.StatusOK && (first[0] == '{' || first[0] == '<')
}
