package edition

import (
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/template"
)

// runFunctions makes the Lambda runtime. In addition to Lambda's variables, the functions
// get only the endpoints and credentials of the engines.
func (e *Edition) runFunctions(o Options, t *template.Template, made template.Resources) error {
	declared, err := t.Functions(made)
	if err != nil {
		return err
	}
	c := runtime.Config{
		Region: template.Region, Account: template.Account, Output: e.journal.line, Log: e.journal.log,
		Environment: map[string]string{
			"AWS_ACCESS_KEY_ID":     e.engines.AccessKeyID,
			"AWS_SECRET_ACCESS_KEY": e.engines.SecretAccessKey,
		},
	}
	for _, f := range declared {
		to := e.engines.Engines
		if o.Through != nil {
			if to, err = o.Through(to, f.ID, made); err != nil {
				return err
			}
		}
		environment := map[string]string{}
		maps.Copy(environment, f.Properties.Environment.Variables)
		environment["AWS_ENDPOINT_URL_DYNAMODB"] = to.DynamoDB
		environment["AWS_ENDPOINT_URL_KMS"] = to.KMS
		environment["AWS_ENDPOINT_URL_S3"] = to.S3
		c.Functions = append(c.Functions, runtime.Function{
			Name: f.ID, Binary: filepath.Join(o.Functions, f.ID, "bootstrap"), Handler: f.Properties.Handler,
			MemoryMB: f.Properties.MemorySize, Timeout: time.Duration(f.Properties.Timeout) * time.Second, Environment: environment,
		})
	}
	if e.lambda, err = runtime.New(c); err != nil {
		return fmt.Errorf("%w; `make functions` builds one for each functions/*/main.go", err)
	}
	return nil
}
