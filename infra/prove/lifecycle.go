package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// lifecycle makes the ephemeral stacks, with the SAM CLI, as the README says.
type lifecycle struct {
	*clients
	root, name, id string
	// architectures are those of the first and of the second deployment.
	architectures [2]string
	loggingRole   string
	pace          time.Duration
	progress      io.Writer
	record        *record

	saying  sync.Mutex
	failing sync.WaitGroup
	failure error // of the deployment that is to fail
	crashed func(context.Context) (crash, error)
}

// failingName is the stack whose creation is to fail half way.
func failingName(stack string) string { return stack + "-fails" }

// record is what prove writes down of what it makes. prove-clean works without it, and
// where there is one, in no other account or region.
type record struct {
	Stack   string    `json:"stack"`
	Account string    `json:"account"`
	Region  string    `json:"region"`
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
	Made    []string  `json:"made"`

	path string
	mu   sync.Mutex // two deployments run at once
}

func (r *record) add(what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.Made, what) {
		return nil
	}
	r.Made = append(r.Made, what)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o750); err != nil {
		return fmt.Errorf("making the folder of records: %w", err)
	}
	if err := os.WriteFile(r.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing down what is made: %w", err)
	}
	return nil
}

func (l *lifecycle) say(format string, args ...any) {
	l.saying.Lock()
	defer l.saying.Unlock()
	_, _ = fmt.Fprintf(l.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// folder is where SAM builds for an architecture.
func (l *lifecycle) folder(architecture string) string {
	return filepath.Join(l.root, ".build", "prove", "build-"+architecture)
}

// artifacts is the bucket for what SAM uploads.
func (c *clients) artifacts(stack string) string {
	return fmt.Sprintf("%s-%s-%s", stack, c.accountID, c.config.Region)
}

// chooseLoggingRole finds out whether the region's APIs have a role to log by.
func (l *lifecycle) chooseLoggingRole(ctx context.Context) error {
	account, err := l.gateway.GetAccount(ctx, &apigateway.GetAccountInput{})
	if err != nil {
		return fmt.Errorf("asking for the gateway's logging role: %w", err)
	}
	l.loggingRole = "Existing"
	if aws.ToString(account.CloudwatchRoleArn) == "" {
		l.loggingRole = "Create"
	}
	return nil
}

// prepare builds, and makes the bucket for SAM.
func (l *lifecycle) prepare(ctx context.Context) error {
	for _, architecture := range l.architectures {
		l.say("sam build for %s", architecture)
		if err := l.sam(ctx, "build", "--build-in-source", "--template", "template.yaml", "--build-dir", l.folder(architecture),
			"--parameter-overrides", "Architecture="+architecture); err != nil {
			return err
		}
	}
	if err := l.record.add("bucket " + l.artifacts(l.name)); err != nil {
		return err
	}
	in := &s3.CreateBucketInput{Bucket: aws.String(l.artifacts(l.name))}
	if l.config.Region != "us-east-1" { // which is no value of LocationConstraint
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(l.config.Region)}
	}
	// Ctrl-C does not come between the two: without its tag the bucket would stay.
	whole := context.WithoutCancel(ctx)
	if _, err := l.s3.CreateBucket(whole, in); err != nil {
		return fmt.Errorf("making the bucket for sam deploy: %w", err)
	}
	if _, err := l.s3.PutBucketTagging(whole, &s3.PutBucketTaggingInput{
		Bucket: in.Bucket, Tagging: &s3types.Tagging{TagSet: []s3types.Tag{{Key: aws.String(proveTag), Value: &l.id}}},
	}); err != nil {
		_, gone := l.s3.DeleteBucket(whole, &s3.DeleteBucketInput{Bucket: in.Bucket})
		return errors.Join(fmt.Errorf("tagging the bucket for sam deploy: %w", err), gone)
	}
	return nil
}

// sam runs the SAM CLI. It gets no signal of the terminal: Ctrl-C ends it through
// the context.
func (l *lifecycle) sam(ctx context.Context, args ...string) error {
	config := filepath.Join(l.root, ".build", "prove", "samconfig.toml")
	if err := os.MkdirAll(filepath.Dir(config), 0o750); err != nil {
		return err
	}
	// Not the project's own: that names other stacks and another bucket.
	if err := os.WriteFile(config, []byte("version = 0.1\n"), 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "sam", append(args, "--config-file", config)...) //nolint:gosec // the SAM CLI
	command.Dir = l.root
	command.Env = append(os.Environ(), "SAM_CLI_TELEMETRY=0", "AWS_REGION="+l.config.Region, "AWS_DEFAULT_REGION="+l.config.Region)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = 10 * time.Second
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("sam %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// deploy runs sam deploy with a built template.
func (l *lifecycle) deploy(ctx context.Context, stack, template string, parameters ...string) error {
	if err := l.record.add("stack " + stack); err != nil {
		return err
	}
	l.say("sam deploy %s: %s", stack, strings.Join(parameters, " "))
	args := []string{"deploy", "--stack-name", stack, "--template-file", template, "--s3-bucket", l.artifacts(l.name), "--s3-prefix", stack,
		"--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-fail-on-empty-changeset",
		"--tags", proveTag + "=" + l.id, "--parameter-overrides"}
	return l.sam(ctx, append(args, parameters...)...)
}

func (l *lifecycle) template(architecture string) string {
	return filepath.Join(l.folder(architecture), "template.yaml")
}

// The parameters of the deployments. The limiter is the one that the contract suite
// expects.
func (l *lifecycle) parameters(architecture string, more ...string) []string {
	return append([]string{
		"Architecture=" + architecture, "DeploymentPreference=AllAtOnce", "GatewayLoggingRole=" + l.loggingRole,
		"LogRetentionDays=1", "SystemLogLevel=INFO", "DeleteRatePerMinute=1", "DeleteBurst=20",
	}, more...)
}

func (l *lifecycle) deployFirst(ctx context.Context) error {
	return l.deploy(ctx, l.name, l.template(l.architectures[0]), l.parameters(l.architectures[0])...)
}

// secondParameters are what the second deployment changes, the architecture aside.
var secondParameters = []string{"FilesVersioning=Enabled", "Firewall=On", "GetSyncJobThrottleRate=5", "GetSyncJobThrottleBurst=5"}

func (l *lifecycle) deploySecond(ctx context.Context) error {
	return l.deploy(ctx, l.name, l.template(l.architectures[1]), l.parameters(l.architectures[1], secondParameters...)...)
}

// startFailing begins a deployment that fails half way, beside the others: a wait
// condition that nobody signals comes after tables, bucket and keys.
func (l *lifecycle) startFailing(ctx context.Context) error {
	built, err := os.ReadFile(l.template(l.architectures[0]))
	if err != nil {
		return fmt.Errorf("reading the built template: %w", err)
	}
	const resources = "\nResources:\n"
	if strings.Count(string(built), resources) != 1 {
		return errors.New("the built template has no line \"Resources:\"")
	}
	path := filepath.Join(l.folder(l.architectures[0]), "fails.yaml")
	text := strings.Replace(string(built), resources, resources+`  ProveHandle:
    Type: AWS::CloudFormation::WaitConditionHandle
  ProveFailure:
    Type: AWS::CloudFormation::WaitCondition
    DependsOn: [AccessTable, CredentialsTable, SyncJobsTable, ControlTable, FilesBucket, SealingKey]
    Properties:
      Handle: !Ref ProveHandle
      Timeout: '1'
`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil { //nolint:gosec // the folder of sam build
		return fmt.Errorf("writing the template that fails: %w", err)
	}
	l.failing.Go(func() {
		l.failure = l.deploy(ctx, failingName(l.name), path, append(l.parameters(l.architectures[0])[:2:2], "GatewayLoggingRole=Existing")...)
	})
	return nil
}

// failed waits for that deployment, and describes what it left.
func (l *lifecycle) failed(ctx context.Context) (*cfntypes.Stack, []cfntypes.StackResourceSummary, error) {
	l.failing.Wait()
	if l.failure == nil {
		return nil, nil, errors.New("the deployment that was to fail did not")
	}
	s, err := l.stack(ctx, failingName(l.name))
	if err != nil {
		return nil, nil, err
	}
	if s == nil {
		return nil, nil, fmt.Errorf("the deployment that was to fail made no stack: %w", l.failure)
	}
	resources, err := l.resources(ctx, failingName(l.name))
	return s, resources, err
}

// crash is what was seen while a faulty version was deployed behind a canary.
type crash struct {
	status        string   // of the stack afterwards
	before, after string   // the version behind the alias
	crashes       []answer // 500s for the job
	malformed     []answer // 500s where the function's answer was malformed
	good          int
	later         map[int]int // statuses when all was over
}

// malformedJob is the id for which the faulty function answers with no proxy
// response; for any other it ends.
const malformedJob = "malformed"

// deployCrash deploys a version of GetSyncJobFunction that crashes, and calls it
// until CodeDeploy has gone back.
func (l *lifecycle) deployCrash(ctx context.Context, a *asker) (crash, error) {
	var seen crash
	architecture := l.architectures[1]
	folder := l.folder(architecture) + "-crash"
	if err := os.RemoveAll(folder); err != nil {
		return seen, err
	}
	if err := os.CopyFS(folder, os.DirFS(l.folder(architecture))); err != nil {
		return seen, fmt.Errorf("copying what was built: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "lambda.norpc", "-o", filepath.Join(folder, "GetSyncJobFunction", "bootstrap"), "./faulty") //nolint:gosec // ours
	build.Dir = filepath.Join(l.root, "infra", "prove")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+map[string]string{"arm64": "arm64", "x86_64": "amd64"}[architecture], "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return seen, fmt.Errorf("building the function that crashes: %w\n%s", err, out)
	}
	version := func() (string, error) {
		out, err := l.lambda.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: aws.String(a.physical["GetSyncJobFunction"]), Name: aws.String("live")})
		if err != nil {
			return "", fmt.Errorf("asking for the version behind the alias: %w", err)
		}
		return aws.ToString(out.FunctionVersion), nil
	}
	var err error
	if seen.before, err = version(); err != nil {
		return seen, err
	}
	parameters := l.parameters(architecture, secondParameters...)
	parameters[1] = "DeploymentPreference=Canary10Percent5Minutes"
	ended := make(chan error, 1)
	go func() { ended <- l.deploy(ctx, l.name, filepath.Join(folder, "template.yaml"), parameters...) }()
	err = l.callDuring(ctx, a, ended, &seen)
	if err != nil {
		return seen, err
	}
	s, err := l.stack(ctx, l.name)
	if err != nil || s == nil {
		return seen, errors.Join(err, errors.New("the stack is gone"))
	}
	seen.status = string(s.StackStatus)
	seen.after, err = version()
	seen.later = map[int]int{}
	for range 10 {
		if err != nil {
			break
		}
		var got answer
		got, err = a.send(ctx, get(a.job, a.management))
		seen.later[got.status]++
		pause(ctx, l.pace) // below the throttle
	}
	return seen, err
}

// callDuring calls the function, below its throttle, until the deployment has ended.
func (l *lifecycle) callDuring(ctx context.Context, a *asker, ended <-chan error, seen *crash) error {
	for i := 0; ; i++ {
		id, into := a.job, &seen.crashes
		if i%2 == 1 {
			id, into = malformedJob, &seen.malformed
		}
		got, err := a.send(ctx, get(id, a.management))
		if err != nil {
			return err
		}
		switch got.status {
		case 200:
			seen.good++
		case 404, 429: // of the version that is good, or throttled
		default:
			*into = append(*into, got)
		}
		select {
		case err := <-ended:
			// It ends in an error, if all goes well: the stack's status says more.
			l.say("sam deploy has ended (%v)", err != nil)
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.pace):
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
