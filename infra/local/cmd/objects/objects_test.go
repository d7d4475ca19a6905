package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/port"
)

const (
	enabled   = types.BucketVersioningStatusEnabled
	suspended = types.BucketVersioningStatusSuspended

	startTime = time.Minute
	pollEvery = 5 * time.Millisecond
)

var bucket = aws.String("files")

// TestMain makes the test binary the command that it tests: versitygw runs once in
// a process, and a test must be able to kill it.
func TestMain(m *testing.M) {
	if os.Getenv("SIGNALBOX_TEST_OBJECTS") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// engine is the command as a process of its own.
type engine struct {
	*s3.Client
	command *exec.Cmd
}

// start runs the command on the folder until the test ends.
func start(t *testing.T, dir string) *engine {
	t.Helper()
	ports, err := port.Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", ports[0])
	e := &engine{command: exec.Command(os.Args[0], "-addr", address, "-dir", dir, "-access-key", "id", "-secret-key", "secret")} //nolint:gosec // the test itself
	e.command.Env = []string{"SIGNALBOX_TEST_OBJECTS=1"}
	if err := e.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.kill)
	for late := time.After(startTime); ; {
		answer, err := http.Get("http://" + address + "/health")
		if err == nil {
			_ = answer.Body.Close()
			break
		}
		select {
		case <-late:
			t.Fatalf("the engine does not answer: %v", err)
		case <-time.After(pollEvery):
		}
	}
	e.Client = s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + address), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	return e
}

// kill sends SIGKILL and waits for the end.
func (e *engine) kill() {
	_ = e.command.Process.Kill() // it may have ended already
	_ = e.command.Wait()
}

// startWithBucket starts an engine with a bucket in it.
func startWithBucket(t *testing.T, dir string, versioning types.BucketVersioningStatus) *engine {
	t.Helper()
	e := start(t, dir)
	_, err := e.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: bucket})
	if err == nil && versioning != "" {
		_, err = e.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: versioning},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// put stores an object and returns its version.
func (e *engine) put(t *testing.T, key string) string {
	t.Helper()
	out, err := e.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader(key)})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.VersionId)
}

// deleteIf deletes the object on condition that it exists.
func (e *engine) deleteIf(ctx context.Context, key string) (*s3.DeleteObjectOutput, error) {
	return e.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: &key, IfMatch: aws.String("*")})
}

// wantStored checks how many versions and delete markers the keys with the prefix
// have.
func (e *engine) wantStored(t *testing.T, prefix string, versions, markers int) {
	t.Helper()
	out, err := e.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: bucket, Prefix: &prefix})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Versions) != versions || len(out.DeleteMarkers) != markers {
		t.Errorf("%d versions and %d delete markers are left, want %d and %d", len(out.Versions), len(out.DeleteMarkers), versions, markers)
	}
}

func (e *engine) exists(t *testing.T, key string) bool {
	t.Helper()
	_, err := e.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: &key})
	if code := codeOf(err); code != "" && code != "NotFound" {
		t.Fatal(err)
	}
	return err == nil
}

// codeOf returns S3's code of an error; "" for none.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// DeleteObject with If-Match: * answers as S3 does, and of many at once one
// succeeds.
func TestConditionalDelete(t *testing.T) {
	const key = "files/w/f"
	if _, err := start(t, t.TempDir()).deleteIf(t.Context(), key); codeOf(err) != "NoSuchBucket" {
		t.Errorf("without a bucket: %v, want NoSuchBucket", err)
	}
	for name, c := range map[string]struct {
		versioning        types.BucketVersioningStatus
		marker            bool
		versions, markers int // after six deletions
	}{
		"off":       {},
		"enabled":   {versioning: enabled, marker: true, versions: 6, markers: 6},
		"suspended": {versioning: suspended, marker: true, markers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := startWithBucket(t, t.TempDir(), c.versioning)
			if _, err := e.deleteIf(t.Context(), key); codeOf(err) != "PreconditionFailed" {
				t.Errorf("an absent object: %v, want PreconditionFailed", err)
			}
			e.put(t, key)
			out, err := e.deleteIf(t.Context(), key)
			if err != nil {
				t.Fatalf("an existing object: %v", err)
			}
			if aws.ToBool(out.DeleteMarker) != c.marker || (out.VersionId != nil) != c.marker || e.exists(t, key) {
				t.Errorf("delete marker %v, version %v, want them: %t; the object still exists: %t",
					out.DeleteMarker, out.VersionId, c.marker, e.exists(t, key))
			}
			for range 5 {
				e.put(t, key)
				var all errgroup.Group
				var succeeded atomic.Int32
				begin := make(chan struct{})
				for range 100 {
					all.Go(func() error {
						<-begin
						_, err := e.deleteIf(t.Context(), key)
						if err == nil {
							succeeded.Add(1)
						} else if codeOf(err) != "PreconditionFailed" {
							return err
						}
						return nil
					})
				}
				close(begin)
				if err := all.Wait(); err != nil || succeeded.Load() != 1 {
					t.Errorf("of 100 deletions at once %d succeeded, %v", succeeded.Load(), err)
				}
			}
			e.wantStored(t, key, c.versions, c.markers)
			if _, err := e.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("none")}); err != nil {
				t.Errorf("an absent object without the condition: %v", err)
			}
		})
	}
}

// Versions are deleted by id, a second time without an error; without the delete
// marker the version before it is current again.
func TestDeleteByVersion(t *testing.T) {
	e := startWithBucket(t, t.TempDir(), enabled)
	const key, longer = "files/w/f", "files/w/f0"
	deleteVersion := func(key, version string) error {
		_, err := e.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String(key), VersionId: &version})
		return err
	}
	first, second := e.put(t, key), e.put(t, key)
	other := e.put(t, longer)
	out, err := e.deleteIf(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{first, first, aws.ToString(out.VersionId), aws.ToString(out.VersionId), second, second} {
		if err := deleteVersion(key, version); err != nil {
			t.Errorf("version %s: %v", version, err)
		}
		if want := version == aws.ToString(out.VersionId); e.exists(t, key) != want {
			t.Errorf("after the deletion of version %s the object exists: %t", version, !want)
		}
	}
	if err := deleteVersion(longer, "no-version"); codeOf(err) != "InvalidArgument" {
		t.Errorf("a malformed version: %v, want InvalidArgument", err)
	}
	e.wantStored(t, key, 1, 0)
	if err := deleteVersion(longer, other); err != nil {
		t.Error(err)
	}
}

// DeleteObjects reports each version, deleted or not; several callers may delete
// the same ones at once.
func TestDeleteObjects(t *testing.T) {
	e := startWithBucket(t, t.TempDir(), enabled)
	key := aws.String("f")
	var versions []types.ObjectIdentifier
	for range 5 {
		versions = append(versions, types.ObjectIdentifier{Key: key, VersionId: aws.String(e.put(t, *key))})
	}
	marker, err := e.deleteIf(t.Context(), *key)
	if err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	for range 20 {
		all.Go(func() error {
			out, err := e.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: versions}})
			if err == nil && (len(out.Errors) > 0 || len(out.Deleted) != len(versions)) {
				return fmt.Errorf("%d deleted, %d errors", len(out.Deleted), len(out.Errors))
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	e.wantStored(t, *key, 0, 1)

	out, err := e.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{
		{Key: aws.String("g"), VersionId: aws.String(e.put(t, "g"))},
		{Key: key, VersionId: aws.String("no-version")},
		{Key: key, VersionId: marker.VersionId},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Deleted) != 2 || aws.ToBool(out.Deleted[0].DeleteMarker) || !aws.ToBool(out.Deleted[1].DeleteMarker) {
		t.Errorf("deleted: %+v", out.Deleted)
	}
	if len(out.Errors) != 1 || aws.ToString(out.Errors[0].Code) != "InvalidArgument" {
		t.Errorf("errors: %+v", out.Errors)
	}
}
