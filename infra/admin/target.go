package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
)

// target is the service a command works on: a deployed stack, or else the
// single-machine edition.
type target struct {
	stack, region string // stack is "" for the edition
	dir           string // the edition's state
	// name names it for people; demo reports that its demo account is meant.
	name string
	demo bool

	config  aws.Config
	outputs outputs
	// identity names who AWS takes us for, where it is known.
	identity string
}

// outputs are the outputs of a stack, by the names of the template.
type outputs struct {
	AccessTableName      string
	CredentialsTableName string
	SyncJobsTableName    string
	FilesBucketName      string
	// SealingKeyArn is the key that new credentials are sealed under,
	// OwnSealingKeyArn the stack's own, if that is another.
	SealingKeyArn    string
	OwnSealingKeyArn string
}

// check refuses outputs of which some are missing.
func (o outputs) check() error {
	for name, value := range map[string]string{
		"AccessTableName": o.AccessTableName, "CredentialsTableName": o.CredentialsTableName,
		"SyncJobsTableName": o.SyncJobsTableName, "FilesBucketName": o.FilesBucketName,
		"SealingKeyArn": o.SealingKeyArn, "OwnSealingKeyArn": o.OwnSealingKeyArn,
	} {
		if value == "" {
			return fmt.Errorf("it has no output %s", name)
		}
	}
	return nil
}

const (
	stackVariable = "SIGNALBOX_STACK"
	localDefault  = ".local"
)

// chooseTarget reads which service the command line means: a flag wins over the
// environment. A flag that is empty, as of a shell's unset variable, means none.
func chooseTarget(given commandLine) (*target, error) {
	t := &target{region: given.Region}
	switch {
	case given.Local != nil:
		t.dir = *given.Local
	case given.Stack != nil:
		t.stack = *given.Stack
	case os.Getenv(stackVariable) != "":
		t.stack = os.Getenv(stackVariable)
	default:
		t.dir = localDefault
	}
	switch {
	case t.stack == "" && t.dir == "":
		return nil, usageError("--local or --stack is empty: name a directory or a stack")
	case t.dir != "" && t.region != "":
		return nil, usageError("--region is for a stack, and no stack is named: add --stack NAME")
	}
	t.name = "stack " + t.stack
	if t.dir != "" {
		t.name = "the local edition (" + t.dir + ")"
	}
	return t, nil
}

// chooseAccount completes a command that is about an account and names none.
func (t *target) chooseAccount(command *kong.Node) error {
	i := slices.IndexFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "account" })
	if i < 0 || command.Flags[i].Target.String() != "" {
		return nil
	}
	if t.stack != "" {
		return usageError("missing flag --account: name the account, or set SIGNALBOX_ACCOUNT (`admin account list` lists accounts)")
	}
	account, err := demoAccount(t.dir)
	if err != nil {
		return err
	}
	command.Flags[i].Target.SetString(string(account))
	t.demo = true
	return nil
}

// announcement is the line that a command which changes something begins with.
func (t *target) announcement() string {
	if t.demo {
		return "target: " + t.name + ", its demo account"
	}
	return "target: " + t.name
}

// explain completes an error by what is known of the target.
func (t *target) explain(err error) error {
	switch {
	case t.dir != "" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errNoState)):
		return fmt.Errorf("%s is not running: start it with `make run`, or name a deployed stack with --stack", t.name)
	case errors.Is(err, auth.ErrNoAccount):
		return fmt.Errorf("%w in %s", auth.ErrNoAccount, t.name)
	}
	return err
}

const (
	connectTimeout  = 5 * time.Second
	responseTimeout = 30 * time.Second
)

func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = responseTimeout })
}

// retryer is the SDK's own, with what it does not retry by itself.
func retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.Retryables = append(o.Retryables, calls.Retryables()...)
	})
}
