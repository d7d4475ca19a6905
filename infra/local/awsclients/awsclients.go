// Package awsclients makes AWS clients that reach only engines on this machine, with any AWS
// variables and profiles in the shell.
//
// The SDK asks a config's sources for an endpoint only if AWS_ENDPOINT_URL and
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS are not set. So the endpoint is set on each client.
package awsclients

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Engines are the addresses of engines, and the access key that they take.
type Engines struct {
	DynamoDB        string `json:"dynamodb"`
	KMS             string `json:"kms"`
	S3              string `json:"s3"`
	Region          string `json:"region"`
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
}

// Stack is what stack.json says of a stack: the local server writes it for other programs on
// this machine.
type Stack[Outputs any] struct {
	Engines
	Outputs    Outputs           `json:"outputs"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Config configures clients that reach the engines. Give it to the functions below.
func (e Engines) Config() aws.Config {
	return aws.Config{
		Region:        e.Region,
		Credentials:   credentials.NewStaticCredentialsProvider(e.AccessKeyID, e.SecretAccessKey, ""),
		ConfigSources: []any{e},
	}
}

// GetServiceBaseEndpoint gives the SDK the endpoint of a service, like the variables
// AWS_ENDPOINT_URL_<SERVICE>.
func (e Engines) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	switch service {
	case dynamodb.ServiceID:
		return e.DynamoDB, true, nil
	case kms.ServiceID:
		return e.KMS, true, nil
	case s3.ServiceID:
		return e.S3, true, nil
	default:
		return "", false, fmt.Errorf("there is no engine for %s", service)
	}
}

// endpoint is the URL of the service in a config for engines, nil in another config.
func endpoint(c aws.Config, service string) *string {
	for _, source := range c.ConfigSources {
		if engines, ok := source.(Engines); ok {
			url, _, _ := engines.GetServiceBaseEndpoint(context.Background(), service) // "" reaches nothing
			return &url
		}
	}
	return nil
}

// DynamoDB makes a client for the config's engine, or AWS if the config names no engines.
func DynamoDB(c aws.Config, options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(c, append(options, func(o *dynamodb.Options) { o.BaseEndpoint = cmp.Or(endpoint(c, dynamodb.ServiceID), o.BaseEndpoint) })...)
}

// KMS makes a client like DynamoDB.
func KMS(c aws.Config) *kms.Client {
	return kms.NewFromConfig(c, func(o *kms.Options) { o.BaseEndpoint = cmp.Or(endpoint(c, kms.ServiceID), o.BaseEndpoint) })
}

// S3 makes a client like DynamoDB.
func S3(c aws.Config) *s3.Client {
	return s3.NewFromConfig(c, func(o *s3.Options) { o.BaseEndpoint = cmp.Or(endpoint(c, s3.ServiceID), o.BaseEndpoint) })
}
