package boot

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"signalbox.dev/shared/calls"
)

// whole is an API option that refuses a 200 without a body. The SDK reads one as
// an output without members: an item that does not exist, a listing that shows
// nothing. No service that functions call ever answers so.
func whole(stack *middleware.Stack) error {
	check := middleware.DeserializeMiddlewareFunc("RefuseEmptyAnswer",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			answer, ok := out.RawResponse.(*smithyhttp.Response)
			if err == nil && ok && answer.StatusCode == http.StatusOK && isEmpty(answer) {
				err = &smithy.DeserializationError{Err: errors.New("an answer without a body")}
			}
			return out, metadata, err
		})
	return stack.Deserialize.Add(check, middleware.After)
}

// isEmpty looks at the first byte of the body where its length is not told.
func isEmpty(answer *smithyhttp.Response) bool {
	if answer.ContentLength >= 0 {
		return answer.ContentLength == 0
	}
	peeked := bufio.NewReader(answer.Body)
	_, err := peeked.Peek(1)
	answer.Body = struct {
		io.Reader
		io.Closer
	}{peeked, answer.Body}
	return errors.Is(err, io.EOF)
}

// malformed has the SDK make a call again whose answer could not be read, which
// it does not do by itself. Every call of the functions may be made twice.
func malformed(err error) aws.Ternary {
	if calls.IsMalformed(err) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}
