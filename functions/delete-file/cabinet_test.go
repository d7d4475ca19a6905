package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// The states of a bucket's versioning.
const (
	off       types.BucketVersioningStatus = ""
	enabled                                = types.BucketVersioningStatusEnabled
	suspended                              = types.BucketVersioningStatusSuspended
)

// cabinet is a stage with a bucket.
type cabinet struct {
	*functest.Env
}

// newCabinet makes a bucket. In a suspended one, what was put before stands in
// versions, as in one whose owner turned versioning off again.
func newCabinet(t *testing.T, s *functest.Env, versioning types.BucketVersioningStatus) *cabinet {
	t.Helper()
	return &cabinet{s.In(s.Engines.Bucket(t, versioning))}
}

func (c *cabinet) put(t testing.TB, w ids.Workspace, f ids.File, content string) {
	t.Helper()
	_, err := c.S3.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &c.Bucket, Key: aws.String(files.Key(w, f)), Body: strings.NewReader(content),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// hide puts a delete marker before the file, as a deletion does that dies then.
func (c *cabinet) hide(t testing.TB, w ids.Workspace, f ids.File) {
	t.Helper()
	_, err := c.S3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &c.Bucket, Key: aws.String(files.Key(w, f))})
	if err != nil {
		t.Fatal(err)
	}
}

// drawer is what a bucket holds of one file.
type drawer struct {
	left     int   // versions and delete markers of exactly this file
	seen     int64 // bytes that anybody sees who asks for it; 0 where there is nothing to see
	siblings int   // versions and delete markers of files whose keys begin with this one's
}

func (c *cabinet) look(t testing.TB, w ids.Workspace, f ids.File) (d drawer) {
	t.Helper()
	key := files.Key(w, f)
	out, err := c.S3.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &c.Bucket, Prefix: &key})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out.Versions {
		if aws.ToString(v.Key) != key {
			d.siblings++
			continue
		}
		d.left++
		if aws.ToBool(v.IsLatest) {
			d.seen = aws.ToInt64(v.Size)
		}
	}
	for _, m := range out.DeleteMarkers {
		if aws.ToString(m.Key) != key {
			d.siblings++
			continue
		}
		d.left++
	}
	return d
}

// remove asks for the deletion of a file; workspace "" names none.
func remove(w ids.Workspace, file string) functest.Event {
	e := functest.NewEvent(http.MethodDelete, "/api/v1/files/{file_id}").At("file_id", file)
	if w == "" {
		return e
	}
	return e.Asking("workspace_id", string(w))
}
