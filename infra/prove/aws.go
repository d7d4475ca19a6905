package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// clients are those of the account. Their endpoints are AWS's own, or those that
// AWS_ENDPOINT_URL names: the dry run differs in nothing else.
type clients struct {
	config    aws.Config
	accountID string
	cfn       *cloudformation.Client
	metrics   *cloudwatch.Client
	logs      *cloudwatchlogs.Client
	db        *dynamodb.Client
	gateway   *apigateway.Client
	iam       *iam.Client
	kms       *kms.Client
	lambda    *lambda.Client
	s3        *s3.Client
	sns       *sns.Client
	sqs       *sqs.Client
}

// connect finds credentials and region, and asks for the account.
func connect(ctx context.Context) (*clients, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRetryMaxAttempts(8))
	if err != nil {
		return nil, fmt.Errorf("configuring AWS: %w", err)
	}
	if c.Region == "" {
		return nil, errors.New("no AWS region: set AWS_REGION")
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("there are no AWS credentials: set AWS_PROFILE, or sign in with `aws sso login`: %w", err)
	}
	who, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, fmt.Errorf("asking AWS whose credentials these are: %w", err)
	}
	return &clients{
		config: c, accountID: aws.ToString(who.Account),
		cfn: cloudformation.NewFromConfig(c), metrics: cloudwatch.NewFromConfig(c), logs: cloudwatchlogs.NewFromConfig(c),
		db: dynamodb.NewFromConfig(c), gateway: apigateway.NewFromConfig(c), iam: iam.NewFromConfig(c), kms: kms.NewFromConfig(c),
		lambda: lambda.NewFromConfig(c), s3: s3.NewFromConfig(c), sns: sns.NewFromConfig(c), sqs: sqs.NewFromConfig(c),
	}, nil
}

// codeOf is AWS's code of an error, "" for others.
func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// gone reports whether an error means that the thing is not there.
func gone(err error) bool {
	return slices.Contains([]string{
		"ResourceNotFoundException", "NoSuchBucket", "NotFound", "NoSuchEntity", "NotFoundException", "NoSuchKey",
		"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue",
	}, codeOf(err))
}

// proveTag is on all that prove makes: stacks, the bucket of sam deploy, the queue.
const proveTag = "signalbox:prove"

// made reports whether prove made a stack. One that has no resources yet carries no
// tags: its change set does.
func (c *clients) made(ctx context.Context, s cfntypes.Stack) (bool, error) {
	tagged := func(t cfntypes.Tag) bool { return aws.ToString(t.Key) == proveTag }
	if s.StackStatus != cfntypes.StackStatusReviewInProgress || slices.ContainsFunc(s.Tags, tagged) {
		return slices.ContainsFunc(s.Tags, tagged), nil
	}
	sets, err := c.cfn.ListChangeSets(ctx, &cloudformation.ListChangeSetsInput{StackName: s.StackId})
	if err != nil {
		return false, fmt.Errorf("listing the change sets of stack %s: %w", aws.ToString(s.StackName), err)
	}
	for _, set := range sets.Summaries {
		out, err := c.cfn.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{ChangeSetName: set.ChangeSetId})
		if err != nil {
			return false, fmt.Errorf("asking for a change set of stack %s: %w", aws.ToString(s.StackName), err)
		}
		if slices.ContainsFunc(out.Tags, tagged) {
			return true, nil
		}
	}
	return false, nil
}

// bucketMade reports whether a bucket is there, and whether prove made it: its tag
// shows that, its name does not.
func (c *clients) bucketMade(ctx context.Context, name string) (there, made bool, err error) {
	out, err := c.s3.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &name, ExpectedBucketOwner: &c.accountID})
	switch {
	case codeOf(err) == "NoSuchTagSet":
		return true, false, nil
	case gone(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("asking for the tags of bucket %s: %w", name, err)
	}
	return true, slices.ContainsFunc(out.TagSet, func(t s3types.Tag) bool { return aws.ToString(t.Key) == proveTag }), nil
}

// queueMade is the same for a queue.
func (c *clients) queueMade(ctx context.Context, url *string) (bool, error) {
	out, err := c.sqs.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: url})
	if err != nil {
		return false, fmt.Errorf("asking for the tags of queue %s: %w", aws.ToString(url), err)
	}
	_, made := out.Tags[proveTag]
	return made, nil
}

// stack describes a stack by name, or a deleted one by its id. It is nil where there
// is none.
func (c *clients) stack(ctx context.Context, name string) (*cfntypes.Stack, error) {
	out, err := c.cfn.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if codeOf(err) == "ValidationError" && strings.Contains(err.Error(), "does not exist") {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("asking for stack %s: %w", name, err)
	}
	if len(out.Stacks) != 1 {
		return nil, fmt.Errorf("asking for stack %s: %d answers", name, len(out.Stacks))
	}
	return &out.Stacks[0], nil
}

// resources lists the resources of a stack, by name or id.
func (c *clients) resources(ctx context.Context, stack string) ([]cfntypes.StackResourceSummary, error) {
	var all []cfntypes.StackResourceSummary
	pages := cloudformation.NewListStackResourcesPaginator(c.cfn, &cloudformation.ListStackResourcesInput{StackName: &stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the resources of stack %s: %w", stack, err)
		}
		all = append(all, page.StackResourceSummaries...)
	}
	return all, nil
}

// target reads what probes need of a stack.
func (c *clients) target(ctx context.Context, name string) (target, error) {
	described, err := c.stack(ctx, name)
	if err != nil {
		return target{}, err
	}
	if described == nil {
		return target{}, fmt.Errorf("there is no stack %s in %s", name, c.config.Region)
	}
	t := target{name: name, outputs: map[string]string{}, parameters: map[string]string{}, physical: map[string]string{}}
	for _, o := range described.Outputs {
		t.outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	for _, p := range described.Parameters {
		t.parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	resources, err := c.resources(ctx, name)
	for _, r := range resources {
		t.physical[aws.ToString(r.LogicalResourceId)] = aws.ToString(r.PhysicalResourceId)
	}
	if err == nil && t.outputs["ApiBaseUrl"] == "" {
		err = fmt.Errorf("stack %s is not a Signalbox stack: it has no output ApiBaseUrl", name)
	}
	return t, err
}
