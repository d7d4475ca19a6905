package engines_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/child/childtest"
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

// fill puts something of this name into each engine.
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

// content lists what fill has put into each engine.
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
	c := engines.Config{Dir: t.TempDir()}
	first := start(t, c)
	fill(t, first, "kept")
	stop(t, first)
	holdsOnly(t, start(t, c), "kept")
}

// Tests of several packages start engines at the same instant.
func TestEnginesRunSideBySide(t *testing.T) {
	all := make([]*engines.Engines, 4)
	var group errgroup.Group
	for i := range all {
		dir := t.TempDir()
		group.Go(func() (err error) {
			all[i], err = engines.Start(t.Context(), engines.Config{Dir: dir})
			return err
		})
	}
	err := group.Wait()
	for _, e := range all {
		if e != nil {
			t.Cleanup(func() { stop(t, e) })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"one", "two", "three", "four"}
	for i, e := range all {
		fill(t, e, names[i])
	}
	for i, e := range all {
		holdsOnly(t, e, names[i])
	}
}

// A Lambda function opens a connection to each service before its first request,
// with a request that nobody signed.
func TestEnginesOutliveAnUnsignedRequest(t *testing.T) {
	e := start(t, engines.Config{})
	for _, url := range []string{e.DynamoDB, e.S3, e.KMS} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
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

func TestTheHostIsKept(t *testing.T) {
	e := start(t, engines.Config{Host: "127.0.0.2"})
	for _, url := range []string{e.DynamoDB, e.S3, e.KMS} {
		if host, _, err := net.SplitHostPort(strings.TrimPrefix(url, "http://")); err != nil || host != "127.0.0.2" {
			t.Errorf("%s: %v", url, err)
		}
	}
	fill(t, e, "there")
}

// kill ends the programs of that name that were not there before.
func kill(t *testing.T, before []int, program string) {
	t.Helper()
	for _, pid := range childtest.Of(t, os.Getpid()) {
		if slices.Contains(before, pid) || !strings.HasSuffix(childtest.Program(pid), "/"+program) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKilledEngineIsStartedAgain(t *testing.T) {
	before := childtest.Of(t, os.Getpid())
	e := start(t, engines.Config{})
	fill(t, e, "kept")
	for range 3 {
		kill(t, before, "extenddb")
		kill(t, before, "objects")
		holdsOnly(t, e, "kept")
	}
}

func TestDoneTellsOfAnEngineThatCannotBeStartedAgain(t *testing.T) {
	for _, program := range []string{"extenddb", "objects"} {
		t.Run(program, func(t *testing.T) {
			before := childtest.Of(t, os.Getpid())
			dir := t.TempDir()
			e := start(t, engines.Config{Dir: dir})
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			kill(t, before, program)
			select {
			case err := <-e.Done():
				if !strings.HasPrefix(err.Error(), "starting "+program+" again") {
					t.Errorf("%v", err)
				}
			case <-time.After(patience):
				t.Error("nobody was told")
			}
		})
	}
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		config engines.Config
		engine string // SIGNALBOX_DYNAMODB
		want   string
	}{
		"unknown engine":     {engines.Config{}, "oracle", "extenddb, dynamodb-local"},
		"nothing installed":  {engines.Config{Root: t.TempDir()}, "", "make engines"},
		"no second opinion":  {engines.Config{Root: t.TempDir()}, "dynamodb-local", "infra/second-opinion/install"},
		"an address of none": {engines.Config{Host: "192.0.2.1"}, "", "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SIGNALBOX_DYNAMODB", c.engine)
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
