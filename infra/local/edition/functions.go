package edition

import (
	"fmt"
	"maps"
	"path/filepath"

	"signalbox.dev/infra/local/record"
	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/template"
)

// runFunctions makes the Lambda runtime. Besides what Lambda gives them, the
// functions get only the endpoints and credentials of the engines.
func (e *Edition) runFunctions(o Options, t *template.Template, made template.Resources) error {
	declared, err := t.Functions(made)
	if err != nil {
		return err
	}
	if o.Record != nil {
		e.recorder = record.New(names(made), o.Record)
	}
	c := runtime.Config{
		Region: template.Region, Account: template.Account, Output: e.journal.line, Log: e.journal.log,
		Environment: map[string]string{
			"AWS_ACCESS_KEY_ID":     e.engines.AccessKeyID,
			"AWS_SECRET_ACCESS_KEY": e.engines.SecretAccessKey,
		},
	}
	for _, f := range declared {
		environment, err := e.environment(f)
		if err != nil {
			return err
		}
		c.Functions = append(c.Functions, runtime.Function{
			Name: f.ID, Binary: filepath.Join(o.Functions, f.ID, "bootstrap"), Handler: f.Handler,
			MemoryMB: f.MemoryMB, Timeout: f.Timeout, Environment: environment,
		})
	}
	if e.lambda, err = runtime.New(c); err != nil {
		return fmt.Errorf("%w; build them: make functions", err)
	}
	return nil
}

// environment is the function's own, with the endpoints by which it reaches the
// engines.
func (e *Edition) environment(f template.Function) (map[string]string, error) {
	reach := record.Services{DynamoDB: e.engines.DynamoDB, KMS: e.engines.KMS, S3: e.engines.S3}
	if e.recorder != nil {
		var err error
		if reach, err = e.recorder.Endpoints(f.ID, reach); err != nil {
			return nil, err
		}
	}
	all := make(map[string]string)
	maps.Copy(all, f.Environment)
	maps.Copy(all, map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": reach.DynamoDB,
		"AWS_ENDPOINT_URL_KMS":      reach.KMS,
		"AWS_ENDPOINT_URL_S3":       reach.S3,
	})
	return all, nil
}

// names maps the names and ARNs of the resources made to their logical ids.
func names(made template.Resources) map[string]string {
	ids := make(map[string]string)
	for id, attributes := range made {
		ids[attributes["Ref"]], ids[attributes["Arn"]] = id, id
	}
	return ids
}
