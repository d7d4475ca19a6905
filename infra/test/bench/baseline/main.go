// Command baseline is a small Go Lambda with the functions' AWS clients. Each function is
// measured against it. It configures and warms its clients like the functions, reads an
// event with the same decoder, and calls each service once.
package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/go-json-experiment/json"
)

func main() {
	env, err := config.NewEnvConfig()
	if err != nil {
		os.Exit(1)
	}
	c := aws.Config{
		Region: env.Region, Credentials: credentials.StaticCredentialsProvider{Value: env.Credentials},
		HTTPClient: awshttp.NewBuildableClient(), ConfigSources: []any{env},
	}
	warm(c.HTTPClient, "DYNAMODB", "KMS", "S3")
	lambda.Start(handler{dynamodb.NewFromConfig(c), kms.NewFromConfig(c), s3.NewFromConfig(c)})
}

// warm opens a connection to each service, side by side.
func warm(client aws.HTTPClient, services ...string) {
	var all sync.WaitGroup
	for _, service := range services {
		all.Go(func() {
			request, err := http.NewRequest(http.MethodGet, os.Getenv("AWS_ENDPOINT_URL_"+service), nil) //nolint:gosec // the bench sets the address
			if err != nil {
				return
			}
			if answer, err := client.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		})
	}
	all.Wait()
}

type handler struct {
	db    *dynamodb.Client
	keys  *kms.Client
	files *s3.Client
}

// Invoke implements lambda.Handler.
func (h handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var e struct {
		Path    map[string]string   `json:"pathParameters"`
		Headers map[string][]string `json:"multiValueHeaders"`
		Body    string              `json:"body"`
	}
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	id := e.Path["id"]
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: e.Body}}
	_, get := h.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &id, Key: key})
	_, dataKey := h.keys.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: &id})
	_, remove := h.files.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &id, Key: &id})
	if err := errors.Join(get, dataKey, remove); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"statusCode": http.StatusOK, "body": "{}"})
}
