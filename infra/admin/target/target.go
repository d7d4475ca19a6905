// Package target finds the service that a command works on, and connects to it.
package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Target is the service that a command works on: a deployed stack or the
// local server.
type Target struct {
	stack, region string            // stack is "" for the local server
	dir           string            // the local server's state
	demo          bool              // the command uses the local server's demo account
	engines       map[string]string // the local server's services and their URLs
	// Name is the target's name for people.
	Name string

	Config  aws.Config
	Outputs Outputs
	// Identity is the caller's ARN, if AWS reported it.
	Identity string
	Status   string // of the stack
}

// Outputs are the outputs of a stack, by the names of the template.
type Outputs struct {
	AccessTableName      string
	CredentialsTableName string
	SyncJobsTableName    string
	FilesBucketName      string
	// SealingKeyArn is the key that new credentials are sealed under.
	// OwnSealingKeyArn is the stack's own key, which may be the same.
	SealingKeyArn    string
	OwnSealingKeyArn string
}

// newOutputs reads the outputs by their names. A missing output is an error.
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
	stackVariable = "SIGNALBOX_STACK"
	localDefault  = ".local"
	demoFile      = "demo.json" // in the local server's state
)

// Choose returns the service that the flags --local, --stack and --region name. A flag
// overrides the environment. An empty flag, for instance from a shell's unset variable,
// counts as missing.
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
		return nil, acts.UsageError("--local or --stack is empty: name a directory or a stack")
	case t.dir != "" && t.region != "":
		return nil, acts.UsageError("--region is for a stack, and no stack is named: add --stack NAME")
	}
	t.Name = "stack " + t.stack
	if t.dir != "" {
		t.Name = "the local server (" + t.dir + ")"
	}
	return t, nil
}

// IsLocal reports whether the target is the local server.
func (t *Target) IsLocal() bool { return t.stack == "" }

// ChooseAccount completes a command that needs an account and names none.
func (t *Target) ChooseAccount(command *kong.Node) error {
	i := slices.IndexFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "account" })
	if i < 0 || command.Flags[i].Target.String() != "" || command.Tag.Has("anywhere") {
		return nil
	}
	if t.stack != "" {
		return acts.UsageError("missing flag --account: name the account, or set SIGNALBOX_ACCOUNT (`admin account list` lists accounts)")
	}
	account := t.Demo()
	if account == "" {
		return acts.UsageError(fmt.Sprintf("missing flag --account: %s names no demo account; name one, or start the local server with `make run`", filepath.Join(t.dir, demoFile)))
	}
	command.Flags[i].Target.SetString(string(account))
	t.demo = true
	return nil
}

// Announcement is the first line of a command that changes something.
func (t *Target) Announcement() string {
	if t.demo {
		return "target: " + t.Name + ", its demo account"
	}
	return "target: " + t.Name
}

// Explain adds facts about the target to an error.
func (t *Target) Explain(err error) error {
	switch {
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

// ConnectLocal connects to the local server that stack.json describes.
func (t *Target) ConnectLocal() error {
	path := filepath.Join(t.dir, "stack.json")
	written, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		folder := "the folder " + t.dir
		if _, err := os.Stat(t.dir); err != nil {
			folder += " does not exist, so it"
		}
		return fmt.Errorf("%s has no stack.json: start the local server with `make run`, name its state folder with --local, or a deployed stack with --stack", folder)
	}
	if err != nil {
		return err
	}
	var stack awsclients.Stack[map[string]string]
	if err := json.Unmarshal(written, &stack); err != nil {
		return fmt.Errorf("reading %s: it is not JSON of the expected shape", path)
	}
	if t.Outputs, err = newOutputs(stack.Outputs); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	t.engines = map[string]string{"DynamoDB": stack.DynamoDB, "KMS": stack.KMS, "S3": stack.S3}
	t.Config = stack.Config()
	t.Config.HTTPClient, t.Config.Retryer, t.Config.APIOptions = httpClient(), calls.Retryer, []func(*middleware.Stack) error{calls.RefuseMalformed}
	return nil
}

// unreached explains the error of a call if no engine of the local server answered it.
func (t *Target) unreached(err error) error {
	switch silent := t.Silent(); len(silent) {
	case len(t.engines):
		return fmt.Errorf("%s is not running: start it with `make run`, or name a deployed stack with --stack", t.Name)
	case 0:
		return fmt.Errorf("an engine of %s closed the connection during a call; its logs are in %s/logs and %[2]s/engines: %w", t.Name, t.dir, err)
	default:
		return fmt.Errorf("%s runs, but its %s does not answer: see %s/logs and %[3]s/engines; start it again with `make run`", t.Name, strings.Join(silent, " and "), t.dir)
	}
}

// Silent returns the engines of the local server that accept no connection.
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

// Demo is the local server's demo account; "" if there is none.
func (t *Target) Demo() ids.Account {
	var facts struct {
		Account string `json:"account_id"`
	}
	written, _ := os.ReadFile(filepath.Join(t.dir, demoFile)) // a damaged file names no account
	_ = json.Unmarshal(written, &facts)
	account, _ := ids.Parse[ids.Account](facts.Account)
	return account
}

// ConnectStack asks CloudFormation for the names of the stack's tables and
// bucket, and AWS for the name of the caller. It may ask for a code of an MFA device.
func (t *Target) ConnectStack(ctx context.Context, code func() (string, error)) error {
	c, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(t.region),
		config.WithHTTPClient(httpClient()),
		config.WithRetryer(calls.Retryer),
		config.WithAssumeRoleCredentialOptions(func(o *stscreds.AssumeRoleOptions) { o.TokenProvider = code }),
	)
	if err != nil {
		return fmt.Errorf("configuring AWS: %w", err)
	}
	if c.Region == "" {
		return acts.UsageError("no AWS region: add --region, or set AWS_REGION")
	}
	_, err = c.Credentials.Retrieve(ctx)
	if usage, ok := errors.AsType[acts.UsageError](err); ok {
		return usage
	}
	if err != nil {
		return fmt.Errorf("there are no AWS credentials: set AWS_PROFILE, or sign in with `aws sso login`: %w", err)
	}
	described, err := cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &t.stack})
	if err != nil {
		return fmt.Errorf("asking for %s in %s: %w", t.Name, c.Region, err)
	}
	c.APIOptions = append(c.APIOptions, calls.RefuseMalformed)
	t.Config, t.Identity = c, callerARN(ctx, c)
	t.Name += " in " + c.Region
	outputs := map[string]string{}
	for _, s := range described.Stacks {
		t.Status = string(s.StackStatus)
		if id, err := arn.Parse(aws.ToString(s.StackId)); err == nil {
			t.Name += ", account " + id.AccountID
		}
		for _, output := range s.Outputs {
			outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
		}
	}
	if t.Outputs, err = newOutputs(outputs); err != nil {
		return fmt.Errorf("%s is not a Signalbox stack: %w", t.Name, err)
	}
	return nil
}

// callerARN is the identity that AWS reports, or "". The audit line also names the user of
// this machine, and AWS keeps its own trail.
func callerARN(ctx context.Context, c aws.Config) string {
	out, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return ""
	}
	return aws.ToString(out.Arn)
}
