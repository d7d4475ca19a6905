package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// errMalformed refuses an empty or malformed response of success. The SDK reads such a
// response as an output without members: a missing item, an empty listing, the empty end of
// a table. The service writes every member that is checked here, even if it is empty or
// zero.
var errMalformed = &smithy.DeserializationError{Err: errors.New("empty or malformed response")}

// Whole is an API option for SDK clients: it refuses malformed responses. It may be given to
// a client twice.
func Whole(stack *middleware.Stack) error {
	const id = "RefuseMalformedResponse"
	if _, present := stack.Deserialize.Get(id); present {
		return nil
	}
	return errors.Join(
		stack.Initialize.Add(middleware.InitializeMiddlewareFunc("KeepInput", keepInput), middleware.Before),
		stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("ForgetFailedAttempt", forgetFailedAttempt), middleware.Before),
		stack.Deserialize.Insert(middleware.DeserializeMiddlewareFunc("RefuseIncompleteOutput", refuseIncompleteOutput), "OperationDeserializer", middleware.Before),
		stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc(id, refuseMalformedResponse), middleware.After))
}

type inputKey struct{}

// keepInput lets the checks of a response see what was asked.
func keepInput(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	return next.HandleInitialize(context.WithValue(ctx, inputKey{}, in.Parameters), in)
}

// forgetFailedAttempt empties the output after a failed attempt. The SDK decodes all attempts
// into one output, so a member of a response that was cut off could stay.
func forgetFailedAttempt(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	if output := reflect.ValueOf(out.Result); err != nil && output.Kind() == reflect.Pointer && !output.IsNil() {
		output.Elem().SetZero()
	}
	return out, metadata, err
}

// refuseIncompleteOutput looks for members that the SDK has decoded.
func refuseIncompleteOutput(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	if err == nil && isIncomplete(ctx.Value(inputKey{}), out.Result) {
		err = errMalformed
	}
	return out, metadata, err
}

// refuseMalformedResponse looks at the bytes of the response.
func refuseMalformedResponse(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || response.StatusCode >= http.StatusMultipleChoices {
		return out, metadata, err
	}
	if !isComplete(awsmiddleware.GetOperationName(ctx), response) || counts(ctx.Value(inputKey{})) && !hasCount(response) {
		err = errMalformed
	}
	return out, metadata, err
}

// counts reports whether the call asks DynamoDB only for a number of items.
func counts(input any) bool {
	switch in := input.(type) {
	case *dynamodb.QueryInput:
		return in.Select == types.SelectCount
	case *dynamodb.ScanInput:
		return in.Select == types.SelectCount
	}
	return false
}

// isIncomplete reports whether a page lacks its list, a count the capacity that was asked
// for, or a batch one of its tables.
func isIncomplete(input, output any) bool {
	switch out := output.(type) {
	case *dynamodb.QueryOutput:
		if in, ok := input.(*dynamodb.QueryInput); ok && counts(in) {
			return in.ReturnConsumedCapacity == types.ReturnConsumedCapacityTotal && (out.ConsumedCapacity == nil || out.ConsumedCapacity.CapacityUnits == nil)
		}
		return out.Items == nil
	case *dynamodb.ScanOutput:
		return out.Items == nil && !counts(input)
	case *dynamodb.BatchGetItemOutput:
		in, ok := input.(*dynamodb.BatchGetItemInput)
		if !ok {
			return false
		}
		for table := range in.RequestItems {
			_, answered := out.Responses[table]
			if _, left := out.UnprocessedKeys[table]; !answered && !left {
				return true
			}
		}
	}
	return false
}

// bodiless maps each call without a response body to its status of success.
var bodiless = map[string]int{
	"AbortMultipartUpload": http.StatusNoContent,
	"DeleteObject":         http.StatusNoContent,
	"PutObject":            http.StatusOK,
}

// hasCount looks for the number in the body, because the SDK's output has 0 without one. If
// the body cannot be read, the SDK meets the same error.
func hasCount(response *smithyhttp.Response) bool {
	body, err := io.ReadAll(response.Body)
	replaceBody(response, body)
	var page struct{ Count *int64 }
	return err != nil || json.Unmarshal(body, &page) == nil && page.Count != nil
}

// replaceBody puts bytes that were read back before the rest of the body.
func replaceBody(response *smithyhttp.Response, read []byte) {
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), response.Body), response.Body}
}

// isComplete looks at the first byte of the body after white space, which S3 may send
// while it works. Services write only JSON objects and XML.
func isComplete(operation string, response *smithyhttp.Response) bool {
	if status, ok := bodiless[operation]; ok {
		return response.StatusCode == status
	}
	first := []byte{' '}
	for bytes.Contains([]byte(" \t\r\n"), first) {
		if _, err := io.ReadFull(response.Body, first); err != nil {
			return false
		}
	}
	replaceBody(response, first)
	return response.StatusCode == http.StatusOK && (first[0] == '{' || first[0] == '<')
}
