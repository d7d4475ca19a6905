package edition

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// stack is for other programs on this machine, such as the operator's command. It has the
// stack's outputs and the services' endpoints.
type stack struct {
	Region          string            `json:"region"`
	Endpoints       endpoints         `json:"endpoints"`
	AccessKeyID     string            `json:"access_key_id"`
	SecretAccessKey string            `json:"secret_access_key"`
	Outputs         map[string]string `json:"outputs"`
}

type endpoints struct {
	DynamoDB string `json:"dynamodb"`
	KMS      string `json:"kms"`
	S3       string `json:"s3"`
}

func (e *Edition) writeStack(o Options, outputs map[string]string) error {
	text, err := json.MarshalIndent(stack{
		Region:      e.engines.Region,
		Endpoints:   endpoints{DynamoDB: e.engines.DynamoDB, KMS: e.engines.KMS, S3: e.engines.S3},
		AccessKeyID: e.engines.AccessKeyID, SecretAccessKey: e.engines.SecretAccessKey,
		Outputs: outputs,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(o.State, "stack.json"), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the stack's outputs: %w", err)
	}
	return nil
}
