package byok

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

// Bound is what a workspace holds at most. It has one, because a router reads every
// credential of a workspace for each request, in one page of a Query.
//
// The workspace's row counts what it ever gave out, in the write that gives out a position.
// As long as that is within the bound, there is room, and nothing more is asked. Beyond it
// CheckRoom counts what is stored, because some may be deleted, or were never stored. It counts
// after the position was given out, so nobody can have another account's workspace counted.
// Creates at the same time may pass the bound by as many as are under way.
type Bound struct{ Credentials, Bytes int64 }

// The largest bound. A deployment may choose a lower number of credentials.
const (
	// MaxStored counts disabled credentials too.
	MaxStored = 100
	// MaxBytes is less than the 1,048,576 of a page, because creates at the same time may
	// together pass the bound.
	MaxBytes = 700_000
)

// Covers reports whether so many credentials of so many bytes are within the bound.
func (b Bound) Covers(credentials, bytes int64) bool {
	return credentials <= b.Credentials && bytes <= b.Bytes
}

// ErrFull means that the workspace has no room for one more credential.
var ErrFull = errors.New("the workspace is full")

// ErrTooMany means that the credentials of a workspace do not fit into one page of a Query,
// 1 MB: a router refuses the workspace until the operator has deleted some.
var ErrTooMany = errors.New("the workspace's credentials take more than the 1 MB that a router reads at once")

// rowBytes bounds the bytes of a row without its texts: the names of attributes, ids, flags,
// numbers, the label and the wrapped data key.
const rowBytes = 1024

// Size is the most bytes that the credential takes in storage.
func (n New) Size() int64 {
	size := rowBytes + len(n.Key.Reveal()) + len(n.Provider) + len(n.Name)
	return int64(size + listBytes(n.AllowedAPIKeyHashes) + listBytes(n.AllowedModels) + listBytes(n.AllowedUserIDs))
}

func listBytes[T ~string](list []T) (size int) {
	for _, element := range list {
		size += 1 + len(element)
	}
	return size
}

// readUnit is how many bytes DynamoDB reads for one unit of capacity.
const readUnit = 4096

// CheckRoom returns ErrFull if the workspace has no room for one more credential of that
// size. DynamoDB counts those that are stored: no attribute is read.
func (s *Store) CheckRoom(ctx context.Context, w ids.Workspace, b Bound, size int64) error {
	page, err := count(ctx, s.db, s.credentials, w)
	if err != nil {
		return err
	}
	bytes := int64(aws.ToFloat64(page.ConsumedCapacity.CapacityUnits) * readUnit)
	// More than a page is beyond every bound, whatever capacity the page names.
	if page.LastEvaluatedKey != nil || !b.Covers(int64(page.Count)+1, bytes+size) {
		return ErrFull
	}
	return nil
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
