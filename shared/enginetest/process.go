package enginetest

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
	// enginesVariable names the built command; make sets it.
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

// launch starts the engines. They end when their standard input does, which
// the operating system sees to however this process ends.
func launch(ctx context.Context) (aws.Config, error) {
	root, err := repository()
	if err != nil {
		return aws.Config{}, err
	}
	binary, err := enginesBinary(ctx, root)
	if err != nil {
		return aws.Config{}, err
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

// impatient is the functions' retry policy without its pauses: tests make calls
// fail often.
func impatient() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxBackoff = 10 * time.Millisecond
		o.Retryables = append(o.Retryables, calls.Retryables()...)
	})
}

// GetServiceBaseEndpoint tells the SDK where a service is, as the variables
// AWS_ENDPOINT_URL_<SERVICE> would.
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

// spawn runs the command and waits for its line.
func spawn(ctx context.Context, binary, dir string) (address, error) {
	command := exec.Command(binary)
	command.Dir = dir
	var complaints bytes.Buffer
	command.Stderr = &complaints
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
			return address{}, fmt.Errorf("the engines did not start: %s", strings.TrimSpace(complaints.String()))
		}
		var at address
		err := json.Unmarshal(line, &at)
		return at, err
	case <-ctx.Done():
		_ = command.Process.Kill()
		return address{}, errors.New("the engines did not start in time")
	}
}

// enginesBinary is the built command, or one built now.
func enginesBinary(ctx context.Context, root string) (string, error) {
	if binary := os.Getenv(enginesVariable); binary != "" {
		return binary, nil
	}
	build := filepath.Join(root, ".build")
	if err := os.MkdirAll(build, 0o750); err != nil {
		return "", err
	}
	// Test binaries of several packages may come here at once: each builds its
	// own and puts it in place in one step.
	binary := filepath.Join(build, "engines")
	fresh := fmt.Sprintf("%s.%d", binary, os.Getpid())
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", fresh, "./cmd/engines") //nolint:gosec // our own command
	command.Dir = filepath.Join(root, "infra", "local")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the engines: %s; %s", strings.TrimSpace(string(out)), howToGet)
	}
	return binary, os.Rename(fresh, binary)
}

// repository is the root of the module that is tested. infra/ has modules of
// its own, so it is told by the template, not by go.mod.
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
