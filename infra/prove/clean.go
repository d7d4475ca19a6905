package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	agtypes "github.com/aws/aws-sdk-go-v2/service/apigateway/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// stackTime bounds the deletion of a stack.
	stackTime = 40 * time.Minute
	// tableTime bounds each change of a table.
	tableTime = 10 * time.Minute
	// waitingDays is the shortest time that KMS keeps a key before it deletes it.
	waitingDays = 7
	// backupTime is how long DynamoDB keeps the system backup of a deleted table.
	backupTime = 35 * 24 * time.Hour
)

// cleaner removes all that prove made under a name and that carries its tag: stacks,
// what they retain, the bucket of sam deploy, the queue. It asks AWS what there is
// and needs no record, so that it can be run by anybody, again, and after a crash.
type cleaner struct {
	*clients
	name     string
	progress io.Writer
	// found reports whether there was anything, be it a stack that is deleted already.
	found bool
	// remains is what cannot be removed, and when it goes.
	remains []string
}

func (c *cleaner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// clean removes everything. What fails does not stop the rest.
func (c *cleaner) clean(ctx context.Context) error {
	stacks, err := c.stacks(ctx)
	problems := []error{err}
	if len(stacks) > 0 {
		c.found = true
		c.remains = append(c.remains, "what was measured, free of charge: metrics for 15 months, traces for 30 days",
			"the permission that AWS WAF gives itself to write logs, a resource policy of CloudWatch Logs that names no stack: free of charge")
	}
	for _, s := range stacks {
		problems = append(problems, c.deleteStack(ctx, s))
	}
	for _, s := range stacks {
		problems = append(problems, c.removeRetained(ctx, s))
	}
	return errors.Join(append(problems, c.removeArtifacts(ctx), c.removeQueue(ctx))...)
}

// stacks finds those of the name that prove made, deleted ones included: what they
// retained may still be there. CloudFormation keeps them for 90 days. With an error it
// returns those that it found nevertheless.
func (c *cleaner) stacks(ctx context.Context) ([]cfntypes.Stack, error) {
	var found []cfntypes.Stack
	var problems []error
	pages := cloudformation.NewListStacksPaginator(c.cfn, &cloudformation.ListStacksInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, fmt.Errorf("listing stacks: %w", err)
		}
		for _, summary := range page.StackSummaries {
			if name := aws.ToString(summary.StackName); name != c.name && name != failingName(c.name) {
				continue
			}
			s, err := c.stack(ctx, aws.ToString(summary.StackId))
			made := false
			if s != nil {
				made, err = c.made(ctx, *s)
			}
			switch {
			case err != nil:
				problems = append(problems, err)
			case s == nil:
			case made:
				found = append(found, *s)
			case s.StackStatus != cfntypes.StackStatusDeleteComplete:
				problems = append(problems, fmt.Errorf("stack %s has no tag %s: prove did not make it", aws.ToString(s.StackName), proveTag))
			}
		}
	}
	return found, errors.Join(problems...)
}

// deleteStack deletes a stack, once nothing is under way in it, and waits.
func (c *cleaner) deleteStack(ctx context.Context, s cfntypes.Stack) error {
	name, id := aws.ToString(s.StackName), s.StackId
	status := s.StackStatus
	asked, cancelled := false, false
	gone, err := until(ctx, stackTime, func() (bool, error) {
		current, err := c.stack(ctx, aws.ToString(id))
		if err != nil || current == nil {
			return current == nil, err
		}
		status = current.StackStatus
		switch {
		case status == cfntypes.StackStatusDeleteComplete:
			return true, nil
		case status == cfntypes.StackStatusDeleteFailed && asked:
			return false, fmt.Errorf("stack %s: DELETE_FAILED: %s", name, aws.ToString(current.StackStatusReason))
		case status == cfntypes.StackStatusUpdateInProgress && !cancelled:
			cancelled = true
			_, err := c.cfn.CancelUpdateStack(ctx, &cloudformation.CancelUpdateStackInput{StackName: id})
			if codeOf(err) == "ValidationError" { // it has ended meanwhile
				err = nil
			}
			return false, err
		case asked, strings.HasSuffix(string(status), "_IN_PROGRESS") && status != cfntypes.StackStatusCreateInProgress && status != cfntypes.StackStatusReviewInProgress:
			return false, nil
		}
		c.say("deleting stack %s (%s)", name, status)
		asked = true
		_, err = c.cfn.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: id})
		return false, err
	})
	if err == nil && !gone {
		err = fmt.Errorf("stack %s is still %s", name, status)
	}
	if err != nil {
		return fmt.Errorf("deleting stack %s: %w", name, err)
	}
	return nil
}

// removeRetained removes what a deleted stack retained: first what is encrypted, then
// the keys.
func (c *cleaner) removeRetained(ctx context.Context, s cfntypes.Stack) error {
	resources, err := c.resources(ctx, aws.ToString(s.StackId))
	if err != nil {
		return err
	}
	var problems []error
	ofType := func(kind string, remove func(context.Context, string) error) {
		for _, r := range resources {
			// CloudFormation deletes no key, it schedules that. What else it has deleted is
			// gone: another thing of the name is not the stack's.
			deleted := r.ResourceStatus == cfntypes.ResourceStatusDeleteComplete && kind != "AWS::KMS::Key"
			if aws.ToString(r.ResourceType) == kind && aws.ToString(r.PhysicalResourceId) != "" && !deleted {
				problems = append(problems, remove(ctx, aws.ToString(r.PhysicalResourceId)))
			}
		}
	}
	for _, r := range resources {
		if aws.ToString(r.ResourceType) == "AWS::DynamoDB::Table" && aws.ToString(r.PhysicalResourceId) != "" &&
			(s.DeletionTime == nil || time.Since(*s.DeletionTime) < backupTime) {
			c.remains = append(c.remains, fmt.Sprintf("the system backup of table %s, for 35 days: DynamoDB makes it, free of charge", *r.PhysicalResourceId))
		}
	}
	left := false
	ofType("AWS::DynamoDB::Table", func(ctx context.Context, table string) error {
		_, err := c.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		left = left || err == nil
		if gone(err) {
			return nil
		}
		return err
	})
	if left { // DynamoDB changes a table only while its key can be used
		ofType("AWS::KMS::Key", c.reviveKey)
	}
	ofType("AWS::DynamoDB::Table", c.removeTable)
	ofType("AWS::S3::Bucket", c.removeBucket)
	ofType("AWS::Logs::LogGroup", c.removeLogGroup)
	ofType("AWS::IAM::Role", c.removeLoggingRole)
	ofType("AWS::KMS::Key", c.removeKey)
	return errors.Join(problems...)
}

func (c *cleaner) reviveKey(ctx context.Context, id string) error {
	key, err := c.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
	if gone(err) {
		return nil
	}
	if err == nil && key.KeyMetadata.KeyState == kmstypes.KeyStatePendingDeletion {
		_, err = c.kms.CancelKeyDeletion(ctx, &kms.CancelKeyDeletionInput{KeyId: &id})
	}
	// It is disabled now, or has been since an earlier removal ended here.
	if err == nil && key.KeyMetadata.KeyState != kmstypes.KeyStateEnabled {
		_, err = c.kms.EnableKey(ctx, &kms.EnableKeyInput{KeyId: &id})
	}
	if err != nil {
		return fmt.Errorf("making key %s usable for the removal of its tables: %w", id, err)
	}
	return nil
}

func (c *cleaner) removeKey(ctx context.Context, id string) error {
	key, err := c.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking for key %s: %w", id, err)
	}
	when := aws.ToTime(key.KeyMetadata.DeletionDate)
	if limit := time.Now().AddDate(0, 0, waitingDays).Add(time.Hour); key.KeyMetadata.KeyState != kmstypes.KeyStatePendingDeletion || when.After(limit) {
		if key.KeyMetadata.KeyState == kmstypes.KeyStatePendingDeletion { // CloudFormation scheduled it for later
			if _, err := c.kms.CancelKeyDeletion(ctx, &kms.CancelKeyDeletionInput{KeyId: &id}); err != nil {
				return fmt.Errorf("scheduling the deletion of key %s anew: %w", id, err)
			}
		}
		out, err := c.kms.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: &id, PendingWindowInDays: aws.Int32(waitingDays)})
		if err != nil {
			return fmt.Errorf("scheduling the deletion of key %s: %w", id, err)
		}
		when = aws.ToTime(out.DeletionDate)
		c.say("key %s: deletion scheduled", id)
	}
	c.remains = append(c.remains, fmt.Sprintf("key %s, until %s: free of charge while it waits for its deletion", id, when.Format(time.DateOnly)))
	return nil
}

func (c *cleaner) removeTable(ctx context.Context, name string) error {
	in := &dynamodb.DescribeTableInput{TableName: &name}
	state := func() (dbtypes.TableStatus, bool, error) {
		out, err := c.db.DescribeTable(ctx, in)
		if gone(err) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		return out.Table.TableStatus, aws.ToBool(out.Table.DeletionProtectionEnabled), nil
	}
	done, err := until(ctx, tableTime, func() (bool, error) {
		status, protected, err := state()
		switch {
		case err != nil || status == "":
			return err == nil, err
		case status != dbtypes.TableStatusActive:
		case protected:
			_, err = c.db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(false)})
		default:
			c.say("deleting table %s", name)
			_, err = c.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		}
		return false, err
	})
	if err == nil && !done {
		err = errors.New("it is still there")
	}
	if err != nil {
		return fmt.Errorf("deleting table %s: %w", name, err)
	}
	return nil
}

// removeArtifacts removes the bucket of sam deploy with all that SAM uploaded.
func (c *cleaner) removeArtifacts(ctx context.Context) error {
	name := c.artifacts(c.name)
	there, made, err := c.bucketMade(ctx, name)
	if err != nil || !there {
		return err
	}
	if !made {
		c.remains = append(c.remains, fmt.Sprintf("bucket %s: it has no tag %s, so prove did not make it", name, proveTag))
		return nil
	}
	c.found = true
	return c.removeBucket(ctx, name)
}

func (c *cleaner) removeBucket(ctx context.Context, name string) error {
	if err := removeVersions(ctx, c.s3, name, ""); err != nil {
		if gone(err) {
			return nil
		}
		return err
	}
	c.say("deleting bucket %s", name)
	if _, err := c.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name}); err != nil && !gone(err) {
		return fmt.Errorf("deleting bucket %s: %w", name, err)
	}
	return nil
}

func (c *cleaner) removeLogGroup(ctx context.Context, name string) error {
	_, err := c.logs.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &name})
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting log group %s: %w", name, err)
	}
	c.say("log group %s deleted", name)
	return nil
}

// removeLoggingRole removes the role under which the region's APIs log, if the stack
// made it, and the setting that names it. All other roles went with the stack.
func (c *cleaner) removeLoggingRole(ctx context.Context, name string) error {
	role, err := c.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking for role %s: %w", name, err)
	}
	account, err := c.gateway.GetAccount(ctx, &apigateway.GetAccountInput{})
	if err != nil {
		return fmt.Errorf("asking for the gateway's logging role: %w", err)
	}
	if aws.ToString(account.CloudwatchRoleArn) == aws.ToString(role.Role.Arn) {
		if _, err := c.gateway.UpdateAccount(ctx, &apigateway.UpdateAccountInput{PatchOperations: []agtypes.PatchOperation{
			{Op: agtypes.OpReplace, Path: aws.String("/cloudwatchRoleArn"), Value: aws.String("")},
		}}); err != nil {
			return fmt.Errorf("taking back the gateway's logging role: %w", err)
		}
		c.remains = append(c.remains, "log group /aws/apigateway/welcome, with a line, which API Gateway makes where a region gets a logging role")
	}
	attached, err := c.iam.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: &name})
	if err != nil {
		return fmt.Errorf("listing the policies of role %s: %w", name, err)
	}
	for _, p := range attached.AttachedPolicies {
		if _, err := c.iam.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &name, PolicyArn: p.PolicyArn}); err != nil {
			return fmt.Errorf("detaching a policy of role %s: %w", name, err)
		}
	}
	c.say("deleting role %s", name)
	if _, err := c.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &name}); err != nil {
		return fmt.Errorf("deleting role %s: %w", name, err)
	}
	return nil
}

func (c *cleaner) removeQueue(ctx context.Context) error {
	queue, err := c.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(queueName(c.name))})
	if gone(err) {
		return nil
	}
	made := false
	if err == nil {
		made, err = c.queueMade(ctx, queue.QueueUrl)
	}
	if err == nil && !made {
		c.remains = append(c.remains, fmt.Sprintf("queue %s: it has no tag %s, so prove did not make it", queueName(c.name), proveTag))
		return nil
	}
	c.found = true
	if err == nil {
		_, err = c.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: queue.QueueUrl})
	}
	if err != nil {
		return fmt.Errorf("deleting queue %s: %w", queueName(c.name), err)
	}
	c.say("queue %s deleted", queueName(c.name))
	return nil
}
