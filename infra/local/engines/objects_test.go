package engines_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/test/kit"
)

// versitygw alone does not settle many deletes at once. Here one conditional delete
// succeeds, all deletes by version succeed, and each reports the same as S3. shared/files
// tests the rest, on ministack too (infra/test/second-opinion).
func TestDeletesAtOnce(t *testing.T) {
	running, err := engines.Start(t.Context(), engines.Config{Root: "../../..", Dir: t.TempDir()})
	kit.Must(t, err)
	t.Cleanup(running.Close)
	c, bucket, key := awsclients.S3(running.Config()), aws.String("files"), aws.String("files/w/f")
	_, made := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: bucket})
	_, versioned := c.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	kit.Must(t, errors.Join(made, versioned))
	var all []types.ObjectIdentifier
	for range 5 {
		put, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("x")})
		kit.Must(t, err)
		all = append(all, types.ObjectIdentifier{Key: key, VersionId: put.VersionId})
		var deletes errgroup.Group
		var succeeded atomic.Int32
		begin := make(chan struct{})
		for range 100 {
			deletes.Go(func() error {
				<-begin
				_, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: key, IfMatch: aws.String("*")})
				if failed, ok := errors.AsType[smithy.APIError](err); ok && failed.ErrorCode() == "PreconditionFailed" {
					return nil
				}
				succeeded.Add(1)
				return err
			})
		}
		close(begin)
		if err := deletes.Wait(); err != nil || succeeded.Load() != 1 {
			t.Errorf("of 100 deletions at once %d succeeded, %v", succeeded.Load(), err)
		}
	}
	left, err := c.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: bucket})
	if err != nil || len(left.Versions) != 5 || len(left.DeleteMarkers) != 5 {
		t.Fatalf("%d versions and %d delete markers, %v; want 5 each", len(left.Versions), len(left.DeleteMarkers), err)
	}
	for _, m := range left.DeleteMarkers {
		all = append(all, types.ObjectIdentifier{Key: key, VersionId: m.VersionId})
	}
	all = append(all, types.ObjectIdentifier{Key: key, VersionId: aws.String("no-version")})
	var callers errgroup.Group
	for range 20 { // most of them find that the version is gone
		callers.Go(func() error {
			out, err := c.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: all}})
			if err == nil && (len(out.Deleted) != 10 || len(out.Errors) != 1 || aws.ToString(out.Errors[0].Code) != "InvalidArgument") {
				err = fmt.Errorf("%d deleted, errors %+v", len(out.Deleted), out.Errors)
			}
			return err
		})
	}
	kit.Must(t, callers.Wait())
	left, err = c.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: bucket})
	if err != nil || len(left.Versions)+len(left.DeleteMarkers) != 0 {
		t.Errorf("%+v is left, %v", left, err)
	}
}
