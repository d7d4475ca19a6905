package awsmodel_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
)

// bucket is a bucket of the model or of an engine.
type bucket struct {
	testing.TB
	*s3.Client
	name *string
	ids  map[string]string // of versions, numbered in the order of their appearance
}

// version names a version. Both sides see their versions in the same order.
func (b bucket) version(id *string) string {
	if id == nil || *id == "null" {
		return aws.ToString(id)
	}
	if b.ids[*id] == "" {
		b.ids[*id] = fmt.Sprintf("version %d", len(b.ids)+1)
	}
	return b.ids[*id]
}

// failure is a response with an error.
func failure(err error) object {
	if known, ok := errors.AsType[smithy.APIError](err); ok {
		return object{"__type": known.ErrorCode()}
	}
	return object{"__type": err.Error()}
}

// pick returns the identifiers of some of all versions, which both sides list in the
// same order.
func (b bucket) pick(numbers []int) (picked []types.ObjectIdentifier) {
	_, all := b.list("", 1000)
	for _, n := range numbers {
		if n < len(all) {
			picked = append(picked, all[n])
		}
	}
	return picked
}

func (b bucket) put(key, content string, condition *string) object {
	out, err := b.PutObject(b.Context(), &s3.PutObjectInput{
		Bucket: b.name, Key: &key, Body: strings.NewReader(content), ContentType: aws.String("text/plain"), IfNoneMatch: condition,
	})
	if err != nil {
		return failure(err)
	}
	return object{"version": b.version(out.VersionId), "stored": true}
}

// remove deletes the current version, on condition that there is one or not.
func (b bucket) remove(key string, condition *string) object {
	out, err := b.DeleteObject(b.Context(), &s3.DeleteObjectInput{Bucket: b.name, Key: &key, IfMatch: condition})
	if err != nil {
		return failure(err)
	}
	return object{"version": b.version(out.VersionId), "marker": aws.ToBool(out.DeleteMarker)}
}

// removeThese deletes versions twice: the second time they are absent.
func (b bucket) removeThese(picked []types.ObjectIdentifier) object {
	if len(picked) == 0 {
		return nil
	}
	both := object{}
	for _, time := range []string{"first", "second"} {
		out, err := b.DeleteObjects(b.Context(), &s3.DeleteObjectsInput{Bucket: b.name, Delete: &types.Delete{Objects: picked}})
		if err != nil {
			return failure(err)
		}
		var deleted []string
		for _, d := range out.Deleted {
			deleted = append(deleted, fmt.Sprintf("%s %s, marker %t %s", *d.Key, b.version(d.VersionId), aws.ToBool(d.DeleteMarker), b.version(d.DeleteMarkerVersionId)))
		}
		slices.Sort(deleted)
		both[time] = object{"deleted": deleted, "errors": len(out.Errors)}
	}
	return both
}

// list lists all versions under a prefix in pages of a size, in the order of the service.
func (b bucket) list(prefix string, limit int32) (out object, found []types.ObjectIdentifier) {
	var entries []string
	in := &s3.ListObjectVersionsInput{Bucket: b.name, Prefix: &prefix, MaxKeys: &limit}
	for {
		page, err := b.ListObjectVersions(b.Context(), in)
		if err != nil {
			return failure(err), nil
		}
		for _, v := range page.Versions {
			entries = append(entries, fmt.Sprintf("%s %s, latest %t, %d bytes", *v.Key, b.version(v.VersionId), *v.IsLatest, *v.Size))
			found = append(found, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			entries = append(entries, fmt.Sprintf("%s %s, latest %t, marker", *m.Key, b.version(m.VersionId), *m.IsLatest))
			found = append(found, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if *page.Name != *b.name {
			b.Fatalf("a listing of bucket %s", *page.Name)
		}
		if !aws.ToBool(page.IsTruncated) {
			return object{"entries": entries}, found
		}
		next := fmt.Sprintf("next after %s %s", *page.NextKeyMarker, b.version(page.NextVersionIdMarker))
		if slices.Contains(entries, next) {
			return object{"entries": entries, "repeats": true}, found
		}
		entries = append(entries, next)
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}

// draw generates one request to a bucket. It can be made several times.
func draw(t *rapid.T) (name string, make func(bucket) object) {
	key := oneOf(t, "files/w1/file_1", "files/w1/file_10", "files/w2/file_1")
	prefix := oneOf(t, key, "files/w1/", "")
	condition := oneOf(t, nil, aws.String("*"))
	limit := oneOf(t, int32(1), 2, 3, 1000)
	numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 4, rapid.ID).Draw(t, "numbers")
	content := oneOf(t, "", "a", "bytes")
	switch kind := oneOf(t, "put", "put", "remove", "remove", "remove versions", "list versions"); kind {
	case "put":
		return fmt.Sprintf("put %s if none match %v", key, aws.ToString(condition)), func(b bucket) object { return b.put(key, content, condition) }
	case "remove":
		return fmt.Sprintf("delete %s if match %v", key, aws.ToString(condition)), func(b bucket) object { return b.remove(key, condition) }
	case "remove versions":
		return fmt.Sprintf("delete versions %v", numbers), func(b bucket) object { return b.removeThese(b.pick(numbers)) }
	default:
		return fmt.Sprintf("list versions of %q by %d", prefix, limit), func(b bucket) object {
			out, _ := b.list(prefix, limit)
			return out
		}
	}
}

// No engine divides the versions of a key into pages like AWS. The versions of a page may
// be removed before the next page is requested.
func TestVersionsArePaged(t *testing.T) {
	for limit := int32(1); limit < 20; limit++ {
		w := awsmodel.New(awsmodel.Config{Bucket: "bucket", Versioning: "Enabled"})
		b := modelBucket(t, w, "bucket")
		for range 3 {
			for _, key := range []string{"files/1", "files/10", "files/2"} {
				b.put(key, "", nil)
				b.remove(key, aws.String("*"))
			}
		}
		pages := s3.NewListObjectVersionsPaginator(b.Client, &s3.ListObjectVersionsInput{Bucket: b.name, MaxKeys: &limit})
		listed := map[string]bool{}
		for pages.HasMorePages() {
			whole := min(18, len(listed)+int(limit))
			page, err := pages.NextPage(t.Context())
			kit.Must(t, err)
			for _, v := range page.Versions {
				listed[*v.VersionId] = true
				if limit%2 == 0 {
					b.removeThese([]types.ObjectIdentifier{{Key: v.Key, VersionId: v.VersionId}})
				}
			}
			for _, m := range page.DeleteMarkers {
				listed[*m.VersionId] = true
			}
			if len(listed) != whole || pages.HasMorePages() != (whole < 18) {
				t.Fatalf("by %d: %d of %d are listed, more follow: %t", limit, len(listed), whole, pages.HasMorePages())
			}
		}
	}
}

// modelBucket is the bucket of a World.
func modelBucket(t testing.TB, w *awsmodel.World, name string) bucket {
	return bucket{t, s3.New(s3.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		HTTPClient: client{w},
	}), &name, map[string]string{}}
}

func TestS3Sequences(t *testing.T) {
	engines := kit.Start(t)
	for _, versioning := range []types.BucketVersioningStatus{"", types.BucketVersioningStatusEnabled, types.BucketVersioningStatusSuspended} {
		t.Run(string(cmp.Or(versioning, "Unversioned")), func(t *testing.T) {
			compare(t, "SIGNALBOX_S3", func(rt *rapid.T) (fake, real bucket, _ func() (string, func(bucket) object)) {
				name := engines.Bucket(t, versioning)
				w := awsmodel.New(awsmodel.Config{Bucket: name, Versioning: string(versioning)})
				return modelBucket(t, w, name), bucket{t, s3.NewFromConfig(engines.Config), &name, map[string]string{}},
					func() (string, func(bucket) object) { return draw(rt) }
			})
		})
	}
}
