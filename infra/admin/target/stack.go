package target

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/calls"
)

// ConnectStack asks CloudFormation for the names of the stack's tables and
// bucket, and AWS for the name of the caller.
func (t *Target) ConnectStack(ctx context.Context) error {
	c, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(t.region),
		config.WithHTTPClient(httpClient()),
		config.WithRetryer(calls.Retryer),
	)
	if err != nil {
		return fmt.Errorf("configuring AWS: %w", err)
	}
	if c.Region == "" {
		return exit.UsageError("no AWS region: add --region, or set AWS_REGION")
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		return fmt.Errorf("there are no AWS credentials: set AWS_PROFILE, or sign in with `aws sso login`: %w", err)
	}
	described, err := cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &t.stack})
	if err != nil {
		return fmt.Errorf("asking for %s in %s: %w", t.Name, c.Region, err)
	}
	c.APIOptions = append(c.APIOptions, calls.Whole)
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

// callerARN is the identity that AWS reports, or "". The audit line names the user of
// this machine as well, and AWS keeps its own trail.
func callerARN(ctx context.Context, c aws.Config) string {
	out, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return ""
	}
	return aws.ToString(out.Arn)
}
