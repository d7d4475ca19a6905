package kit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/ids"
)

// newEngines makes the key and the tables.
func newEngines(ctx context.Context, config aws.Config) (Engines, error) {
	engines := Engines{
		Config: config,
		// The names in router.yaml, which the router's tests run as it is.
		Tables: Outputs{Access: "signalbox-access", Credentials: "signalbox-credentials", Jobs: "sync-jobs", Control: "control"},
	}
	var err error
	engines.Tables.SealingKey, err = createKey(ctx, config)
	o, both := engines.Tables, []string{"pk", "sk"}
	return engines, errors.Join(err, createTables(ctx, config, map[string][]string{o.Access: both, o.Credentials: both, o.Jobs: both[:1], o.Control: both[:1]}))
}

// createTables makes tables with these key attributes, side by side.
func createTables(ctx context.Context, config aws.Config, tables map[string][]string) (err error) {
	db, failures := dynamodb.NewFromConfig(config), make(chan error, len(tables))
	for name, keys := range tables {
		go func() { failures <- createTable(ctx, db, name, keys) }()
	}
	for range tables {
		err = errors.Join(err, <-failures)
	}
	return err
}

func createKey(ctx context.Context, config aws.Config) (arn string, err error) {
	key, err := kms.NewFromConfig(config).CreateKey(ctx, &kms.CreateKeyInput{})
	if err != nil {
		return "", fmt.Errorf("creating a KMS key: %w", err)
	}
	return *key.KeyMetadata.Arn, nil
}

// createTable makes a table with these key attributes, all strings, and waits until it
// can be used.
func createTable(ctx context.Context, db *dynamodb.Client, name string, keys []string) error {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i, key := range keys {
		role := types.KeyTypeHash
		if i > 0 {
			role = types.KeyTypeRange
		}
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(key), KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(key), AttributeType: types.ScalarAttributeTypeS,
		})
	}
	if _, err := db.CreateTable(ctx, in); err != nil {
		return fmt.Errorf("creating table %s: %w", name, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 200*time.Millisecond
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, startTimeout); err != nil {
		return fmt.Errorf("waiting for table %s: %w", name, err)
	}
	return nil
}

// NewTables makes a number of tables for this test in parallel, with the primary key
// of the access table. It takes about a second, so share the template's tables if
// possible.
func (e Engines) NewTables(t testing.TB, count int) []string {
	t.Helper()
	names, tables := make([]string, count), map[string][]string{}
	for i := range names {
		names[i] = "test-" + string(ids.New[ids.Workspace]())
		tables[names[i]] = []string{"pk", "sk"}
	}
	Must(t, createTables(t.Context(), e.Config, tables))
	return names
}

// Key makes a new KMS key for this test.
func (e Engines) Key(t testing.TB) (arn string) {
	t.Helper()
	arn, err := createKey(t.Context(), e.Config)
	Must(t, err)
	return arn
}

// Bucket makes a new bucket for this test. The zero value of versioning leaves it
// unset.
func (e Engines) Bucket(t testing.TB, versioning s3types.BucketVersioningStatus) string {
	t.Helper()
	name := "test-" + string(ids.New[ids.Workspace]())
	client := s3.NewFromConfig(e.Config)
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	Must(t, err)
	if versioning != "" {
		_, err := client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket: &name, VersioningConfiguration: &s3types.VersioningConfiguration{Status: versioning},
		})
		Must(t, err)
	}
	return name
}
