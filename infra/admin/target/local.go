package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/reach"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// stackFile tells how to reach the single-machine edition.
const stackFile = "stack.json"

var errNoState = errors.New("there is no stack.json")

// localStack has the fields of that file that the command reads. The edition's own type
// is in a module that links its engines: a copy costs less.
type localStack struct {
	reach.Engines                   // without their endpoints
	Endpoints     reach.Engines     `json:"endpoints"`
	Outputs       map[string]string `json:"outputs"`
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
	if t.Outputs, err = newOutputs(stack.Outputs); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	at := stack.Engines
	at.DynamoDB, at.KMS, at.S3 = stack.Endpoints.DynamoDB, stack.Endpoints.KMS, stack.Endpoints.S3
	t.engines = map[string]string{"DynamoDB": at.DynamoDB, "KMS": at.KMS, "S3": at.S3}
	t.Config = at.Config()
	t.Config.HTTPClient, t.Config.Retryer, t.Config.APIOptions = httpClient(), calls.Retryer, []func(*middleware.Stack) error{calls.Whole}
	return nil
}

// folder describes the folder that has no stack.json.
func (t *Target) folder() string {
	if _, err := os.Stat(t.dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("the folder %s does not exist, so that it", t.dir)
	}
	return "the folder " + t.dir
}

// unreached explains the error of a call that no engine of the edition answered.
func (t *Target) unreached(err error) error {
	switch silent := t.Silent(); len(silent) {
	case len(t.engines):
		return fmt.Errorf("%s is not running: start it with `make run`, or name a deployed stack with --stack", t.Name)
	case 0:
		return fmt.Errorf("an engine of %s broke off a call; its logs are in %s/logs and %[2]s/engines: %w", t.Name, t.dir, err)
	default:
		return fmt.Errorf("%s runs, but its %s does not answer: see %s/logs and %[3]s/engines; start it again with `make run`", t.Name, strings.Join(silent, " and "), t.dir)
	}
}

// Silent are the engines of the edition to which there is no connection.
func (t *Target) Silent() (silent []string) {
	for name, endpoint := range t.engines {
		connection, err := net.DialTimeout("tcp", strings.TrimPrefix(endpoint, "http://"), connectTimeout)
		if err != nil {
			silent = append(silent, name+" ("+endpoint+")")
			continue
		}
		_ = connection.Close()
	}
	slices.Sort(silent)
	return silent
}

// demoFile describes the edition's demo account.
const demoFile = "demo.json"

// Demo is the edition's demo account; "" if there is none.
func (t *Target) Demo() ids.Account {
	account, _ := demoAccount(t.dir)
	return account
}

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
