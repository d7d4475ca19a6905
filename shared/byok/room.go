package byok

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

// A router reads every credential of a workspace for each request, in one page of a Query,
// so a workspace has a bound. A deployment may choose a lower number.
const (
	// MaxStored is how many credentials a workspace holds at most, disabled ones
	// included.
	MaxStored = 100
	// MaxBytes is how many bytes they take at most. That is less than the 1,048,576 of a
	// page, because creates at the same time may together pass the bound.
	MaxBytes = 700_000
)

// ErrTooMany means that the credentials of a workspace do not fit into one page of a Query,
// 1 MB: a router refuses the workspace until the operator has deleted some.
var ErrTooMany = errors.New("the workspace's credentials take more than the 1 MB that a router reads at once")

const (
	// rowBytes bounds the bytes of a row without its settings: the names of attributes,
	// ids, the label and the wrapped data key.
	rowBytes = 1024
	// numberBytes is how many bytes a number takes, at most.
	numberBytes = 21
)

// Size is the most bytes that the credential takes in storage. It counts every field of
// Settings, also one that is added later.
func (n New) Size() int64 {
	size := rowBytes + len(n.Key.Reveal())
	for _, setting := range n.ByName() {
		size += bytesOf(reflect.ValueOf(setting))
	}
	return int64(size)
}

// bytesOf is the most bytes that a value takes in storage.
func bytesOf(value reflect.Value) int {
	switch kind := value.Kind(); {
	case kind == reflect.String:
		return value.Len()
	case kind == reflect.Pointer && !value.IsNil():
		return bytesOf(value.Elem())
	case kind == reflect.Slice:
		size := 0
		for _, element := range value.Seq2() {
			size += 1 + bytesOf(element)
		}
		return size
	case kind == reflect.Pointer || kind == reflect.Bool: // nil, or a flag
		return 1
	default:
		return numberBytes
	}
}

// readUnit is how many bytes DynamoDB reads for one unit of capacity.
const readUnit = 4096

// HasRoom reports whether the workspace has room for one more credential of that size, if
// it may hold that many. DynamoDB counts them: no attribute is read.
func (s *Store) HasRoom(ctx context.Context, w ids.Workspace, most, size int64) (bool, error) {
	page, err := count(ctx, s.db, s.credentials, w)
	if err != nil {
		return false, err
	}
	bytes := int64(aws.ToFloat64(page.ConsumedCapacity.CapacityUnits) * readUnit)
	// More than a page is more than MaxBytes, whatever capacity the page names.
	return page.LastEvaluatedKey == nil && int64(page.Count) < most && bytes+size <= MaxBytes, nil
}

// count counts the credentials of a workspace in one page, strongly consistent.
func count(ctx context.Context, db dynamodb.QueryAPIClient, table string, w ids.Workspace) (*dynamodb.QueryOutput, error) {
	in := queryOf(table, w)
	in.Select, in.ReturnConsumedCapacity = types.SelectCount, types.ReturnConsumedCapacityTotal
	page, err := db.Query(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("counting credentials: %w", err)
	}
	return page, nil
}
