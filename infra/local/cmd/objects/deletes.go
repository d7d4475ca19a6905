package main

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/oklog/ulid/v2"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// deletes is a backend that deletes like S3. versitygw 1.8.0 differs:
//
//   - If-Match: * deletes the object if it exists, otherwise the answer is 412. If many
//     deletes come at once, one succeeds. versitygw answers 412 for an object that
//     exists and 204 for one that does not, and every delete succeeds.
//   - Deleting a version that is gone succeeds. versitygw calls its id
//     invalid (versity/versitygw#1758).
//   - Deletes of one key come one after the other. versitygw moves versions
//     in several steps without a lock.
type deletes struct {
	backend.Backend
	locks [256]sync.Mutex
	seed  maphash.Seed
}

func (d *deletes) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	lock := d.lockOf(aws.ToString(in.Bucket) + "/" + aws.ToString(in.Key))
	lock.Lock()
	defer lock.Unlock()
	if aws.ToString(in.IfMatch) == "*" {
		if err := d.exists(ctx, in); err != nil {
			return nil, err
		}
		unconditional := *in
		unconditional.IfMatch = nil
		in = &unconditional
	}
	out, err := d.Backend.DeleteObject(ctx, in)
	if isGone(err, aws.ToString(in.VersionId)) {
		return &s3.DeleteObjectOutput{VersionId: in.VersionId}, nil
	}
	return out, err
}

// exists fails the condition if there is no object, or its current version is a delete
// marker.
func (d *deletes) exists(ctx context.Context, in *s3.DeleteObjectInput) error {
	_, err := d.HeadObject(ctx, &s3.HeadObjectInput{Bucket: in.Bucket, Key: in.Key})
	if errors.Is(err, s3err.GetAPIError(s3err.ErrNoSuchKey)) {
		return s3err.GetAPIError(s3err.ErrPreconditionFailed)
	}
	return err
}

// isGone reports whether an error is about the id of a version that is gone. An error
// about a malformed id is another.
func isGone(err error, version string) bool {
	if _, invalid := errors.AsType[s3err.InvalidArgumentError](err); !invalid {
		return false
	}
	_, malformed := ulid.Parse(version)
	return version == "null" || malformed == nil
}

func (d *deletes) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (s3response.DeleteResult, error) {
	var result s3response.DeleteResult
	for _, object := range in.Delete.Objects {
		out, err := d.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: in.Bucket, Key: object.Key, VersionId: object.VersionId})
		if err != nil {
			result.Error = append(result.Error, s3err.ObjectDeleteError(object.Key, object.VersionId, err))
			continue
		}
		deleted := types.DeletedObject{Key: object.Key, VersionId: object.VersionId, DeleteMarker: out.DeleteMarker}
		if aws.ToBool(out.DeleteMarker) {
			deleted.DeleteMarkerVersionId = out.VersionId
		}
		result.Deleted = append(result.Deleted, deleted)
	}
	return result, nil
}

// lockOf is the lock of a key, shared with a few others.
func (d *deletes) lockOf(key string) *sync.Mutex {
	return &d.locks[maphash.String(d.seed, key)%uint64(len(d.locks))]
}
