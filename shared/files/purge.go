package files

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// batch is how many versions S3 deletes in one call, and lists in one page.
const batch = 1000

// purge removes every version and delete marker of the key, until a listing
// shows none. Bytes go first and markers last, the newest of them at the very
// end: whatever interrupts it, no older version comes to light. It stops at
// visible where a current version can be read: that one must be deleted on
// condition, or two callers could both believe they deleted it.
func (d *deletion) purge(ctx context.Context) (state, error) {
	for {
		markers, err := d.purgeVersions(ctx)
		if errors.Is(err, errVisible) {
			return visible, nil
		}
		if err != nil {
			return absent, err
		}
		if len(markers) == 0 {
			return absent, nil
		}
		slices.Reverse(markers) // listed newest first
		for part := range slices.Chunk(markers, batch) {
			if err := d.remove(ctx, part); err != nil {
				return absent, err
			}
		}
	}
}

// errVisible ends a purge that must not go on.
var errVisible = errors.New("the current version can be read")

// purgeVersions walks through the versions of the key, removes those with bytes
// and returns the delete markers, newest first.
func (d *deletion) purgeVersions(ctx context.Context) (markers []types.ObjectIdentifier, err error) {
	in := &s3.ListObjectVersionsInput{Bucket: &d.bucket, Prefix: &d.key, MaxKeys: aws.Int32(batch)}
	for {
		page, err := d.s3.ListObjectVersions(ctx, in)
		if err != nil {
			return nil, err
		}
		var versions []types.ObjectIdentifier
		for _, v := range page.Versions {
			// The prefix also lists longer keys: file_1 is a prefix of file_10.
			if aws.ToString(v.Key) != d.key {
				continue
			}
			if aws.ToBool(v.IsLatest) {
				return nil, errVisible
			}
			versions = append(versions, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			if aws.ToString(m.Key) == d.key {
				markers = append(markers, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
			}
		}
		if len(versions) > 0 {
			if err := d.remove(ctx, versions); err != nil {
				return nil, err
			}
			d.receipt.Versions += len(versions)
		}
		// Keys are listed in order, so nothing of ours follows a longer key.
		if !aws.ToBool(page.IsTruncated) || aws.ToString(page.NextKeyMarker) != d.key {
			return markers, nil
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}

// remove deletes these versions of the file.
func (d *deletion) remove(ctx context.Context, versions []types.ObjectIdentifier) error {
	if err := remove(ctx, d.s3, d.bucket, versions); err != nil {
		return err
	}
	d.removed = true
	return nil
}

type versionDeleter interface {
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
}

// remove deletes these versions. S3 answers 200 even where it could not: what
// it says of each counts.
func remove(ctx context.Context, client versionDeleter, bucket string, versions []types.ObjectIdentifier) error {
	out, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &bucket,
		Delete: &types.Delete{Objects: versions, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return err
	}
	if len(out.Errors) > 0 {
		return fmt.Errorf("%d of %d versions could not be deleted: %s",
			len(out.Errors), len(versions), aws.ToString(out.Errors[0].Code))
	}
	return nil
}
