package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/local/awsclients"
)

// Stack is a running stack: AWS clients, and the names of its resources.
type Stack struct {
	DynamoDB *dynamodb.Client
	KMS      *kms.Client
	S3       *s3.Client
	Outputs
	// Parameters are the parameters in its description.
	Parameters map[string]string
}

// Outputs are the stack's outputs that tests need.
type Outputs struct {
	BaseURL     string `json:"ApiBaseUrl"`
	Access      string `json:"AccessTableName"`
	Credentials string `json:"CredentialsTableName"`
	Jobs        string `json:"SyncJobsTableName"`
	Control     string `json:"ControlTableName"`
	Files       string `json:"FilesBucketName"`
	SealingKey  string `json:"SealingKeyArn"`
}

// maxAttempts is enough to wait for the restart of a killed engine.
const maxAttempts = 10

// OpenStack connects to the stack that the file describes, in the form of the
// local server's stack.json. If the file has no endpoints and no keys,
// the SDK takes them from the environment.
func OpenStack(ctx context.Context, file string) (*Stack, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the path is the test's own
	if err != nil {
		return nil, fmt.Errorf("reading the stack: %w", err)
	}
	var described awsclients.Stack[Outputs]
	if err := json.Unmarshal(text, &described); err != nil {
		return nil, fmt.Errorf("decoding the stack: %w", err)
	}
	c := described.Config()
	c.RetryMaxAttempts = maxAttempts
	if described.DynamoDB == "" {
		if c, err = config.LoadDefaultConfig(ctx, config.WithRegion(described.Region), config.WithRetryMaxAttempts(maxAttempts)); err != nil {
			return nil, fmt.Errorf("configuring the AWS clients: %w", err)
		}
	}
	return &Stack{
		DynamoDB: awsclients.DynamoDB(c), KMS: awsclients.KMS(c), S3: awsclients.S3(c), Outputs: described.Outputs, Parameters: described.Parameters,
	}, nil
}

// Bucket is the stack's bucket of files.
func (s *Stack) Bucket() Bucket { return Bucket{Client: s.S3, Name: s.Files} }

// Leaks searches the state folder of a local server, with logs and
// files of engines, for Marker and for API keys. The local server must have ended.
// It first removes demo.json and the sample events, which contain the demo
// account's keys on purpose.
func Leaks(state string) ([]string, error) {
	for _, demo := range []string{"demo.env", "demo.json", "events"} {
		if err := os.RemoveAll(filepath.Join(state, demo)); err != nil {
			return nil, fmt.Errorf("removing the demo account: %w", err)
		}
	}
	return Search(os.DirFS(state))
}
