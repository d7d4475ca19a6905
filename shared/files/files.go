// Package files deletes the files of workspaces for good. A file is the S3 object
// files/<workspace id>/<file id> and nothing else, so no second store can disagree.
// Ownership is part of the key: another workspace's file is not found.
//
// It keeps two promises. After a successful Delete no version of the object's bytes is
// left, whether the bucket's versioning is off, on or suspended. If a Delete fails, or
// its process dies, the next Delete of the same file finishes it; until then the file
// cannot be read by its key.
package files

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// ErrNotFound means that the workspace has no such file: there is neither a version nor
// a delete marker.
var ErrNotFound = errors.New("no such file")

// rounds bounds how often a Delete starts over because somebody wrote the file again.
const rounds = 10

type deleter interface {
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	versionDeleter
	s3.ListObjectVersionsAPIClient
}

// Store is the bucket with the files of all workspaces.
type Store struct {
	s3     deleter
	bucket string
}

// NewStore deletes files in the bucket.
func NewStore(client deleter, bucket string) *Store {
	return &Store{s3: client, bucket: bucket}
}

// Receipt is the evidence of a deletion.
type Receipt struct {
	// Versions is how many versions of the file's bytes this call removed. If
	// versioning is suspended, a version that the delete marker replaced is not
	// counted.
	Versions int
	// ResponseLost means that an attempt of this call may have been applied and its
	// response lost. If the error is ErrNotFound, the file may have existed.
	ResponseLost bool
}

// Key is the key of a workspace's file in the bucket.
func Key(w ids.Workspace, f ids.File) string {
	return "files/" + string(w) + "/" + string(f)
}

// Delete removes every version of the workspace's file. It returns ErrNotFound if there
// was none. If several calls run at once on an unversioned bucket, and S3 answers them
// all, exactly one returns nil. After any other error some hidden versions may be left,
// and the next Delete continues. A file with too many versions needs several calls. The
// receipt counts the versions that this call removed, also with an error.
func (s *Store) Delete(ctx context.Context, w ids.Workspace, f ids.File) (Receipt, error) {
	d := deletion{Store: s, key: Key(w, f)}
	for range rounds {
		erased, err := d.hide(ctx)
		if err != nil {
			return d.receipt, fmt.Errorf("deleting a file: %w", err)
		}
		if erased {
			d.receipt.Versions++
			return d.receipt, nil
		}
		err = d.purge(ctx)
		switch {
		case errors.Is(err, errVisible):
			continue // written again since: hide it first
		case err != nil:
			return d.receipt, fmt.Errorf("purging the versions of a file: %w", err)
		case !d.found:
			return d.receipt, ErrNotFound
		default:
			return d.receipt, nil
		}
	}
	return d.receipt, errors.New("deleting a file: it was written again during each attempt")
}

// deletion is one call of Delete.
type deletion struct {
	*Store
	key     string
	found   bool // it has hidden or removed a version or a delete marker
	receipt Receipt
}

// hide deletes the current version on condition that there is one; S3 lets one caller
// win. On an unversioned bucket the bytes are then gone, and hide returns true; on any
// other a delete marker hides them. S3 reports this in headers only: a response without
// these headers proves nothing.
func (d *deletion) hide(ctx context.Context) (erased bool, err error) {
	for attempt := 1; ; attempt++ {
		out, err := d.s3.DeleteObject(ctx, &s3.DeleteObjectInput{
			Bucket: &d.bucket, Key: &d.key,
			IfMatch: aws.String("*"),
		}, d.noteRepeats)
		switch calls.Code(err) {
		case "":
			d.found = true
			_, fromS3 := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
			return fromS3 && out.VersionId == nil && !aws.ToBool(out.DeleteMarker), nil
		case "NoSuchKey", "PreconditionFailed":
			return false, nil
		case "ConditionalRequestConflict", "OperationAborted":
			// S3 saw another write or delete at the same time and applied nothing.
			if err := calls.Pause(ctx, attempt); err != nil {
				return false, err
			}
		default:
			return false, err
		}
	}
}

// noteRepeats sets ResponseLost if the SDK retries: the first attempt may have been
// applied. With a 503 S3 says that it was not.
func (d *deletion) noteRepeats(o *s3.Options) {
	o.Retryer = calls.DecideRetries(o.Retryer, func(err error, again bool) bool {
		response, answered := errors.AsType[*awshttp.ResponseError](err)
		refused := answered && response.HTTPStatusCode() == http.StatusServiceUnavailable
		d.receipt.ResponseLost = d.receipt.ResponseLost || again && !refused
		return again
	})
}
