package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/calls"
)

// batch bounds the versions and markers of a page. With the newest marker, which may be from an
// earlier page, S3 deletes them in one call: 1000.
const batch = 999

// attempts bounds how often a purge tries what S3 refuses, as any call.
const attempts = 3

// errVisible ends a purge that must not continue.
var errVisible = errors.New("the current version can be read")

// purge removes every version and delete marker of the key, until a listing shows
// none. It deletes one listing before it reads the next: if it is interrupted, the next
// purge has less to do. The newest marker goes last, because an older version would
// become visible. It returns errVisible if a current version can be read. That version
// must be deleted on condition, because otherwise two callers could both report that they
// deleted it.
//
// If S3 refused to delete something, purge pauses, lists and deletes again: S3 was busy,
// or another caller has removed it. While S3 is busy, only the request's time ends that.
// Any other refusal ends it if it is the third attempt, or a later one, without progress.
func (d *deletion) purge(ctx context.Context) error {
	for inVain := 1; ; inVain++ {
		listed, err := d.list(ctx)
		if err != nil || len(listed.versions)+len(listed.markers) == 0 {
			return err
		}
		removed, err := d.removeListed(ctx, listed)
		if removed > 0 {
			d.found, inVain = true, 0
		}
		if err == nil {
			continue
		}
		refused, isRefused := errors.AsType[*refusal](err)
		if !isRefused || inVain >= attempts && !refused.busy || calls.Pause(ctx, inVain) != nil {
			return err
		}
	}
}

// removeListed deletes a listing, versions first, and returns how many it deleted. It keeps the
// newest marker if anything may be left. A *refusal does not stop it.
func (d *deletion) removeListed(ctx context.Context, listed listing) (int, error) {
	versions, err := removeBatch(ctx, d.s3, d.bucket, listed.versions)
	d.receipt.Versions += versions
	if err != nil && !isRefusal(err) {
		return versions, err
	}
	markers := listed.markers
	if listed.more || err != nil {
		markers = markers[min(1, len(markers)):]
	}
	n, markersErr := removeBatch(ctx, d.s3, d.bucket, markers)
	return versions + n, cmp.Or(markersErr, err)
}

// listing contains the versions and markers of a key, newest first.
type listing struct {
	versions []types.ObjectIdentifier // with bytes
	markers  []types.ObjectIdentifier
	more     bool // more versions may be stored
}

// list reads the versions of exactly this key, newest first. It stops after a page with
// anything to delete except the newest marker. It returns errVisible if the newest is
// not a delete marker.
func (d *deletion) list(ctx context.Context) (listing, error) {
	var listed listing
	for page, err := range versionPages(ctx, d.s3, d.bucket, d.key) {
		if err != nil {
			return listing{}, err
		}
		for _, v := range page.Versions {
			// The prefix also lists longer keys: file_1 is a prefix of file_10.
			if aws.ToString(v.Key) != d.key {
				continue
			}
			if aws.ToBool(v.IsLatest) {
				return listing{}, errVisible
			}
			listed.versions = append(listed.versions, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			if aws.ToString(m.Key) == d.key {
				listed.markers = append(listed.markers, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
			}
		}
		// Keys are listed in order: after a longer key no version of this key follows.
		listed.more = aws.ToBool(page.IsTruncated) && aws.ToString(page.NextKeyMarker) == d.key
		if !listed.more || len(listed.versions) > 0 || len(listed.markers) > 1 {
			break
		}
	}
	return listed, nil
}

// versionPages yields the listing of all versions with the prefix, page by page.
func versionPages(ctx context.Context, client s3.ListObjectVersionsAPIClient, bucket, prefix string) iter.Seq2[*s3.ListObjectVersionsOutput, error] {
	read := func(from marker) (*s3.ListObjectVersionsOutput, error) {
		return client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{
			Bucket: &bucket, Prefix: &prefix, MaxKeys: aws.Int32(batch), KeyMarker: from.key, VersionIdMarker: from.id,
		})
	}
	return pages(bucket, read, func(page *s3.ListObjectVersionsOutput) ending {
		return ending{page.Name, page.IsTruncated, marker{page.NextKeyMarker, page.NextVersionIdMarker}}
	})
}

// marker is the place after which a page of a listing begins. nil stands for the first page.
type marker struct{ key, id *string }

// ending is how a page names its bucket and the next page.
type ending struct {
	bucket    *string
	truncated *bool
	next      marker
}

// pages yields every page of a listing of the bucket. It ends after an error. The SDK's own
// paginators end without an error at a truncated page without a marker, and never end if the
// marker does not move.
func pages[P any](bucket string, read func(from marker) (P, error), endOf func(P) ending) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for from, more := (marker{}), true; more; {
			page, err := read(from)
			var end ending
			if err == nil {
				end = endOf(page)
				err = end.check(bucket, from)
			}
			if !yield(page, err) || err != nil {
				return
			}
			from, more = end.next, aws.ToBool(end.truncated)
		}
	}
}

// check refuses a response that is not a listing of the bucket. It also refuses a truncated
// one whose marker is missing, or is the one of the request.
func (e ending) check(bucket string, from marker) error {
	key, id := aws.ToString(e.next.key), aws.ToString(e.next.id)
	switch {
	case aws.ToString(e.bucket) != bucket:
		return errors.New("a response that is no listing of the bucket")
	case !aws.ToBool(e.truncated):
		return nil
	case key == "" || key == aws.ToString(from.key) && id == aws.ToString(from.id):
		return errors.New("a truncated listing without another marker")
	}
	return nil
}

// refusal means that S3 responded and did not delete some versions.
type refusal struct {
	refused, of int
	code        string // of the first
	busy        bool   // at least one may succeed next time
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%d of %d versions could not be deleted: %s", r.refused, r.of, r.code)
}

type versionDeleter interface {
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
}

// removeBatch deletes at most 1000 versions by id and returns how many. S3 responds 200 even
// if it deleted none, so unconfirmed versions are a *refusal.
func removeBatch(ctx context.Context, client versionDeleter, bucket string, versions []types.ObjectIdentifier) (int, error) {
	if len(versions) == 0 {
		return 0, nil
	}
	out, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &bucket,
		Delete: &types.Delete{Objects: versions},
	})
	if err != nil {
		return 0, err
	}
	r := &refusal{refused: len(versions) - len(out.Deleted), of: len(versions), code: "not confirmed"}
	if len(out.Errors) > 0 {
		r.code = aws.ToString(out.Errors[0].Code)
	}
	for _, e := range out.Errors {
		switch aws.ToString(e.Code) {
		case "SlowDown", "ServiceUnavailable", "InternalError":
			r.busy = true
		}
	}
	if r.refused > 0 {
		return len(out.Deleted), r
	}
	return len(out.Deleted), nil
}
