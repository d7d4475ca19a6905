package kit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/shared/calls"
)

const startTimeout = 3 * time.Minute

// launch starts the engines. They end when their standard input ends: at any end of this
// process. The SDK prefers some AWS variables to a config, so launch removes all AWS
// variables of the shell.
func launch() (aws.Config, error) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			if err := os.Unsetenv(name); err != nil {
				return aws.Config{}, err
			}
		}
	}
	root, err := repository()
	if err != nil {
		return aws.Config{}, err
	}
	at, err := spawn(filepath.Join(root, ".build", "engines"), root)
	if err != nil {
		return aws.Config{}, fmt.Errorf("%w; run `make build` in the repository first", err)
	}
	c := at.Config()
	c.Retryer = calls.Retryer
	return c, nil
}

// spawn starts the command and waits for its line.
func spawn(binary, dir string) (at awsclients.Engines, err error) {
	command := exec.Command(binary)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if _, err := command.StdinPipe(); err != nil {
		return at, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return at, err
	}
	if err := command.Start(); err != nil {
		return at, err
	}
	late := time.AfterFunc(startTimeout, func() { _ = command.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		err = cmp.Or(command.Wait(), err)
		return at, fmt.Errorf("the engines did not start: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	// This keeps the pipes from being garbage-collected and closed: the engines must run
	// until this process ends.
	go func() { _ = command.Wait() }()
	err = json.Unmarshal(line, &at)
	return at, err
}

// repository returns the root of the repository. It looks for the template, because
// engines have a go.mod too.
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
