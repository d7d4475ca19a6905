package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Stack is a running stack: AWS clients, and the names of its resources.
type Stack struct {
	DynamoDB *dynamodb.Client
	KMS      *kms.Client
	S3       *s3.Client
	Outputs
}

// Outputs are the stack's outputs that tests need.
type Outputs struct {
	Access      string `json:"AccessTableName"`
	Credentials string `json:"CredentialsTableName"`
	Jobs        string `json:"SyncJobsTableName"`
	Control     string `json:"ControlTableName"`
	Files       string `json:"FilesBucketName"`
	SealingKey  string `json:"SealingKeyArn"`
}

// maxAttempts outlasts the restart of a killed engine.
const maxAttempts = 10

// OpenStack connects to the stack that the file describes, in the form of the
// single-machine edition's stack.json. Where the file has no endpoints and no
// keys, the SDK takes them from the environment.
func OpenStack(ctx context.Context, file string) (*Stack, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the path is the test's own
	if err != nil {
		return nil, fmt.Errorf("reading the stack: %w", err)
	}
	var described struct {
		address
		Endpoints address `json:"endpoints"`
		Outputs   Outputs `json:"outputs"`
	}
	if err := json.Unmarshal(text, &described); err != nil {
		return nil, fmt.Errorf("decoding the stack: %w", err)
	}
	options := []func(*config.LoadOptions) error{
		config.WithRegion(described.Region), config.WithRetryMaxAttempts(maxAttempts),
	}
	if described.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(described.AccessKeyID, described.SecretAccessKey, "")))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("configuring the AWS clients: %w", err)
	}
	if at := described.Endpoints; at.DynamoDB != "" {
		c.ConfigSources = append([]any{at}, c.ConfigSources...)
	}
	return &Stack{DynamoDB: dynamodb.NewFromConfig(c), KMS: kms.NewFromConfig(c), S3: s3.NewFromConfig(c), Outputs: described.Outputs}, nil
}

// Bucket is the stack's bucket of files.
func (s *Stack) Bucket() Bucket { return Bucket{Client: s.S3, Name: s.Files} }

// Leaks searches all that a single-machine edition leaves in its state folder,
// logs and the files of engines included, for Marker and for API keys. The
// edition must have ended. What is written of the demo account's keys on purpose,
// demo.json and the sample events, is removed first.
func Leaks(state string) ([]string, error) {
	for _, demo := range []string{"demo.json", "events"} {
		if err := os.RemoveAll(filepath.Join(state, demo)); err != nil {
			return nil, fmt.Errorf("removing the demo account: %w", err)
		}
	}
	return Search(os.DirFS(state), Marker)
}
