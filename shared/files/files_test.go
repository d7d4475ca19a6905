package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// The states of a bucket's versioning; "" is off.
const (
	off       types.BucketVersioningStatus = ""
	enabled                                = types.BucketVersioningStatusEnabled
	suspended                              = types.BucketVersioningStatusSuspended
)

// shelf is one workspace in a bucket of its own.
type shelf struct {
	*testing.T
	engines   testkit.Engines
	client    *s3.Client
	bucket    string
	workspace ids.Workspace
	store     *files.Store
}

func newShelf(t *testing.T, versioning types.BucketVersioningStatus) *shelf {
	t.Helper()
	engines := testkit.Start(t)
	client := s3.NewFromConfig(engines.Config)
	bucket := engines.Bucket(t, versioning)
	return &shelf{
		T: t, engines: engines, client: client, bucket: bucket,
		workspace: ids.New[ids.Workspace](), store: files.NewStore(client, bucket),
	}
}

func (s *shelf) put(f ids.File) {
	s.Helper()
	_, err := s.client.PutObject(s.Context(), &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(files.Key(s.workspace, f)), Body: strings.NewReader("content"),
	})
	if err != nil {
		s.Fatal(err)
	}
}

// hide deletes without a version id, as a user of the bucket would.
func (s *shelf) hide(f ids.File) {
	s.Helper()
	_, err := s.client.DeleteObject(s.Context(), &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(files.Key(s.workspace, f))})
	if err != nil {
		s.Fatal(err)
	}
}

// left counts the versions and markers of exactly this file.
func (s *shelf) left(f ids.File) int {
	s.Helper()
	key, n := files.Key(s.workspace, f), 0
	pages := s3.NewListObjectVersionsPaginator(s.client, &s3.ListObjectVersionsInput{Bucket: &s.bucket, Prefix: &key})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		for _, v := range page.Versions {
			if aws.ToString(v.Key) == key {
				n++
			}
		}
		for _, m := range page.DeleteMarkers {
			if aws.ToString(m.Key) == key {
				n++
			}
		}
	}
	return n
}

func (s *shelf) mustDelete(f ids.File, versions int) {
	s.Helper()
	receipt, err := s.store.Delete(s.Context(), s.workspace, f)
	if err != nil || receipt.Versions != versions || receipt.AnswerLost {
		s.Errorf("Delete: %+v, %v; want %d versions", receipt, err, versions)
	}
	if n := s.left(f); n != 0 {
		s.Errorf("after a successful Delete %d versions and markers are left", n)
	}
}

func (s *shelf) mustNotFind(f ids.File) {
	s.Helper()
	if receipt, err := s.store.Delete(s.Context(), s.workspace, f); !errors.Is(err, files.ErrNotFound) || receipt != (files.Receipt{}) {
		s.Errorf("Delete: %+v, %v; want not found", receipt, err)
	}
}

func TestDeleteLeavesNothing(t *testing.T) {
	for _, versioning := range []types.BucketVersioningStatus{off, enabled} {
		t.Run("versioning "+string(versioning), func(t *testing.T) {
			s := newShelf(t, versioning)
			file, sibling := ids.File("file_1"), ids.File("file_10")
			s.put(file)
			s.put(sibling)
			s.mustDelete(file, 1)
			s.mustNotFind(file)
			s.mustNotFind("file_never")
			if n := s.left(sibling); n != 1 {
				t.Errorf("of file_10 %d versions are left, want 1", n)
			}
			s.put(file) // the same id again is a new file
			s.mustDelete(file, 1)
		})
	}
}

// Without their marker the bytes of a longer key would come back.
func TestDeleteLeavesAHiddenSiblingHidden(t *testing.T) {
	for _, versioning := range []types.BucketVersioningStatus{enabled, suspended} {
		s := newShelf(t, enabled)
		for _, f := range []ids.File{"file_1", "file_10", "file_1-"} {
			s.put(f)
			s.hide(f)
		}
		s.engines.SetVersioning(t, s.bucket, versioning)
		s.mustDelete("file_1", 1)
		for _, f := range []ids.File{"file_10", "file_1-"} {
			s.mustBeHidden(f)
			if n := s.left(f); n != 2 {
				t.Errorf("of %s %d versions and markers are left, want 2", f, n)
			}
		}
	}
}

func TestDeleteRemovesEveryVersion(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	s.hide("file_a")
	s.put("file_a")
	s.put("file_a")
	s.mustDelete("file_a", 3)
	s.mustNotFind("file_a")
}

func TestDeleteFinishesWhatWasHidden(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	s.put("file_a")
	s.hide("file_a") // as a deletion that died after its first step
	s.mustDelete("file_a", 2)

	s.put("file_b")
	s.hide("file_b")
	s.hide("file_b")
	s.mustDelete("file_b", 1)
	s.mustNotFind("file_b")
}

func TestDeleteOnASuspendedBucket(t *testing.T) {
	s := newShelf(t, off)
	s.put("file_null") // before versioning: version null
	s.put("file_both")
	s.engines.SetVersioning(t, s.bucket, enabled)
	s.put("file_both")
	s.put("file_old")
	s.engines.SetVersioning(t, s.bucket, suspended)
	s.put("file_new")
	for _, f := range []ids.File{"file_null", "file_both", "file_old", "file_new"} {
		if _, err := s.store.Delete(t.Context(), s.workspace, f); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if n := s.left(f); n != 0 {
			t.Errorf("of %s %d versions and markers are left", f, n)
		}
		s.mustNotFind(f)
	}
}

func TestDeleteReadsEveryPage(t *testing.T) {
	const versions = 1100 // more than S3 lists, and deletes, in one call
	s := newShelf(t, enabled)
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for range versions/8 + map[bool]int{true: versions % 8}[w == 0] {
				s.put("file_many")
			}
		})
	}
	writers.Wait()
	s.put("file_many2")
	s.mustDelete("file_many", versions)
	if n := s.left("file_many2"); n != 1 {
		t.Errorf("of file_many2 %d versions are left, want 1", n)
	}
}

// cut lists nothing and says that there is more, and not where.
type cut struct{ *s3.Client }

func (cut) ListObjectVersions(context.Context, *s3.ListObjectVersionsInput, ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	return &s3.ListObjectVersionsOutput{IsTruncated: aws.Bool(true)}, nil
}

func TestWhatCannotBeListedIsNotSaidToBeGone(t *testing.T) {
	s := newShelf(t, enabled)
	store := files.NewStore(cut{s.client}, s.bucket)
	for _, stored := range []bool{false, true} {
		if stored {
			s.put("file_1")
		}
		if _, err := store.Delete(t.Context(), s.workspace, "file_1"); err == nil || errors.Is(err, files.ErrNotFound) {
			t.Errorf("stored %t: %v", stored, err)
		}
	}
}

func TestAnotherWorkspacesFileIsNotFound(t *testing.T) {
	s := newShelf(t, off)
	s.put("file_a")
	owner := s.workspace
	s.workspace = ids.New[ids.Workspace]()
	s.mustNotFind("file_a")
	s.workspace = owner
	s.mustDelete("file_a", 1)
}

func TestOfManyDeletesAtOnceOneWins(t *testing.T) {
	s := newShelf(t, off)
	for round := range 5 {
		f := ids.File(fmt.Sprintf("file_%d", round))
		s.put(f)
		var won, lost atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, err := s.store.Delete(context.WithoutCancel(t.Context()), s.workspace, f)
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, files.ErrNotFound):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != 99 {
			t.Errorf("round %d: %d deleted it and %d did not find it", round, won.Load(), lost.Load())
		}
	}
}

func TestOfManyDeletesOfManyVersionsNoneFails(t *testing.T) {
	s := newShelf(t, enabled)
	for range 5 {
		s.put("file_a")
	}
	var won atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := s.store.Delete(context.WithoutCancel(t.Context()), s.workspace, "file_a")
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, files.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := s.left("file_a"); n != 0 || won.Load() == 0 {
		t.Errorf("%d versions and markers are left, %d deleted it", n, won.Load())
	}
}
