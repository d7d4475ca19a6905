package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Stack are the AWS clients and resource names behind a service.
type Stack struct {
	DynamoDB *dynamodb.Client
	KMS      *kms.Client
	S3       *s3.Client
	Names
}

// Names are the stack's outputs.
type Names struct {
	Access      string `json:"AccessTableName"`
	Credentials string `json:"CredentialsTableName"`
	Jobs        string `json:"SyncJobsTableName"`
	Control     string `json:"ControlTableName"`
	Files       string `json:"FilesBucketName"`
	SealingKey  string `json:"SealingKeyArn"`
}

// described is what the edition writes of itself.
type described struct {
	Region    string `json:"region"`
	Endpoints struct {
		DynamoDB string `json:"dynamodb"`
		KMS      string `json:"kms"`
		S3       string `json:"s3"`
	} `json:"endpoints"`
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
	Outputs         Names  `json:"outputs"`
}

// patience is how often a call is tried: an engine may be starting again.
const patience = 10

func connect(file string) (*Stack, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the edition's own
	if err != nil {
		return nil, fmt.Errorf("reading the stack: %w", err)
	}
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("decoding the stack: %w", err)
	}
	c := aws.Config{
		Region:        d.Region,
		Credentials:   credentials.NewStaticCredentialsProvider(d.AccessKeyID, d.SecretAccessKey, ""),
		Retryer:       func() aws.Retryer { return retry.AddWithMaxAttempts(retry.NewStandard(), patience) },
		ConfigSources: []any{d},
	}
	return &Stack{
		DynamoDB: dynamodb.NewFromConfig(c), KMS: kms.NewFromConfig(c), S3: s3.NewFromConfig(c), Names: d.Outputs,
	}, nil
}

// GetServiceBaseEndpoint implements the SDK's endpoint lookup.
func (d described) GetServiceBaseEndpoint(_ context.Context, sdkID string) (string, bool, error) {
	url, ok := map[string]string{"DynamoDB": d.Endpoints.DynamoDB, "KMS": d.Endpoints.KMS, "S3": d.Endpoints.S3}[sdkID]
	return url, ok, nil
}
