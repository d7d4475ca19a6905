package testkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"signalbox.dev/shared/calls"
)

const (
	// enginesVariable is the path of the built command; without it, that of make.
	enginesVariable = "SIGNALBOX_ENGINES"

	startTimeout = 2 * time.Minute
	howToGet     = "run `make engines .build/engines` in the repository first"
)

// address is the line the engines print once all of them answer.
type address struct {
	DynamoDB        string `json:"dynamodb"`
	KMS             string `json:"kms"`
	S3              string `json:"s3"`
	Region          string `json:"region"`
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
}

// launch starts the engines. They end when their standard input ends, which it does
// however this process ends.
func launch(ctx context.Context) (aws.Config, error) {
	root, err := repository()
	if err != nil {
		return aws.Config{}, err
	}
	binary := os.Getenv(enginesVariable)
	if binary == "" {
		binary = filepath.Join(root, ".build", "engines")
	}
	at, err := spawn(ctx, binary, root)
	if err != nil {
		return aws.Config{}, fmt.Errorf("%s: %w; %s", binary, err, howToGet)
	}
	return aws.Config{
		Region:        at.Region,
		Credentials:   credentials.NewStaticCredentialsProvider(at.AccessKeyID, at.SecretAccessKey, ""),
		ConfigSources: []any{at},
		Retryer:       impatient,
	}, nil
}

// impatient is the functions' retry policy with short pauses: tests make calls fail
// often.
func impatient() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxBackoff = 10 * time.Millisecond
		o.Retryables = append(o.Retryables, calls.Retryables()...)
	})
}

// GetServiceBaseEndpoint gives the SDK the endpoint of a service, as the variables
// AWS_ENDPOINT_URL_<SERVICE> do.
func (a address) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	switch service {
	case "DynamoDB":
		return a.DynamoDB, true, nil
	case "KMS":
		return a.KMS, true, nil
	case "S3":
		return a.S3, true, nil
	default:
		return "", false, fmt.Errorf("there is no engine for %s", service)
	}
}

// spawn starts the command and waits for its line.
func spawn(ctx context.Context, binary, dir string) (address, error) {
	command := exec.Command(binary) //nolint:gosec // our own command
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if _, err := command.StdinPipe(); err != nil {
		return address{}, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return address{}, err
	}
	if err := command.Start(); err != nil {
		return address{}, err
	}
	lines := make(chan []byte)
	go func() {
		if line, err := bufio.NewReader(output).ReadBytes('\n'); err == nil {
			lines <- line
		}
		// Waiting also keeps the pipes from being collected as garbage, which would
		// close them: the engines run until this process is gone.
		_ = command.Wait()
		close(lines)
	}()
	select {
	case line, ok := <-lines:
		if !ok {
			return address{}, fmt.Errorf("the engines did not start: %s", strings.TrimSpace(stderr.String()))
		}
		var at address
		err := json.Unmarshal(line, &at)
		return at, err
	case <-ctx.Done():
		_ = command.Process.Kill()
		return address{}, errors.New("the engines did not start in time")
	}
}

// repository returns the root of the repository. infra/ has modules of its own, so
// it is found by the template, not by go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "template.yaml")); err == nil && !strings.HasSuffix(dir, "testdata") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the tests do not run inside the repository")
		}
	}
}
