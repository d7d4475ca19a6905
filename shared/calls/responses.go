package calls

import (
	"bytes"
	"context"
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

// RefuseMalformed is an API option for SDK clients: it refuses malformed responses. It may be
// given to a client twice.
func RefuseMalformed(stack *middleware.Stack) error {
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

// keepInput lets the checks of a response see what was asked, and names a table that does not
// exist. A transaction and a batch name several tables: they stay unnamed.
func keepInput(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleInitialize(context.WithValue(ctx, inputKey{}, in.Parameters), in)
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		if table := reflect.Indirect(reflect.ValueOf(in.Parameters)).FieldByName("TableName"); table.IsValid() && !table.IsNil() {
			err = &missingTable{table.Elem().String(), err}
		}
	}
	return out, metadata, err
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
	if err == nil && lacksMember(ctx.Value(inputKey{}), out.Result) {
		err = errMalformed
	}
	return out, metadata, err
}

// refuseMalformedResponse looks at the bytes of the response.
func refuseMalformedResponse(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err == nil && ok && response.StatusCode < http.StatusMultipleChoices && !beginsWell(awsmiddleware.GetOperationName(ctx), response) {
		err = errMalformed
	}
	return out, metadata, err
}

// lacksMember reports whether a page lacks its list, a count or a write the capacity that it
// asked for, or a batch one of its tables, and whether a page is followed by itself: a paginator would read it for ever.
func lacksMember(input, output any) bool {
	switch out := output.(type) {
	case *dynamodb.QueryOutput:
		in, ok := input.(*dynamodb.QueryInput)
		return ok && !isPage(in.Select, out.Items, out.ConsumedCapacity) || ok && isSame(in.ExclusiveStartKey, out.LastEvaluatedKey)
	case *dynamodb.ScanOutput:
		in, ok := input.(*dynamodb.ScanInput)
		return ok && !isPage(in.Select, out.Items, out.ConsumedCapacity) || ok && isSame(in.ExclusiveStartKey, out.LastEvaluatedKey)
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
	case *dynamodb.PutItemOutput: // it has no member of its own: any object would pass for it
		in, ok := input.(*dynamodb.PutItemInput)
		return ok && in.ReturnConsumedCapacity != "" && !hasUnits(out.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		in, ok := input.(*dynamodb.TransactWriteItemsInput)
		return ok && in.ReturnConsumedCapacity != "" && (len(out.ConsumedCapacity) == 0 || !hasUnits(&out.ConsumedCapacity[0]))
	}
	return false
}

// isPage reports whether a page has its list, or a count its capacity. Only a call that asks
// for the capacity can count: the SDK reads a response without a number as 0, and DynamoDB
// sends no capacity without the number.
func isPage(asked types.Select, items []map[string]types.AttributeValue, capacity *types.ConsumedCapacity) bool {
	if asked == types.SelectCount {
		return hasUnits(capacity)
	}
	return items != nil
}

func isSame(from, next map[string]types.AttributeValue) bool {
	return next != nil && reflect.DeepEqual(from, next)
}

func hasUnits(capacity *types.ConsumedCapacity) bool {
	return capacity != nil && capacity.CapacityUnits != nil
}

// bodiless maps each call without a response body to its status of success.
var bodiless = map[string]int{
	"AbortMultipartUpload": http.StatusNoContent,
	"DeleteObject":         http.StatusNoContent,
	"PutObject":            http.StatusOK,
}

// beginsWell checks the status and the first byte of the body. S3 may send white space before
// it, while it works. Services write only JSON objects and XML.
func beginsWell(operation string, response *smithyhttp.Response) bool {
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
