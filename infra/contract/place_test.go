package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/local/record"
)

// place is one running service and the stack behind it.
type place struct {
	base  string // with /api/v1
	db    *dynamodb.Client
	s3    *s3.Client
	kms   *kms.Client
	names names
	// config and endpoints make more clients.
	config    aws.Config
	endpoints record.Services
}

// names are the stack's outputs that the suite needs.
type names struct {
	Access      string `json:"AccessTableName"`
	Credentials string `json:"CredentialsTableName"`
	Jobs        string `json:"SyncJobsTableName"`
	Control     string `json:"ControlTableName"`
	Files       string `json:"FilesBucketName"`
	Sealing     string `json:"SealingKeyArn"`
}

// stackFile is what the single-machine edition writes of itself.
type stackFile struct {
	Region    string `json:"region"`
	Endpoints struct {
		DynamoDB string `json:"dynamodb"`
		KMS      string `json:"kms"`
		S3       string `json:"s3"`
	} `json:"endpoints"`
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
	Outputs         names  `json:"outputs"`
}

// open connects to the stack that the file describes. Where it names no
// endpoints and no keys, those of the environment hold.
func open(base, file string) (place, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the path is the test's own
	if err != nil {
		return place{}, fmt.Errorf("reading the stack: %w", err)
	}
	var s stackFile
	if err := json.Unmarshal(text, &s); err != nil {
		return place{}, fmt.Errorf("decoding the stack: %w", err)
	}
	options := []func(*config.LoadOptions) error{config.WithRegion(s.Region)}
	if s.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(s.AccessKeyID, s.SecretAccessKey, "")))
	}
	cfg, err := config.LoadDefaultConfig(context.Background(), options...)
	if err != nil {
		return place{}, fmt.Errorf("configuring the AWS clients: %w", err)
	}
	return place{
		base: base, names: s.Outputs, config: cfg,
		endpoints: record.Services{DynamoDB: s.Endpoints.DynamoDB, KMS: s.Endpoints.KMS, S3: s.Endpoints.S3},
		db:        dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = endpoint(s.Endpoints.DynamoDB) }),
		kms:       kms.NewFromConfig(cfg, func(o *kms.Options) { o.BaseEndpoint = endpoint(s.Endpoints.KMS) }),
		s3:        s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint = endpoint(s.Endpoints.S3) }),
	}, nil
}

func endpoint(url string) *string {
	if url == "" {
		return nil
	}
	return aws.String(url)
}
