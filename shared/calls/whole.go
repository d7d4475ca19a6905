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

// bodiless are the calls whose response has no body, each with its status
// of success.
var bodiless = map[string]int{
	"DeleteObject": http.StatusNoContent,
	"PutObject":    http.StatusOK,
}

// Whole is an API option for SDK clients: it refuses an empty or malformed response
// of success. The SDK reads one without a body, and one of plain text from S3, as
// an output without members: an item that does not exist, an empty listing.
func Whole(stack *middleware.Stack) error {
	check := middleware.DeserializeMiddlewareFunc("RefuseMalformedResponse",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			response, ok := out.RawResponse.(*smithyhttp.Response)
			if err == nil && ok && response.StatusCode < http.StatusMultipleChoices && !isWhole(awsmiddleware.GetOperationName(ctx), response) {
				err = &smithy.DeserializationError{Err: errors.New("empty or malformed response")}
			}
			return out, metadata, err
		})
	return stack.Deserialize.Add(check, middleware.After)
}

// isWhole looks at the first byte of the body after white space, which S3 may
// send while it works: JSON objects and XML are all that services write.
func isWhole(operation string, response *smithyhttp.Response) bool {
	if status, ok := bodiless[operation]; ok {
		return response.StatusCode == status
	}
	first := []byte{' '}
	for bytes.Contains([]byte(" \t\r\n"), first) {
		if _, err := io.ReadFull(response.Body, first); err != nil {
			return false
		}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), response.Body), response.Body}
	return response.StatusCode == http.StatusOK && (first[0] == '{' || first[0] == '<')
}
