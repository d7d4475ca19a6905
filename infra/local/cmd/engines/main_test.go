package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/local/child/childtest"
)

const patience = time.Minute

// TestMain makes the test binary the command itself where a test says so: a test
// must be able to kill it.
func TestMain(m *testing.M) {
	if os.Getenv("SIGNALBOX_TEST_ENGINES") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// command is the command as a process of its own.
type command struct {
	*exec.Cmd
	address
	stdin io.Closer
	temp  string // its folder for temporary files
	ended chan error
}

func start(t *testing.T, arguments ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.Command(os.Args[0], arguments...), temp: t.TempDir(), ended: make(chan error, 1)} //nolint:gosec // the test itself
	c.Env = append(os.Environ(), "SIGNALBOX_TEST_ENGINES=1", "TMPDIR="+c.temp)
	c.Stderr = t.Output()
	var err error
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended already
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("it said nothing: %v", err)
	}
	if err := json.Unmarshal(line, &c.address); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	go func() { c.ended <- c.Wait() }()
	return c
}

func (c *command) config(url string) aws.Config {
	return aws.Config{
		Region: c.Region, BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	}
}

// awaitEnd waits for the end of the command and of each of its children.
func (c *command) awaitEnd(t *testing.T, children []int) error {
	t.Helper()
	deadline := time.After(patience)
	var err error
	select {
	case err = <-c.ended:
	case <-deadline:
		t.Fatal("it does not end")
	}
	for _, pid := range children {
		for !childtest.Gone(pid) {
			select {
			case <-time.After(time.Millisecond):
			case <-deadline:
				t.Fatalf("%s still runs", childtest.Program(pid))
			}
		}
	}
	return err
}

func TestItEndsWhenItIsTold(t *testing.T) {
	for name, tell := range map[string]func(*command) error{
		"end of input": func(c *command) error { return c.stdin.Close() },
		"SIGTERM":      func(c *command) error { return c.Process.Signal(syscall.SIGTERM) },
		"SIGINT":       func(c *command) error { return c.Process.Signal(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			children := childtest.Of(t, c.Process.Pid)
			if len(children) != 2 {
				t.Errorf("%d children", len(children))
			}
			if err := tell(c); err != nil {
				t.Fatal(err)
			}
			if err := c.awaitEnd(t, children); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if left, err := os.ReadDir(c.temp); err != nil || len(left) != 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}

func TestItEndsWithAnEngineThatCannotBeStartedAgain(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "-dir", dir)
	children := childtest.Of(t, c.Process.Pid)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(children[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.awaitEnd(t, children); err == nil {
		t.Error("it ended well")
	}
}

// After a kill -9 nothing runs on, and everything that was acknowledged is there.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "-dir", dir)
	makeTable(t, c)
	key, sealed := fill(t, c)
	children := childtest.Of(t, c.Process.Pid)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.awaitEnd(t, children); err == nil {
		t.Error("it ended well")
	}

	again := start(t, "-dir", dir)
	item, err := dynamodb.NewFromConfig(again.config(again.DynamoDB)).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("kept"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "kept"}},
	})
	if err != nil || len(item.Item) == 0 {
		t.Errorf("the item: %v", err)
	}
	object := &s3.HeadObjectInput{Bucket: aws.String("kept"), Key: aws.String("kept")}
	if _, err := s3.NewFromConfig(again.config(again.S3)).HeadObject(t.Context(), object); err != nil {
		t.Errorf("the object: %v", err)
	}
	opened, err := kms.NewFromConfig(again.config(again.KMS)).Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: sealed, KeyId: &key})
	if err != nil || string(opened.Plaintext) != "kept" {
		t.Errorf("what was encrypted: %v", err)
	}
}

func makeTable(t *testing.T, c *command) {
	t.Helper()
	db := dynamodb.NewFromConfig(c.config(c.DynamoDB))
	if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("kept"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
	}); err != nil {
		t.Fatal(err)
	}
	waiter := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 200*time.Millisecond
	})
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("kept")}, patience); err != nil {
		t.Fatal(err)
	}
}

// fill stores something in each engine, and tells what opens with which key.
func fill(t *testing.T, c *command) (key string, sealed []byte) {
	t.Helper()
	if _, err := dynamodb.NewFromConfig(c.config(c.DynamoDB)).PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("kept"), Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "kept"}},
	}); err != nil {
		t.Fatal(err)
	}
	objects := s3.NewFromConfig(c.config(c.S3))
	if _, err := objects.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("kept")}); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("kept"), Key: aws.String("kept"), Body: strings.NewReader("kept")}); err != nil {
		t.Fatal(err)
	}
	keys := kms.NewFromConfig(c.config(c.KMS))
	made, err := keys.CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	key = aws.ToString(made.KeyMetadata.Arn)
	encrypted, err := keys.Encrypt(t.Context(), &kms.EncryptInput{KeyId: &key, Plaintext: []byte("kept")})
	if err != nil {
		t.Fatal(err)
	}
	return key, encrypted.CiphertextBlob
}
