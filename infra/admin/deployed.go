package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"signalbox.dev/shared/calls"
)

// deployed asks CloudFormation for the names of a stack's tables and bucket,
// and AWS for the name of the caller.
func deployed(ctx context.Context, stack, region string) (target, error) {
	c, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(region),
		config.WithHTTPClient(httpClient()),
		config.WithRetryer(retryer),
	)
	if err != nil {
		return target{}, fmt.Errorf("configuring AWS: %w", err)
	}
	described, err := cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err != nil {
		return target{}, fmt.Errorf("asking for stack %s: %w", stack, err)
	}
	c.APIOptions = append(c.APIOptions, calls.Whole)
	t := target{config: c, identity: callerARN(ctx, c)}
	for _, s := range described.Stacks {
		for _, output := range s.Outputs {
			t.outputs.set(aws.ToString(output.OutputKey), aws.ToString(output.OutputValue))
		}
	}
	if err := t.outputs.check(); err != nil {
		return target{}, fmt.Errorf("stack %s is none of Signalbox: %w", stack, err)
	}
	return t, nil
}

func (o *outputs) set(name, value string) {
	switch name {
	case "AccessTableName":
		o.AccessTableName = value
	case "CredentialsTableName":
		o.CredentialsTableName = value
	case "SyncJobsTableName":
		o.SyncJobsTableName = value
	case "FilesBucketName":
		o.FilesBucketName = value
	case "SealingKeyArn":
		o.SealingKeyArn = value
	case "OwnSealingKeyArn":
		o.OwnSealingKeyArn = value
	}
}

// callerARN is who AWS takes us for, "" where it does not say: the audit line
// names the user of this machine as well, and AWS keeps its own trail.
func callerARN(ctx context.Context, c aws.Config) string {
	out, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return ""
	}
	return aws.ToString(out.Arn)
}
