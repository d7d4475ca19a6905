package server

import (
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/samlocal"
	"signalbox.dev/infra/local/template"
)

// runFunctions makes the Lambda runtime. In addition to Lambda's variables, the functions
// get only the endpoints and credentials of the engines.
func (s *Server) runFunctions(declared []template.Resource[template.Function]) (err error) {
	to := s.engines.Engines
	c := runtime.Config{Region: template.Region, Account: template.Account, Output: s.journal.line, Log: s.journal.log}
	for _, f := range declared {
		environment := map[string]string{}
		maps.Copy(environment, f.Properties.Environment.Variables)
		maps.Copy(environment, map[string]string{
			"AWS_ACCESS_KEY_ID": to.AccessKeyID, "AWS_SECRET_ACCESS_KEY": to.SecretAccessKey,
			"AWS_ENDPOINT_URL_DYNAMODB": to.DynamoDB, "AWS_ENDPOINT_URL_KMS": to.KMS, "AWS_ENDPOINT_URL_S3": to.S3,
		})
		c.Functions = append(c.Functions, runtime.Function{
			Name: f.ID, Binary: filepath.Join(s.options.Root, ".build", "functions", f.ID, "bootstrap"), Handler: f.Properties.Handler,
			MemoryMB: f.Properties.MemorySize, Timeout: time.Duration(f.Properties.Timeout) * time.Second, Environment: environment,
		})
	}
	if s.lambda, err = runtime.New(c); err != nil {
		return fmt.Errorf("%w; `make functions` builds one for each functions/*/main.go", err)
	}
	s.atEnd(func() error { s.lambda.Close(); return nil })
	return nil
}

// containersAbove is added to the local server's port for the port by which the containers of
// `sam local` reach the engines. The port between them is that of `sam local start-api`, see
// samconfig.toml.
const containersAbove = 2

// serveSAMLocal lets `sam local` serve the same data, and writes an event of each
// function for `sam local invoke`.
func (s *Server) serveSAMLocal(declared []template.Resource[template.Function]) error {
	o := s.options
	c := samlocal.Config{
		State: o.State, Engines: s.engines, Functions: declared, Parameters: o.Parameters, Events: make(map[string][]byte), Log: s.journal.log,
	}
	if o.Port != 0 && o.Port <= maxPort-containersAbove {
		c.Port = o.Port + containersAbove
	}
	requests, err := s.Demo.Requests()
	if err != nil {
		return fmt.Errorf("sample events: %w", err)
	}
	for _, r := range requests {
		event, err := s.gateway.Event(r)
		if err != nil {
			return fmt.Errorf("sample events: %w", err)
		}
		c.Events[event.Function] = event.Payload
	}
	end, err := samlocal.Start(c)
	if err == nil {
		s.atEnd(end)
	}
	return err
}
