package kit

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Bucket is a bucket of files, read and written without the service.
type Bucket struct {
	*s3.Client
	Name string
}

// Put stores an object, or a new version.
func (b Bucket) Put(t testing.TB, key, content string) {
	t.Helper()
	_, err := b.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: strings.NewReader(content)})
	Must(t, err)
}

// Hide adds a delete marker to the object, like an interrupted deletion.
func (b Bucket) Hide(t testing.TB, key string) {
	t.Helper()
	_, err := b.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &b.Name, Key: &key})
	Must(t, err)
}

// Begin begins an upload in parts and sends its only part. The function completes it.
func (b Bucket) Begin(t testing.TB, key string) (complete func() error) {
	t.Helper()
	begun, err := b.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &b.Name, Key: &key})
	Must(t, err)
	part, err := b.UploadPart(t.Context(), &s3.UploadPartInput{
		Bucket: &b.Name, Key: &key, UploadId: begun.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("part"),
	})
	Must(t, err)
	return func() error {
		_, err := b.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
			Bucket: &b.Name, Key: &key, UploadId: begun.UploadId,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}},
		})
		return err
	}
}

// Objects counts the versions that a bucket has under a key.
type Objects struct {
	Left     int   // versions and delete markers of exactly this key
	Visible  int64 // bytes that a plain GET returns; 0 if it finds nothing
	Siblings int   // versions and delete markers of keys that begin with this one
}

// Look counts the versions of the key.
func (b Bucket) Look(t testing.TB, key string) (o Objects) {
	t.Helper()
	count := func(at *string) {
		if *at == key {
			o.Left++
		} else {
			o.Siblings++
		}
	}
	pages := s3.NewListObjectVersionsPaginator(b.Client, &s3.ListObjectVersionsInput{Bucket: &b.Name, Prefix: &key})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		Must(t, err)
		for _, v := range page.Versions {
			count(v.Key)
			if *v.Key == key && aws.ToBool(v.IsLatest) {
				o.Visible = aws.ToInt64(v.Size)
			}
		}
		for _, m := range page.DeleteMarkers {
			count(m.Key)
		}
	}
	return o
}
