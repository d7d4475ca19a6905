// Package target is the service that a command works on, and how it is reached.
package target

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

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
)

// Target is the service a command works on: a deployed stack, or else the
// single-machine edition.
type Target struct {
	stack, region string // stack is "" for the edition
	dir           string // the edition's state
	demo          bool   // its demo account is meant
	// Name names it for people.
	Name string

	Config  aws.Config
	Outputs Outputs
	// Identity is the caller's ARN, where AWS reported it.
	Identity string
}

// Outputs are the outputs of a stack, by the names of the template.
type Outputs struct {
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
func (o Outputs) check() error {
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

// Choose reads which service the flags --local, --stack and --region mean: a flag
// wins over the environment. One that is empty, as of a shell's unset variable,
// means none.
func Choose(local, stack *string, region string) (*Target, error) {
	t := &Target{region: region}
	switch {
	case local != nil:
		t.dir = *local
	case stack != nil:
		t.stack = *stack
	case os.Getenv(stackVariable) != "":
		t.stack = os.Getenv(stackVariable)
	default:
		t.dir = localDefault
	}
	switch {
	case t.stack == "" && t.dir == "":
		return nil, exit.UsageError("--local or --stack is empty: name a directory or a stack")
	case t.dir != "" && t.region != "":
		return nil, exit.UsageError("--region is for a stack, and no stack is named: add --stack NAME")
	}
	t.Name = "stack " + t.stack
	if t.dir != "" {
		t.Name = "the local edition (" + t.dir + ")"
	}
	return t, nil
}

// IsLocal reports whether the target is the single-machine edition.
func (t *Target) IsLocal() bool { return t.stack == "" }

// ChooseAccount completes a command that is about an account and names none.
func (t *Target) ChooseAccount(command *kong.Node) error {
	i := slices.IndexFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "account" })
	if i < 0 || command.Flags[i].Target.String() != "" {
		return nil
	}
	if t.stack != "" {
		return exit.UsageError("missing flag --account: name the account, or set SIGNALBOX_ACCOUNT (`admin account list` lists accounts)")
	}
	account, err := demoAccount(t.dir)
	if err != nil {
		return err
	}
	command.Flags[i].Target.SetString(string(account))
	t.demo = true
	return nil
}

// Announcement is the line that a command which changes something begins with.
func (t *Target) Announcement() string {
	if t.demo {
		return "target: " + t.Name + ", its demo account"
	}
	return "target: " + t.Name
}

// Explain completes an error by what is known of the target.
func (t *Target) Explain(err error) error {
	switch {
	case t.dir != "" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errNoState)):
		return fmt.Errorf("%s is not running: start it with `make run`, or name a deployed stack with --stack", t.Name)
	case errors.Is(err, auth.ErrNoAccount):
		return fmt.Errorf("%w in %s", auth.ErrNoAccount, t.Name)
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
