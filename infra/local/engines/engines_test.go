package engines_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/engines"
)

const patience = time.Minute

func start(t *testing.T, c engines.Config) *engines.Engines {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	running, err := engines.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, running) })
	return running
}

func stop(t *testing.T, e *engines.Engines) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// fill creates a table, a bucket and a key of this name.
func fill(t *testing.T, e *engines.Engines, name string) {
	t.Helper()
	config := e.AWSConfig()
	_, table := dynamodb.NewFromConfig(config).CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
	})
	_, bucket := s3.NewFromConfig(config).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	keys := kms.NewFromConfig(config)
	key, err := keys.CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err == nil {
		_, err = keys.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: aws.String("alias/" + name), TargetKeyId: key.KeyMetadata.KeyId})
	}
	if err := errors.Join(table, bucket, err); err != nil {
		t.Fatal(err)
	}
}

// content lists what fill has created.
func content(t *testing.T, e *engines.Engines) (tables, buckets, keys []string) {
	t.Helper()
	config := e.AWSConfig()
	config.RetryMaxAttempts = 10 // an engine may be starting again
	listed, first := dynamodb.NewFromConfig(config).ListTables(t.Context(), nil)
	owned, second := s3.NewFromConfig(config).ListBuckets(t.Context(), nil)
	named, third := kms.NewFromConfig(config).ListAliases(t.Context(), nil)
	if err := errors.Join(first, second, third); err != nil {
		t.Fatal(err)
	}
	for _, b := range owned.Buckets {
		buckets = append(buckets, aws.ToString(b.Name))
	}
	for _, a := range named.Aliases {
		keys = append(keys, strings.TrimPrefix(aws.ToString(a.AliasName), "alias/"))
	}
	return listed.TableNames, buckets, keys
}

func holdsOnly(t *testing.T, e *engines.Engines, name string) {
	t.Helper()
	tables, buckets, keys := content(t, e)
	want := []string{name}
	for engine, got := range map[string][]string{"DynamoDB": tables, "S3": buckets, "KMS": keys} {
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (got -, want +):\n%s", engine, diff)
		}
	}
}

func TestStateOutlastsTheEngines(t *testing.T) {
	for _, engine := range []string{engines.ExtendDB, engines.Dynoxide} {
		t.Run(engine, func(t *testing.T) {
			c := engines.Config{Dir: t.TempDir(), DynamoDB: engine}
			first := start(t, c)
			fill(t, first, "kept")
			stop(t, first)
			holdsOnly(t, start(t, c), "kept")
		})
	}
}

// The engines listen on the host, and go on after an unsigned request: a Lambda
// function opens its connections with one.
func TestHostAndUnsignedRequests(t *testing.T) {
	e := start(t, engines.Config{Host: "127.0.0.2"})
	for _, url := range []string{e.DynamoDB, e.S3, e.KMS} {
		if !strings.HasPrefix(url, "http://127.0.0.2:") {
			t.Errorf("it listens on %s", url)
		}
		answer, err := http.Get(url) //nolint:gosec // an engine of ours
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Error(err)
		}
		_ = answer.Body.Close()
	}
	fill(t, e, "after")
	holdsOnly(t, e, "after")
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		config engines.Config
		want   string
	}{
		"unknown engine":     {engines.Config{DynamoDB: "oracle"}, "choose extenddb or dynoxide"},
		"nothing installed":  {engines.Config{Root: t.TempDir()}, "make engines"},
		"an address of none": {engines.Config{Host: "192.0.2.1"}, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Dir = t.TempDir()
			e, err := engines.Start(t.Context(), c.config)
			if err == nil {
				stop(t, e)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}
