//go:build !lambda

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// ErrExists means that the workspace already has a file with that id.
var ErrExists = errors.New("the file exists already")

type managerAPI interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error)
	versionDeleter
	s3.ListMultipartUploadsAPIClient
	s3.ListObjectsV2APIClient
	s3.ListObjectVersionsAPIClient
}

// Manager uploads, lists and purges files, for the operator's command.
type Manager struct {
	s3     managerAPI
	bucket string
}

// NewManager administers the bucket.
func NewManager(client managerAPI, bucket string) *Manager {
	return &Manager{s3: client, bucket: bucket}
}

// File is one entry of a listing.
type File struct {
	ID       ids.File
	Bytes    int64
	StoredAt time.Time
}

// Upload stores a whole file or nothing. It never overwrites a file; it returns
// ErrExists. ErrExists may also mean that an earlier attempt stored it and its response
// was lost. S3 names the version by an ETag: a response without one is not S3's.
func (m *Manager) Upload(ctx context.Context, w ids.Workspace, f ids.File, body io.ReadSeeker, contentType string) error {
	stored, err := m.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &m.bucket, Key: aws.String(Key(w, f)), Body: body, ContentType: &contentType,
		IfNoneMatch: aws.String("*"),
	})
	if calls.Code(err) == "PreconditionFailed" {
		return ErrExists
	}
	if err == nil && aws.ToString(stored.ETag) == "" {
		err = errors.New("a response that is not S3's: nothing may be stored")
	}
	if err != nil {
		return fmt.Errorf("uploading a file: %w", err)
	}
	return nil
}

// List lists the files of the workspace by id. A missing workspace has none.
func (m *Manager) List(ctx context.Context, w ids.Workspace) ([]File, error) {
	prefix := Key(w, "")
	read := func(from marker) (*s3.ListObjectsV2Output, error) {
		return m.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &m.bucket, Prefix: &prefix, ContinuationToken: from.key})
	}
	endOf := func(page *s3.ListObjectsV2Output) ending {
		return ending{page.Name, page.IsTruncated, marker{key: page.NextContinuationToken}}
	}
	var files []File
	for page, err := range pages(m.bucket, read, endOf) {
		if err != nil {
			return nil, fmt.Errorf("listing files: %w", err)
		}
		for _, o := range page.Contents {
			files = append(files, File{
				ID:    ids.File(strings.TrimPrefix(aws.ToString(o.Key), prefix)),
				Bytes: aws.ToInt64(o.Size), StoredAt: aws.ToTime(o.LastModified).UTC(),
			})
		}
	}
	return files, nil
}

// Purge removes every version of every file of the workspace and returns how many. The
// caller has made sure that the workspace is deleted. Versions go first and delete
// markers last: no version becomes visible again. After an error some may be left;
// Purge again removes them.
func (m *Manager) Purge(ctx context.Context, w ids.Workspace) (versions int, err error) {
	versions, err = m.sweep(ctx, w, versionsIn)
	if err != nil {
		return versions, err
	}
	_, err = m.sweep(ctx, w, markersIn)
	return versions, err
}

func versionsIn(page *s3.ListObjectVersionsOutput) (found []types.ObjectIdentifier) {
	for _, v := range page.Versions {
		found = append(found, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	return found
}

func markersIn(page *s3.ListObjectVersionsOutput) (found []types.ObjectIdentifier) {
	for _, d := range page.DeleteMarkers {
		found = append(found, types.ObjectIdentifier{Key: d.Key, VersionId: d.VersionId})
	}
	return found
}

// sweep removes the versions of the workspace's files that choose picks. It lists them
// again until none is found: S3 does not promise to continue a listing after a removed
// version.
func (m *Manager) sweep(ctx context.Context, w ids.Workspace, choose func(*s3.ListObjectVersionsOutput) []types.ObjectIdentifier) (removed int, err error) {
	for before := -1; before < removed; {
		before = removed
		for page, err := range versionPages(ctx, m.s3, m.bucket, Key(w, "")) {
			if err != nil {
				return removed, fmt.Errorf("listing versions to purge: %w", err)
			}
			n, err := removeBatch(ctx, m.s3, m.bucket, choose(page))
			removed += n
			if err != nil {
				return removed, fmt.Errorf("purging versions: %w", err)
			}
		}
	}
	return removed, nil
}

// Uploads lists the uploads in parts that somebody began below the workspace's prefix and did
// not complete. Nobody can read their bytes, but whoever began one may complete it.
func (m *Manager) Uploads(ctx context.Context, w ids.Workspace) (uploads []types.MultipartUpload, err error) {
	prefix := Key(w, "")
	read := func(from marker) (*s3.ListMultipartUploadsOutput, error) {
		return m.s3.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{
			Bucket: &m.bucket, Prefix: &prefix, KeyMarker: from.key, UploadIdMarker: from.id,
		})
	}
	endOf := func(page *s3.ListMultipartUploadsOutput) ending {
		return ending{page.Bucket, page.IsTruncated, marker{page.NextKeyMarker, page.NextUploadIdMarker}}
	}
	for page, err := range pages(m.bucket, read, endOf) {
		if err != nil {
			return nil, fmt.Errorf("listing uploads: %w", err)
		}
		uploads = append(uploads, page.Uploads...)
	}
	return uploads, nil
}

// AbortUploads aborts these uploads and returns how many. It lists them until none is left,
// because parts may arrive after an abort. An upload that was completed in the meantime is a
// file: Purge removes it.
func (m *Manager) AbortUploads(ctx context.Context, w ids.Workspace) (aborted int, err error) {
	for before := -1; before < aborted; {
		before = aborted
		uploads, err := m.Uploads(ctx, w)
		if err != nil {
			return aborted, err
		}
		for _, upload := range uploads {
			_, err := m.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &m.bucket, Key: upload.Key, UploadId: upload.UploadId})
			if err != nil && calls.Code(err) != "NoSuchUpload" {
				return aborted, fmt.Errorf("aborting an upload: %w", err)
			}
			if err == nil {
				aborted++
			}
		}
	}
	return aborted, nil
}
