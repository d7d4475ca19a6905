package engines_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"signalbox.dev/infra/local/engines"
)

func start(t *testing.T, dir string) *engines.Engines {
	t.Helper()
	running, err := engines.Start(t.Context(), engines.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	})
	return running
}

// bucket is one bucket of the S3 engine.
type bucket struct {
	*testing.T
	client *s3.Client
	name   string
}

func newBucket(t *testing.T, e *engines.Engines, versioned bool) bucket {
	t.Helper()
	b := bucket{T: t, client: s3.NewFromConfig(e.AWSConfig()), name: "files"}
	if _, err := b.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b.name}); err != nil {
		t.Fatal(err)
	}
	if versioned {
		_, err := b.client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: &b.name,
			VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b bucket) put(key string) {
	b.Helper()
	if _, err := b.client.PutObject(b.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader("x")}); err != nil {
		b.Fatal(err)
	}
}

// remove deletes on condition that the object exists and gives S3's code.
func (b bucket) remove(ctx context.Context, key string) string {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key, IfMatch: aws.String("*")})
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	if err != nil {
		b.Error(err)
	}
	return ""
}

func TestConditionalDelete(t *testing.T) {
	const key = "files/w/file_1"
	for name, versioned := range map[string]bool{"unversioned": false, "versioned": true} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t, start(t, t.TempDir()), versioned)
			if got := b.remove(t.Context(), key); got != "PreconditionFailed" {
				t.Errorf("an absent object: %q", got)
			}
			b.put(key)
			if got := b.remove(t.Context(), key); got != "" {
				t.Errorf("an object: %q", got)
			}
			// In a versioned bucket its current version is now a delete marker.
			if got := b.remove(t.Context(), key); got != "PreconditionFailed" {
				t.Errorf("an object deleted before: %q", got)
			}
		})
	}
}

func TestOfManyConditionalDeletesOneSucceeds(t *testing.T) {
	b := newBucket(t, start(t, t.TempDir()), false)
	for range 5 {
		b.put("files/w/file_1")
		var won, lost atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				switch b.remove(context.WithoutCancel(t.Context()), "files/w/file_1") {
				case "":
					won.Add(1)
				case "PreconditionFailed":
					lost.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != 99 {
			t.Errorf("%d won, %d lost", won.Load(), lost.Load())
		}
	}
}

func TestALongKeyIsStored(t *testing.T) {
	b := newBucket(t, start(t, t.TempDir()), true)
	key := "files/0a1b2c3d-0000-4000-8000-000000000001/file_" + strings.Repeat("x", 200)
	b.put(key)
	if got := b.remove(t.Context(), key); got != "" {
		t.Errorf("deleting it: %q", got)
	}
}

func TestStateOutlastsTheEngines(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	newBucket(t, first, false).put("kept")
	_, err := dynamodb.NewFromConfig(first.AWSConfig()).CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("kept"), BillingMode: "PAY_PER_REQUEST",
		KeySchema:            keys("pk"),
		AttributeDefinitions: attributes("pk"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir)
	tables, err := dynamodb.NewFromConfig(second.AWSConfig()).ListTables(t.Context(), nil)
	if err != nil || len(tables.TableNames) != 1 {
		t.Errorf("tables after a restart: %v, %v", tables, err)
	}
	if _, err := s3.NewFromConfig(second.AWSConfig()).HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("files"), Key: aws.String("kept")}); err != nil {
		t.Errorf("the object after a restart: %v", err)
	}
}

func TestAnUnknownEngineIsRefused(t *testing.T) {
	if _, err := engines.Start(t.Context(), engines.Config{Dir: t.TempDir(), DynamoDB: "oracle"}); err == nil || !strings.Contains(err.Error(), "extenddb or dynoxide") {
		t.Errorf("%v", err)
	}
}
