package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// stackFile is where the single-machine edition writes how to reach it.
const stackFile = "stack.json"

var errNoState = errors.New("there is no stack.json")

// localStack is what the command reads of that file. The edition's own type is in
// another module, which links its engines: a copy of these fields costs less.
type localStack struct {
	Region    string `json:"region"`
	Endpoints struct {
		DynamoDB string `json:"dynamodb"`
		KMS      string `json:"kms"`
		S3       string `json:"s3"`
	} `json:"endpoints"`
	AccessKeyID     string  `json:"access_key_id"`
	SecretAccessKey string  `json:"secret_access_key"`
	Outputs         Outputs `json:"outputs"`
}

// ConnectLocal reads how to reach the single-machine edition.
func (t *Target) ConnectLocal() error {
	path := filepath.Join(t.dir, stackFile)
	written, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return errNoState
	}
	if err != nil {
		return err
	}
	var stack localStack
	if err := json.Unmarshal(written, &stack); err != nil {
		return fmt.Errorf("reading %s: it is not JSON of the expected shape", path)
	}
	if err := stack.Outputs.check(); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	t.Outputs = stack.Outputs
	t.Config = aws.Config{
		Region:        stack.Region,
		Credentials:   credentials.NewStaticCredentialsProvider(stack.AccessKeyID, stack.SecretAccessKey, ""),
		HTTPClient:    httpClient(),
		Retryer:       retryer,
		APIOptions:    []func(*middleware.Stack) error{calls.Whole},
		ConfigSources: []any{stack},
	}
	return nil
}

// demoFile is where the edition describes its demo account.
const demoFile = "demo.json"

// demoAccount is the account that a command on the edition is about by default.
func demoAccount(dir string) (ids.Account, error) {
	path := filepath.Join(dir, demoFile)
	var facts struct {
		Account string `json:"account_id"`
	}
	written, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if err == nil {
		err = json.Unmarshal(written, &facts)
	}
	account, ok := ids.Parse[ids.Account](facts.Account)
	if err != nil || !ok {
		return "", exit.UsageError(fmt.Sprintf("missing flag --account: %s names no demo account; name one, or start the edition with `make run`", path))
	}
	return account, nil
}

// GetServiceBaseEndpoint implements the SDK's endpoint lookup.
func (s localStack) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	switch service {
	case "DynamoDB":
		return s.Endpoints.DynamoDB, true, nil
	case "KMS":
		return s.Endpoints.KMS, true, nil
	case "S3":
		return s.Endpoints.S3, true, nil
	default:
		return "", false, fmt.Errorf("the local edition has no %s", service)
	}
}
