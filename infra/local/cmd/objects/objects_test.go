package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"
)

const (
	bucket    = "files"
	startTime = time.Minute
	pollEvery = 5 * time.Millisecond
)

// TestMain makes the test binary the command itself where a test says so:
// versitygw runs once in a process, and a test must be able to kill it.
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

// start runs the command over the folder until the test ends.
func start(t *testing.T, dir string) *engine {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	e := &engine{command: exec.Command(os.Args[0], "-addr", address, "-dir", dir, "-access-key", "id", "-secret-key", "secret")} //nolint:gosec // the test itself
	e.command.Env = []string{"SIGNALBOX_TEST_OBJECTS=1"}
	if err := e.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.kill)
	awaitHealth(t, "http://"+address+"/health")
	e.Client = s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + address), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	return e
}

func awaitHealth(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the engine does not answer: %v", err)
		case <-time.After(pollEvery):
		}
	}
}

// kill ends the engine the hard way and waits for its end.
func (e *engine) kill() {
	_ = e.command.Process.Kill() // it may have ended already
	_ = e.command.Wait()
}

// withBucket starts an engine with a bucket in it.
func withBucket(t *testing.T, versioning types.BucketVersioningStatus) *engine {
	t.Helper()
	e := start(t, t.TempDir())
	if _, err := e.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	e.setVersioning(t, versioning)
	return e
}

func (e *engine) setVersioning(t *testing.T, versioning types.BucketVersioningStatus) {
	t.Helper()
	if versioning == "" {
		return
	}
	if _, err := e.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: aws.String(bucket), VersioningConfiguration: &types.VersioningConfiguration{Status: versioning},
	}); err != nil {
		t.Fatal(err)
	}
}

// put stores the key's own name and returns the version.
func (e *engine) put(t *testing.T, key string) string {
	t.Helper()
	out, err := e.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(key)})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.VersionId)
}

// deleteIf deletes the object on condition that there is one.
func (e *engine) deleteIf(ctx context.Context, key string) (*s3.DeleteObjectOutput, error) {
	return e.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: &key, IfMatch: aws.String("*")})
}

func (e *engine) deleteVersion(ctx context.Context, key, version string) error {
	_, err := e.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: &key, VersionId: &version})
	return err
}

// stored counts the versions and the delete markers of the keys with a prefix.
func (e *engine) stored(t *testing.T, prefix string) (versions, markers int) {
	t.Helper()
	out, err := e.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: aws.String(bucket), Prefix: &prefix})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Versions), len(out.DeleteMarkers)
}

func (e *engine) exists(t *testing.T, key string) bool {
	t.Helper()
	_, err := e.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(bucket), Key: &key})
	if code := codeOf(err); code != "" && code != "NotFound" {
		t.Fatal(err)
	}
	return err == nil
}

// codeOf is S3's code of a failed call; "" where it did not fail.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// atOnce makes n calls at the same time and counts their codes.
func atOnce(n int, call func() error) map[string]int {
	codes := make(chan string, n)
	begin := make(chan struct{})
	var all errgroup.Group
	for range n {
		all.Go(func() error {
			<-begin
			codes <- codeOf(call())
			return nil
		})
	}
	close(begin)
	_ = all.Wait() // no call of ours fails the group
	close(codes)
	count := make(map[string]int)
	for code := range codes {
		count[code]++
	}
	return count
}
