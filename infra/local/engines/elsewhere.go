package engines

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/admin/awsclients"
	"signalbox.dev/infra/local/kms"
)

// Elsewhere configures SDK clients that reach a DynamoDB that runs already, whatever proxy the
// environment names.
func Elsewhere(endpoint string) aws.Config {
	e := awsclients.Engines{Region: kms.Region, AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey, DynamoDB: endpoint}
	c := e.Config()
	c.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return c
}

// answersElsewhere returns nil if a DynamoDB answers at the URL within three seconds.
func answersElsewhere(ctx context.Context, endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return ConfigError{fmt.Errorf("%q is not the address of a DynamoDB: make run DYNAMODB=http://127.0.0.1:8000", endpoint)}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	db := awsclients.DynamoDB(Elsewhere(endpoint), func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
	if _, err := db.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)}); err != nil {
		return ConfigError{fmt.Errorf("no DynamoDB answers at %s; start it (%w)", endpoint, err)}
	}
	return nil
}
