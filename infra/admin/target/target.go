// Package target is the service that a command works on, and how it is reached.
package target

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// Target is the service a command works on: a deployed stack, or else the
// single-machine edition.
type Target struct {
	stack, region string            // stack is "" for the edition
	dir           string            // the edition's state
	demo          bool              // its demo account is meant
	engines       map[string]string // the edition's services and their URLs
	// Name names it for people.
	Name string

	Config  aws.Config
	Outputs Outputs
	// Identity is the caller's ARN, if AWS reported it.
	Identity string
	// Status is that of the stack.
	Status string
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

// newOutputs takes the outputs by their names. It refuses to miss one.
func newOutputs(values map[string]string) (o Outputs, err error) {
	for field, output := range reflect.ValueOf(&o).Elem().Fields() {
		if values[field.Name] == "" {
			return Outputs{}, fmt.Errorf("it has no output %s", field.Name)
		}
		output.SetString(values[field.Name])
	}
	return o, nil
}

const (
	stackVariable   = "SIGNALBOX_STACK"
	accountVariable = "SIGNALBOX_ACCOUNT"
	localDefault    = ".local"
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
	if i < 0 || command.Flags[i].Target.String() != "" || command.Tag.Has("anywhere") {
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

// Account is the account that is meant if this one is given, or none.
func (t *Target) Account(given string) ids.Account {
	return cmp.Or(ids.Account(given), ids.Account(os.Getenv(accountVariable)), t.Demo())
}

// Announcement is the line that a command which changes something begins with.
func (t *Target) Announcement() string {
	if t.demo {
		return "target: " + t.Name + ", its demo account"
	}
	return "target: " + t.Name
}

// Explain adds facts about the target to an error.
func (t *Target) Explain(err error) error {
	switch {
	case t.dir != "" && errors.Is(err, errNoState):
		return fmt.Errorf("%s has no %s: start the edition with `make run`, name its state folder with --local, or a deployed stack with --stack", t.folder(), stackFile)
	case t.dir != "" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF)):
		return t.unreached(err)
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
